"""Fuzz targets for hostile names. Whatever the strings in a program contain, the generated C may
contain them only as identifiers, literals and comments.

Each program is translated twice, with harmless names and with hostile names in the same places. The
two texts must have the same tokens in each line. There are two exceptions: string literals may
differ, and so may identifiers that are made from names. The latter must correspond one to one.
"""

from __future__ import annotations

import json
import random
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p4native.switch.p4runtime.text import read_p4info  # before protobuf is first imported

# isort: split
from google.protobuf import text_format

from p4native.compiler import Diagnostics, render
from p4native.compiler.backend import emit
from p4native.compiler.frontend import check_text
from p4native.switch import Detail, Pipeline, Program
from p4native.switch.build import build_library
from p4native.switch.translate import translate
from p4native.verification.corpus import Corpus
from p4native.verification.fuzz.c_words import C_WORDS, OWN, TokenError, line_tokens
from p4native.verification.fuzz.inputs import Json, compiled, source_text
from p4native.verification.fuzz.target import Target

BATCH = 100
"""The number of names in one input."""
FIXED = frozenset(("op", "type", "match_type", "algo", "path"))
"""The members whose strings are words of the format and not names."""
HEX = re.compile(r"-?0x[0-9a-fA-F]+\Z")
RESERVED = frozenset(("$valid$", "__HIT__", "__MISS__", "default", "standard_metadata", "scalars"))
TARGETS_OWN = frozenset(("ingress", "egress", "parser", "deparser"))
VARIANTS = ((Detail.TRACE, True), (Detail.LOG, False), (Detail.NOTHING, False))
PIECES = (
    *('"', "\\", "'", "\n", "\r", "\t", "\0", "\x1b[2J", "\x7f", "\x85", "\u2028", "\u202e", "é"),
    *("\U0001f600", "\ud800", "*/", "/*", "//", "/", "*", "??/", "??'", "???", "%", "%s", "%n"),
    *("%99999d", ";", "{", "}", "(", ")", ",", ".", "#", "# 1 ", "\\\n", "\\x", "\\0", "\\u", "$"),
    *("../", "/etc/passwd", "`id`", "$(id)", "|id", "&", "<script>", "<!--", "]]>", "'; --"),
    *('"); system("id"); say(p, "', "}; int x; {", "#include </etc/passwd>\n", "__p4_", "p4_"),
    *('*/ __attribute__((constructor)) void f(void) { system("id"); } /*', "\n#define if while\n"),
    *("", "__2", "_m0", "a", "b", "0", "1", "_", "__", "end", "done", "wide", "x" * 47, "y" * 300),
)


def hostile(rng: random.Random) -> str:
    """Returns a name that looks like something else, for example like C code."""
    if rng.random() < 0.15:
        return rng.choice(C_WORDS)
    text = "".join(rng.choice(PIECES) for _ in range(rng.choice((1, 1, 2, 3, 5))))
    return text.replace("{}", "{ }")


def same_tokens(plain: str, hostile_text: str) -> None:
    """Raises AssertionError unless the two texts are the same program with different names."""
    assert hostile_text.isascii(), "characters beyond ASCII"
    assert "??" not in hostile_text, "a trigraph"
    lines, others = plain.split("\n"), hostile_text.split("\n")
    assert len(lines) == len(others), f"{len(others)} lines instead of {len(lines)}"
    forth: dict[str, str] = {}
    back: dict[str, str] = {}
    for number, (line, other) in enumerate(zip(lines, others, strict=True), 1):
        try:
            wanted, found = line_tokens(line), line_tokens(other)
        except TokenError as error:
            raise AssertionError(f"line {number}: {error}: {other!r}") from None
        assert len(wanted) == len(found), f"line {number}: other tokens: {other!r}"
        for left, right in zip(wanted, found, strict=True):
            if OWN.match(left) and OWN.match(right):
                assert left.partition("p4_")[0] == right.partition("p4_")[0], (left, right)
                paired = forth.setdefault(left, right), back.setdefault(right, left)
                assert paired == (right, left), f"line {number}: {left} and {right}: two for one"
            elif left[0] == right[0] == '"':
                continue
            else:
                assert left == right, f"line {number}: {right!r} instead of {left!r}"


@dataclass
class Renamed:
    """The strings of a document that may be replaced freely, and a method that writes the document
    with other strings."""

    document: Json
    names: list[str]
    texts: list[tuple[Any, Any]]
    """The (holder, key) of strings that are only shown: P4 lines, file names and log messages."""

    @classmethod
    def of(cls, document: Json) -> Renamed:
        found: dict[str, None] = {}
        for name in _declared(document):
            found[name] = None
        kept = RESERVED | TARGETS_OWN | _standard(document)
        return cls(document, [n for n in found if n not in kept], list(_texts(document)))

    @property
    def places(self) -> int:
        return len(self.names) + len(self.texts)

    def written(self, given: list[str]) -> str:
        """Returns the document as JSON, with the given strings in place of its strings, in order.
        If fewer are given, harmless strings replace the rest."""
        chosen = {old: f"n{i}" for i, old in enumerate(self.names)}
        taken = set(chosen.values()) | RESERVED | TARGETS_OWN | _standard(self.document)
        for old, new in zip(self.names, given, strict=False):
            while new in taken:
                new += "'"
            taken.add(new)
            chosen[old] = new
        shown = given[len(self.names) :]
        for i, (holder, key) in enumerate(self.texts):
            text = (shown[i] if i < len(shown) else f"t{i}") or "_"
            holder[key] = "{}".join([text] * (holder[key].count("{}") + 1))
        return json.dumps(_replaced(self.document, chosen))


