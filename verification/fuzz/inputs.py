"""The kinds of input, with a fuzz target for each. A target's method `survive(text)` raises an
exception when something is wrong."""

from __future__ import annotations

import contextlib
import json
import random
import re
import tempfile
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from agglab.testbed.paths import P4_FOLDER, SCENARIO_FOLDER
from agglab.testbed.scenario import ScenarioError, load
from p4native.compiler.backend import emit
from p4native.compiler.diagnostics import Diagnostics, render
from p4native.compiler.frontend import check_text
from p4native.compiler.preprocess import INCLUDE_DIR, Options, preprocess
from p4native.compiler.syntax.lexer import KEYWORDS, tokenize
from p4native.stf import Binder, Library, Run, StfError, parse
from p4native.switch import Pipeline, Program, ProgramError
from p4native.switch.build import build_library
from p4native.switch.translate import translate
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
VALUE_TEXT = """1 0 -1 1e9 1mbit 5ms 1% true auto rack x [] {} [1,2] {a:1} null 0x10 1_000 .nan
2026-01-01 99999999999999999999999 "" *a &a !!python/object:os.system"""
OPERATORS = OPERATOR_TEXT.split()


class Target(ABC):
    """The target for one kind of input. name: the name of the kind. Each process creates a target
    once."""

    name: str

    def __init__(self, tests: Path) -> None:
        """Stores the folder of packet tests. The targets change the programs and scripts in it to
        make inputs."""
        self.tests = tests

    @abstractmethod
    def draw(self, rng: random.Random) -> str:
        """Returns an input as text."""

    def prepare(self, text: str) -> None:  # noqa: B027 - most inputs need nothing
        """Builds what the input needs before its time limit begins, because the C compiler may take
        longer than the limit."""

    @abstractmethod
    def survive(self, text: str) -> None:
        """Gives the input to the code under test. An exception that this method raises is a
        finding."""


def compiled(path: Path, text: str | None = None) -> str:
    """Returns the BMv2 JSON of a program, which must compile. text: source to compile in place of
    the file's contents."""
    diagnostics = Diagnostics()
    if text is None:
        text = source_text(path, diagnostics)
    typed = check_text(text, str(path), diagnostics)
    emitted = None if typed is None else emit(typed, diagnostics)
    assert emitted is not None, render(diagnostics.entries)
    return json.dumps(emitted[0])


def source_text(path: Path, diagnostics: Diagnostics) -> str:
    includes = (str(INCLUDE_DIR), str(P4_FOLDER / "include"), str(path.parent / "include"))
    text = preprocess(str(path), Options(includes=includes), diagnostics)
    assert text is not None, render(diagnostics.entries)
    return text


class JsonTarget(Target):
    """The target for BMv2 JSON in which members were changed. The switch must refuse it with a
    message of one line, or translate it to C that compiles."""

    name = "json"
    BUILT = 0.02  # of what is accepted: the C compiler takes its time

    def __init__(self, tests: Path) -> None:
        super().__init__(tests)
        self.paths = sorted(tests.glob("*.p4"))
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

    def __init__(self, tests: Path) -> None:
        super().__init__(tests)
        self.paths = sorted(tests.glob("*.p4"))
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
    WORDS = SCRIPT_TEXT.split()

    def __init__(self, tests: Path) -> None:
        super().__init__(tests)
        self.scripts = sorted(tests.glob("*.stf"))[::4]
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
        return "\n".join([f"#{path.stem}", *lines])

    def survive(self, text: str) -> None:
        stem = text.split("\n", 1)[0][1:]
        if stem not in self.programs:
            document = compiled(self.tests / f"{stem}.p4")
            program = Program.parse(document)
            library = build_library(translate(program), quick=True)
            self.programs[stem] = (Binder(json.loads(document)), program, library)
        binder, program, library = self.programs[stem]
        with Pipeline(program, library) as pipeline, contextlib.suppress(StfError):
            Run(binder, Library(pipeline)).execute(parse(text))


class ScenarioTarget(Target):
    """The target for scenarios in which lines and values were changed."""

    name = "scenario"
    VALUES = VALUE_TEXT.split()

    def __init__(self, tests: Path) -> None:
        super().__init__(tests)
        self.texts = [path.read_text() for path in sorted(SCENARIO_FOLDER.glob("*.yaml"))]

    def draw(self, rng: random.Random) -> str:
        lines = rng.choice(self.texts).splitlines()
        for _ in range(rng.randrange(1, 5)):
            at = rng.randrange(len(lines))
            key, colon, _ = lines[at].partition(":")
            which = rng.randrange(5)
            if which == 0:
                lines[at] = f"{key}{colon} {rng.choice(self.VALUES)}"
            elif which == 1:
                del lines[at]
            elif which == 2:
                lines.insert(at, rng.choice(rng.choice(self.texts).splitlines()))
            elif which == 3:
                lines[at] = " " * rng.randrange(6) + lines[at].strip()
            else:
                lines[at] = re.sub(
                    r"\d+", lambda m: rng.choice([m[0] + "0", "0", "-" + m[0]]), lines[at]
                )
            if not lines:
                break
        return "\n".join(lines) + "\n"

    def survive(self, text: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "fuzz.yaml"
            path.write_bytes(text.encode(errors="surrogateescape"))
            with contextlib.suppress(ScenarioError):
                load(path)
