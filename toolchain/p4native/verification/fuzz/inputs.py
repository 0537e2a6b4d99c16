"""The targets for BMv2 JSON, P4 source and packet tests in which something was changed."""

from __future__ import annotations

import contextlib
import json
import random
import re
import tempfile
from pathlib import Path
from typing import Any

from p4native.compiler import Diagnostics, render
from p4native.compiler.backend import emit
from p4native.compiler.frontend import check_text
from p4native.compiler.preprocess import INCLUDE_DIR, Options, preprocess
from p4native.compiler.syntax.lexer import KEYWORDS, tokenize
from p4native.stf import Binder, Library, Run, StfError, parse
from p4native.switch import Pipeline, Program, ProgramError
from p4native.switch.build import build_library
from p4native.switch.translate import translate
from p4native.verification.corpus import Corpus, script_problem
from p4native.verification.fuzz.target import Target
from p4native.verification.random_programs import draw_case

Json = Any
JUNK: tuple[Json, ...] = (
    *(None, True, False, 0, 1, -1, 7, 64, 65, 255, 2**31, 2**32, 2**63, 2**64, -(2**63), 1e300),
    *(
        "",
        "0x",
        "0x00",
        "-0x1",
        "0x" + "f" * 200,
        "default",
        "*",
        "scalars",
        "ingress",
        "h",
        "\x00",
    ),
    *([], {}, [[]], [{}], {"": None}),
)
OPERATOR_TEXT = """+ - * / % << >> == != > >= < <= and or not & | ^ ~ valid valid_union ? d2b b2d
two_comp_mod sat_cast usat_cast dereference_header_stack last_stack_index size_stack access_field
access_union_header"""
TOKEN_TEXT = """( ) [ ] { } < > << + - * / % & | ^ ~ ! = == != <= >= && || ++ |+| ? : ; , . .. ... @
&&& +: {#} += _ hdr meta std x apply.x 0 1 255 8w3 4s7 0xFF 1w1 true "s" @name"""
SCRIPT_TEXT = """add setdefault remove packet expect wait no_packet check_counter check_register all
mirroring_add mc_mgrp_create mc_node_create mc_node_associate meter_set_rates register_write
counter_write 0 1 -1 0x10 0xff** 99999999999999999999 /8 &&& .. ( ) : = $ * "x" h.a 1:1 \x00"""
OPERATORS = OPERATOR_TEXT.split()


def compiled(path: Path) -> str:
    """Returns the BMv2 JSON of a program, which must compile."""
    diagnostics = Diagnostics()
    typed = check_text(source_text(path, diagnostics), str(path), diagnostics)
    emitted = None if typed is None else emit(typed, diagnostics)
    assert emitted is not None, render(diagnostics.entries)
    return json.dumps(emitted[0])


def source_text(path: Path, diagnostics: Diagnostics) -> str:
    """Returns the text of a program after preprocessing, which must succeed."""
    text = preprocess(str(path), including(path), diagnostics)
    assert text is not None, render(diagnostics.entries)
    return text


def including(path: Path, defines: tuple[str, ...] = ()) -> Options:
    """Returns preprocessing options with which a program includes the toolchain's files and those
    of its own folder. defines: macros, each as NAME or NAME=VALUE."""
    folders = (str(INCLUDE_DIR), str(path.parent), str(path.parent / "include"))
    return Options(includes=folders, defines=defines)


def why_unusable(path: Path) -> str:
    """Returns the compiler's messages about a program that does not compile, or what is wrong with
    its packet test, or an empty string."""
    try:
        compiled(path)
    except AssertionError as error:
        return f"does not compile: {str(error).strip()}"
    return script_problem(path)


class JsonTarget(Target):
    """The target for BMv2 JSON in which members were changed. The switch must refuse it with a
    message of one line, or translate it to C that compiles."""

    name = "json"
    inputs = 4000
    BUILT = 0.02  # of what is accepted: the C compiler takes its time

    def __init__(self, corpus: Corpus) -> None:
        super().__init__(corpus)
        self.paths = corpus.programs()
        self.documents: dict[Path, str] = {}

    def document(self, rng: random.Random) -> Json:
        path = rng.choice(self.paths)
        if path not in self.documents:
            self.documents[path] = compiled(path)
        return json.loads(self.documents[path])

    def draw(self, rng: random.Random) -> str:
        document = self.document(rng)
        for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
            change_json(rng, document)
        return json.dumps(document)

    def survive(self, text: str) -> None:
        try:
            program = Program.parse(text)
            source = translate(program)
        except ProgramError as error:
            assert "\n" not in str(error) and str(error), "a refusal is one line"
            return
        if random.Random(text).random() < self.BUILT:
            library = build_library(source, quick=True)
            with Pipeline(program, library) as pipeline:
                pipeline.process(1, bytes(range(100)), 0)
            library.unlink()
            library.with_suffix(".c").unlink()


def places(document: Json) -> list[tuple[Json, Any]]:
    """Returns (container, key) of every value in a document except those that say from which source
    it was made."""
    found: list[tuple[Json, Any]] = []
    pending = [document]
    while pending:
        at = pending.pop()
        keys = list(at) if isinstance(at, dict) else range(len(at))
        for key in keys:
            if key in ("source_info", "__meta__"):
                continue
            found.append((at, key))
            if isinstance(at[key], (dict, list)):
                pending.append(at[key])
    return found


