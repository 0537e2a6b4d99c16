"""Names of a program are never anything else in C: not code, not something that has that name."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from switch_p4 import program_json

from p4native.common.c_build import compiler
from p4native.compiler.preprocess import INCLUDE_DIR
from p4native.compiler.syntax.lexer import KEYWORDS
from p4native.switch import Detail, Pipeline, Program, ProgramError
from p4native.switch.build import COMMON, RUNTIME, STRICT
from p4native.switch.translate import translate
from p4native.switch.translate.opaque_string import OpaqueString, with_opaque_strings
from p4native.switch.translate.writer import Names, c_bytes, comment, quoted
from p4native.verification.fuzz import names as fuzz
from p4native.verification.fuzz.c_words import C_WORDS, OWN, line_tokens
from p4native.verification.fuzz.inputs import compiled

BATCH = 150
ERROR = 'x"); __builtin_trap(); say(p, "'


def check_syntax(text: str) -> None:
    command = [compiler(), *COMMON, *STRICT, f"-I{RUNTIME}", "-fsyntax-only", "-xc", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    assert not done.returncode, done.stderr[:2000]


def with_error(name: str) -> str:
    document = json.loads(program_json(ingress="apply { }"))
    document["errors"].append([name, 99])
    return json.dumps(document)


def test_an_error_name_does_not_become_code() -> None:
    text = translate(Program.parse(with_error(ERROR)), Detail.TRACE)
    plain = translate(Program.parse(with_error("harmless")), Detail.TRACE)
    fuzz.same_tokens(plain, text)
    check_syntax(text)


@pytest.mark.parametrize("use", [str, "{}".format, "x{}".format, "".join, "%s".__mod__])
def test_an_opaque_string_cannot_be_formatted(use: object) -> None:
    with pytest.raises(TypeError):
        use(OpaqueString("harmless"))  # type: ignore[operator]
    with pytest.raises(TypeError):
        _ = "x" + OpaqueString("harmless")  # type: ignore[operator]


def test_every_string_of_a_program_is_opaque() -> None:
    program = with_opaque_strings(
        Program.parse(program_json(ingress="register<bit<8>>(1) r; apply { }"))
    )
    assert all(isinstance(name, OpaqueString) for name in program.errors)
    assert all(isinstance(h.name, OpaqueString) for h in program.headers.values())
    assert isinstance(next(iter(program.registers.values())).name, OpaqueString)
    assert "I.r" in program.registers, "what is opaque is still found"


def c_value(literal: str) -> bytes:
    """What the C compiler understands by a string literal."""
    return re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8)]), literal[1:-1].encode())


def test_literals_hold_what_they_are_given() -> None:
    data = bytes(range(256)) + b'??/"\\\0' + b"1"
    assert c_value(c_bytes(data)) == data
    assert quoted("a ", OpaqueString('"\n\\%s??/\x1b\ud800é')) == (
        r'"a \042\134n\134\134%s\077\077/\134x1b\134ud800\134xe9"'
    )


def test_comments_end_where_they_should() -> None:
    for text in ("*/", "**//", "/*/", "*/*/", "a\nb", "??/", "*\\\n/", "*\x00/", "/*" * 50):
        line = f"/* {comment(OpaqueString(text))} */ end"
        assert line_tokens(line) == ["end"], line


def test_different_names_have_different_identifiers() -> None:
    names = Names()
    given = ["a.b", "a_b", "a-b", "a_b__2", "x" * 60, "x" * 61, "", "_", "é", "a_b__2__2"]
    made = [names.make("f", OpaqueString(name)) for name in given]
    assert len(set(made)) == len(given)
    assert made == [names.make("f", OpaqueString(name)) for name in given]
    assert all(OWN.match(name) for name in made)


def test_nothing_but_names_of_programs_looks_like_them() -> None:
    assert not [word for word in C_WORDS if OWN.match(word) and not word.startswith(("p4", "_p4"))]
    includes = "".join(f'#include "{h}"\n' for h in ("pipeline.h", "messages.h", "meter.h"))
    command = [compiler(), *COMMON, f"-I{RUNTIME}", "-DDETAIL=0", "-dM", "-E", "-xc", "-"]
    said = subprocess.run(command, input=includes, capture_output=True, text=True, check=True)
    macros = re.findall(r"^#define (\w+)", said.stdout, re.MULTILINE)
    assert len(macros) > 300
    assert not [macro for macro in macros if OWN.match(macro)]


def in_batches(words: list[str], size: int) -> Iterator[list[str]]:
    for at in range(0, len(words), size):
        yield words[at : at + size]


def test_words_of_c_and_of_the_runtime_as_names_in_json() -> None:
    """As every kind of name that the document has, one after the other."""
    document = compiled(Path(__file__).parents[2] / "packets" / "union.p4")
    for words in in_batches(C_WORDS, 40):
        for turn in range(0, 40, 13):
            changed = fuzz.Renamed.of(json.loads(document)).written(words[turn:] + words[:turn])
            plain = fuzz.Renamed.of(json.loads(document)).written([])
            fuzz.same_tokens(*(translate(Program.parse(d), Detail.TRACE) for d in (plain, changed)))


LIBRARY = "".join((INCLUDE_DIR / name).read_text() for name in ("core.p4", "v1model.p4"))
DECLARED = r"^\s*(?:extern|struct|enum|parser|control|package)\s+(?:\w+\s+)?(\w+)"
IN_LIBRARY = re.findall(DECLARED, LIBRARY, re.MULTILINE)
MACROS = {"register", "counter", "meter", "_Pragma", "defined"}
KINDS = {"exact", "ternary", "lpm", "range", "selector", "optional"}
TAKEN = {*KEYWORDS, *IN_LIBRARY, *MACROS, *KINDS, "start", "accept", "reject", "main", "H", "M"}
"""What P4 itself or its libraries call so; the test of JSON has these too."""


@pytest.mark.long(but=["0"])
@pytest.mark.parametrize("turn", range(4))
def test_words_of_c_and_of_the_runtime_as_names_in_p4(turn: int, tmp_path: Path) -> None:
    """As header types, fields, headers, metadata, states, errors and enum members, and in turn as
    actions, tables, registers, counters and value sets; the C compiler takes all of it."""
    words = [w for w in C_WORDS if w not in TAKEN and not re.fullmatch("__[A-Z]+__", w)]
    assert {"wide", "number", "headers", "field_list", "errno", "EOF", "linux", "int64_t"} <= {
        *words
    }
    batches = list(in_batches(words, BATCH))
    for batch in batches[turn::4]:
        path = tmp_path / "named.p4"
        path.write_text(named_program(batch[turn:] + batch[:turn]))
        program = Program.parse(compiled(path))
        check_syntax(translate(program, Detail.TRACE))


def named_program(words: list[str]) -> str:
    quarter = len(words) // 4 + 1
    actions, tables, registers, counters = (
        words[at : at + quarter] for at in range(0, 4 * quarter, quarter)
    )
    lines = ["#include <core.p4>", "#include <v1model.p4>"]
    lines += [f"header {w} {{ bit<8> {w}; bit<96> _wide_; }}" for w in words]
    lines.append("struct H { " + " ".join(f"{w} {w};" for w in words) + " }")
    lines.append("struct M { " + " ".join(f"bit<8> {w};" for w in words) + " }")
    lines.append("error { " + ", ".join(words) + " }")
    lines.append(
        "parser P(packet_in P_in, out H P_h, inout M P_m, inout standard_metadata_t P_s) {"
    )
    lines += [f"value_set<bit<8>>(4) {w};" for w in counters]
    lines.append(f"state start {{ transition {words[0]}_; }}")
    following = [*(f"{w}_" for w in words[1:]), "accept"]
    for i, (word, after) in enumerate(zip(words, following, strict=True)):
        select = (
            f"select(P_h.{word}.{word}) {{ {counters[i % len(counters)]}: accept; _: {after}; }}"
        )
        lines.append(f"state {word}_ {{ P_in.extract(P_h.{word}); transition {select} }}")
    lines.append("}")
    lines.append("control V(inout H P_h, inout M P_m) { apply { } }")
    lines.append("control C(inout H P_h, inout M P_m) { apply { } }")
    lines.append("control I(inout H P_h, inout M P_m, inout standard_metadata_t P_s) {")
    for word in registers:
        lines.append(f"register<bit<8>>(4) {word};")
    for word in counters:
        lines.append(f"counter(4, CounterType.packets) {word};")
    for i, word in enumerate(actions):
        register, counter = registers[i % len(registers)], counters[i % len(counters)]
        lines.append(
            f"action {word}(bit<8> {words[i]}) {{ P_h.{word}.{word} = {words[i]};"
            f" {counter}.count(1); {register}.write(1, P_m.{word}); P_m.{word} = {words[i]}; }}"
        )
    for i, word in enumerate(tables):
        lines.append(
            f"table {word} {{ key = {{ P_h.{word}.{word}: exact; P_m.{word}: ternary; }}"
            f" actions = {{ {actions[i % len(actions)]}; }} }}"
        )
    lines.append("apply { " + " ".join(f"{w}.apply();" for w in tables) + " } }")
    lines.append("control E(inout H P_h, inout M P_m, inout standard_metadata_t P_s) { apply { } }")
    lines.append("control D(packet_out P_o, in H P_h) { apply { P_o.emit(P_h); } }")
    lines.append("V1Switch(P(), V(), I(), E(), C(), D()) main;")
    return "\n".join(lines)


def test_hostile_names_are_told_on_one_line() -> None:
    document = json.loads(
        program_json(ingress="action a() { } table t { actions = { a; } } apply { t.apply(); }")
    )
    name = "a\n[2026] [info] forged\x1b[2J\u202e\ud800"
    for action in document["actions"]:
        action["name"] = name
    with pytest.raises(ProgramError) as raised:
        Program.parse(json.dumps(document))
    assert str(raised.value).isprintable()


def test_a_trace_keeps_hostile_names_on_their_lines() -> None:
    document = with_error("PacketTooShort\n").replace('"h"', json.dumps("h\n\x1b[31m\u202e\0%n"))
    with Pipeline.of(Program.parse(document), detail=Detail.TRACE) as pipeline:
        pipeline.process(1, bytes(20))
        lines = pipeline.take_messages()
    assert all(line.isascii() and line.isprintable() for line in lines)
    assert any(r"h\n\x1b[31m\u202e\x00%n" in line for line in lines)


def test_an_empty_name_is_a_name() -> None:
    """Of a table and a state that others lead to, given as `@name(".")` or in JSON."""
    parts = {
        "following": "special;",
        "states": "state special { m.x = 7; transition accept; }",
        "ingress": "@name({}) table t {{ actions = {{ NoAction; }} }} apply {{ t.apply(); }}",
    }
    texts = []
    for name in ('"."', '".n"'):
        given = {**parts, "ingress": parts["ingress"].format(name)}
        document = program_json(**given).replace('"special"', '""' if name == '"."' else '"n"')
        texts.append(translate(Program.parse(document), Detail.TRACE))
    assert "table" in texts[0]
    fuzz.same_tokens(texts[1], texts[0])


def test_an_empty_name_of_a_field_compiles() -> None:
    assert program_json(
        fields='@name("") bit<8> a; bit<8> b;',
        ingress="table t { key = { hdr.h.a: exact; } actions = { NoAction; } }"
        " apply { t.apply(); }",
    )