def _declared(document: Json) -> Iterator[str]:
    """Yields all names that are declared in the document."""
    for error in document.get("errors", ()):
        yield error[0]
    for header_type in document["header_types"]:
        yield from (field[0] for field in header_type["fields"])
    for union_type in document.get("header_union_types", ()):
        yield from (member[0] for member in union_type["headers"])
    pending = [document]
    while pending:
        at = pending.pop()
        if isinstance(at, dict):
            if isinstance(at.get("name"), str):
                yield at["name"]
            pending += at.values()
        elif isinstance(at, list):
            pending += at


def _standard(document: Json) -> set[str]:
    """Returns the fields that the C translation finds by their names, so that these names must
    stay."""
    found = {"egress_spec", "mcast_grp"}
    for alias, (_, field) in document.get("field_aliases", ()):
        found |= {alias, field}
    standard = [h for h in document["headers"] if h["name"] == "standard_metadata"]
    for header_type in document["header_types"]:
        if any(h["header_type"] == header_type["name"] for h in standard):
            found |= {field[0] for field in header_type["fields"]}
    return found


def _texts(document: Json) -> Iterator[tuple[Any, Any]]:
    pending = [document]
    while pending:
        at = pending.pop()
        if isinstance(at, dict):
            info = at.get("source_info")
            if isinstance(info, dict):
                yield from ((info, k) for k in ("source_fragment", "filename") if k in info)
            if at.get("type") == "string" and isinstance(at.get("value"), str):
                yield at, "value"
            if isinstance(at.get("program"), str):
                yield at, "program"
            pending += [v for k, v in at.items() if k != "source_info"]
        elif isinstance(at, list):
            pending += at


def _replaced(value: Json, chosen: dict[str, str]) -> Json:
    if isinstance(value, str):
        return value if HEX.match(value) else chosen.get(value, value)
    if isinstance(value, list):
        return [_replaced(item, chosen) for item in value]
    if not isinstance(value, dict):
        return value
    made = {}
    for key, inner in value.items():
        shown = key == "source_info" or (key == "value" and value.get("type") == "string")
        made[key] = inner if key in FIXED or shown else _replaced(inner, chosen)
        if key == "next_tables":  # nowhere else are names keys
            made[key] = {chosen.get(k, k): v for k, v in made[key].items()}
    return made


class NamesTarget(Target):
    """The target for batches of hostile names in the JSON of a program, translated at every level
    of detail."""

    name = "names"
    inputs = 1000
    BUILT = 0.02

    def __init__(self, corpus: Corpus) -> None:
        super().__init__(corpus)
        self.paths = corpus.programs()
        self.plain: dict[str, tuple[str, list[str]]] = {}

    def draw(self, rng: random.Random) -> str:
        names = [hostile(rng) for _ in range(BATCH)]
        return json.dumps([str(rng.choice(self.paths)), rng.randrange(1 << 30), names])

    def survive(self, text: str) -> None:
        file, seed, names = json.loads(text)
        if file not in self.plain:
            document = compiled(Path(file))
            harmless = Renamed.of(json.loads(document)).written([])
            self.plain[file] = document, variants(harmless)
        document, plain = self.plain[file]
        rng = random.Random(seed)
        while names:
            renamed = Renamed.of(json.loads(document))
            rng.shuffle(renamed.names)  # so that all places get their turn
            count = min(len(names), renamed.places)
            given, names = names[:count], names[count:]
            rng.shuffle(renamed.texts)
            changed = renamed.written(given)
            for one, other in zip(plain, variants(changed), strict=True):
                same_tokens(one, other)
        if rng.random() < self.BUILT:
            run_traced(changed)


def variants(document: str) -> list[str]:
    """Returns the C code of a document at every level of detail."""
    program = Program.parse(document)
    return [translate(program, detail, sources) for detail, sources in VARIANTS]


def run_traced(document: str) -> None:
    """Compiles the program with the highest level of detail and sends a packet through it. Each
    trace message must be one line of printable ASCII."""
    program = Program.parse(document)
    library = build_library(translate(program, Detail.TRACE, sources=True), quick=True)
    with Pipeline(program, library) as pipeline:
        pipeline.process(1, bytes(range(100)), 0)
        for line in pipeline.take_messages():
            assert line.isascii() and line.isprintable(), f"a message of {line!r}"
    library.unlink()
    library.with_suffix(".c").unlink()