def change_json(rng: random.Random, document: Json) -> None:
    """Makes one change: removes a value, doubles it, or replaces it by junk or by a value from
    elsewhere."""
    everywhere = places(document)
    holder, key = rng.choice(everywhere)
    old = holder[key]
    which = rng.randrange(7)
    if which == 0:
        del holder[key]
    elif which == 1 and isinstance(holder, list):
        holder.insert(key, json.loads(json.dumps(old)))
    elif which == 2:
        holder[key] = rng.choice(JUNK)
    elif which == 3 and isinstance(old, str) and old in OPERATORS:
        holder[key] = rng.choice(OPERATORS)
    elif isinstance(old, bool):
        holder[key] = not old
    elif isinstance(old, int):
        holder[key] = rng.choice((old + 1, old - 1, -old, old * 8, 0, 1, 64, 2048, 1 << 31))
    else:  # another of the same kind: names, ids, expressions
        same = [h[k] for h, k in everywhere if k == key and type(h[k]) is type(old)]
        holder[key] = json.loads(json.dumps(rng.choice(same)))


class SourceTarget(Target):
    """The target for P4 source in which tokens were changed. The compiler must report errors with
    their places, or return JSON that our switch loads."""

    name = "p4"
    inputs = 2000

    def __init__(self, corpus: Corpus) -> None:
        super().__init__(corpus)
        self.paths = corpus.programs()
        self.tokens: dict[str, list[str]] = {}
        self.words = [*sorted(KEYWORDS), *TOKEN_TEXT.split()]

    def pieces(self, rng: random.Random) -> list[str]:
        """Returns the tokens of a packet test's program or of a random program, including those of
        the libraries."""
        diagnostics = Diagnostics()
        if rng.random() < 0.2:
            seed = rng.randrange(50)
            key, text = str(seed), draw_case(seed).program
            if key not in self.tokens:
                with tempfile.TemporaryDirectory() as folder:
                    path = Path(folder) / "random.p4"
                    path.write_text(text)
                    text = source_text(path, diagnostics)
        else:
            path = rng.choice(self.paths)
            key = str(path)
            text = "" if key in self.tokens else source_text(path, diagnostics)
        if key not in self.tokens:
            found = tokenize(text, "fuzz.p4", diagnostics)
            self.tokens[key] = [t.text for t in found if t.text]
        return self.tokens[key]

    def draw(self, rng: random.Random) -> str:
        tokens = list(self.pieces(rng))
        first = tokens.index("V1Switch") + 40
        for _ in range(rng.choice((1, 1, 2, 3, 5))):
            at, other = rng.randrange(first, len(tokens)), rng.randrange(first, len(tokens))
            which = rng.randrange(5)
            if which == 0:
                del tokens[at]
            elif which == 1:
                tokens.insert(at, tokens[other])
            elif which == 2:
                tokens[at] = rng.choice(self.words)
            elif which == 3:
                tokens[at], tokens[other] = tokens[other], tokens[at]
            else:  # a whole part at another place
                part = tokens[other : other + rng.randrange(1, 30)]
                tokens[at:at] = part
        return " ".join(tokens)

    def survive(self, text: str) -> None:
        diagnostics = Diagnostics()
        typed = check_text(text, "fuzz.p4", diagnostics)
        assert (typed is None) == diagnostics.failed, "errors and no program, or neither"
        if typed is None:
            assert render(diagnostics.entries, {"fuzz.p4": text})
            return
        emitted = emit(typed, diagnostics)
        assert (emitted is None) == diagnostics.failed, "errors and no JSON, or neither"
        if emitted is not None:
            translate(Program.parse(json.dumps(emitted[0])))


class ScriptTarget(Target):
    """The target for STF scripts in which words were changed. A script runs on the program to which
    it belongs."""

    name = "stf"
    inputs = 1000
    WORDS = SCRIPT_TEXT.split()

    def __init__(self, corpus: Corpus) -> None:
        super().__init__(corpus)
        self.scripts = corpus.scripts()[::4]
        self.programs: dict[str, tuple[Binder, Program, Path]] = {}

    def draw(self, rng: random.Random) -> str:
        path = rng.choice(self.scripts)
        lines = path.read_text().splitlines()
        for _ in range(rng.randrange(1, 5)):
            at = rng.randrange(len(lines))
            words = re.split(r"(\s+|[:(),=])", lines[at])
            spot = rng.randrange(len(words))
            which = rng.randrange(4)
            if which == 0:
                words[spot] = rng.choice(self.WORDS)
            elif which == 1:
                words.insert(spot, rng.choice(self.WORDS))
            elif which == 2:
                del words[spot]
            else:
                lines.insert(rng.randrange(len(lines)), lines[at])
            lines[at] = "".join(words)
        return "\n".join([f"#{path.with_suffix('.p4')}", *lines])

    def survive(self, text: str) -> None:
        program_path = text.split("\n", 1)[0][1:]
        if program_path not in self.programs:
            document = compiled(Path(program_path))
            program = Program.parse(document)
            library = build_library(translate(program), quick=True)
            self.programs[program_path] = (Binder(json.loads(document)), program, library)
        binder, program, library = self.programs[program_path]
        with Pipeline(program, library) as pipeline, contextlib.suppress(StfError):
            Run(binder, Library(pipeline)).execute(parse(text))