def p4_literal(text: str) -> str:
    """Returns the text escaped as it must be between the quotes of a P4 string."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


ANNOTATED = """
#include <core.p4>
#include <v1model.p4>
@name("@@") header h_t { @name("@@") bit<8> a; bit<96> b; }
@name("@@") header tail_t { bit<16> c; @name("@@") varbit<32> d; }
header_union u_t { @name("@@") h_t one; tail_t two; }
@name("@@") struct H { @name("@@") h_t h; @name("@@") h_t[3] s; @name("@@") u_t u; tail_t t; }
struct D { @name("@@") bit<8> x; bit<96> y; }
@name("@@") struct M { @name("@@") bit<8> x; bit<96> y; @name("@@") D inner; }
@name("@@") error { Strange }
@name("@@") enum bit<8> Kind { @name("@@") one = 1 }
@name("@@") parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t s) {
    @name("@@") value_set<bit<8>>(4) known;
    @name("@@") state start { p.extract(hdr.h); transition select(hdr.h.a) {
        known: special; 3: more; default: accept; } }
    @name("@@") state special {
        verify(m.x != 7, error.Strange); p.extract(hdr.s.next); transition accept; }
    @name("@@") state more { p.extract(hdr.u.one); transition accept; }
}
@name("@@") control V(inout H hdr, inout M m) { apply { } }
@name("@@") control C(inout H hdr, inout M m) { apply { } }
@name("@@") control I(inout H hdr, inout M m, inout standard_metadata_t s) {
    @name("@@") register<bit<48>>(4) r;
    @name("@@") counter(3, CounterType.packets) c;
    @name("@@") direct_counter(CounterType.bytes) dc;
    @name("@@") meter(3, MeterType.bytes) me;
    @name("@@") action_selector(HashAlgorithm.crc16, 16, 8) profile;
    @name("@@") action set(@name("@@") bit<8> v, bit<9> port) {
        hdr.h.a = v; r.write(0, (bit<48>)v); c.count(1); s.egress_spec = port;
        me.execute_meter(2, m.x); digest<D>(1, m.inner);
        log_msg("{} @@", {m.x}); assert(m.x == 0);
    }
    @name("@@") action other() { mark_to_drop(s); }
    @name("@@") table t {
        key = { hdr.h.a: exact @name("@@"); m.y: ternary @name("@@"); hdr.s[1].a: exact; }
        actions = { set; @name("@@") other; NoAction; }
        @name("@@") counters = dc;
        default_action = other();
    }
    @name("@@") table pick {
        key = { hdr.h.a: exact @name("@@"); hdr.h.b: selector; }
        actions = { set; NoAction; }
        implementation = profile;
    }
    apply { @name("@@") { if (hdr.h.isValid()) { t.apply(); } } pick.apply(); }
}
@name("@@") control E(inout H hdr, inout M m, inout standard_metadata_t s) { apply { } }
@name("@@") control Dep(packet_out p, in H hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), Dep()) main;
"""
"""A program with @@ in every place where a string is allowed."""


class AnnotationTarget(Target):
    """The target for hostile names in `@name` annotations of P4 source. The compiler must refuse
    them with diagnostics, or return JSON and P4Info that a device accepts. The generated C must
    then have the same tokens as for harmless names."""

    name = "annotations"
    inputs = 2000

    def __init__(self, corpus: Corpus) -> None:
        super().__init__(corpus)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "annotated.p4"
            path.write_text(ANNOTATED)
            self.text = source_text(path, Diagnostics())
        self.count = self.text.count("@@")
        made = self.emitted([f"n{i}" for i in range(self.count)])
        assert made
        self.plain = variants(made[0])

    def draw(self, rng: random.Random) -> str:
        names: list[str] = []
        taken = set(re.findall(r"\w+", ANNOTATED))
        for number in range(self.count):
            name = hostile(rng) if rng.random() < 0.3 else f"n{number}"
            name = name.encode(errors="ignore").decode()
            while name in taken:
                name += "'"
            taken.add(name)
            names.append(name)
        return json.dumps(names)

    def survive(self, text: str) -> None:
        made = self.emitted(json.loads(text))
        if made is None:
            return
        document, info = made
        for one, other in zip(self.plain, variants(document), strict=True):
            same_tokens(one, other)
        copy = read_p4info(text_format.MessageToString(info).encode())
        assert copy.SerializeToString() == info.SerializeToString(), "another P4Info from its text"

    def emitted(self, names: list[str]) -> tuple[str, Any] | None:
        """Returns JSON and P4Info, or None if the compiler refuses the names."""
        parts = self.text.split("@@")
        literals = [*map(p4_literal, names), ""]
        text = "".join(a + b for a, b in zip(parts, literals, strict=True))
        diagnostics = Diagnostics()
        typed = check_text(text, "fuzz.p4", diagnostics)
        made = None if typed is None else emit(typed, diagnostics)
        if made is None:
            said = render(diagnostics.entries, {"fuzz.p4": text})
            assert said, "refused without a word"
            assert all(line.isprintable() for line in said.replace("\t", " ").splitlines()), said
            return None
        return json.dumps(made[0]), made[1]
