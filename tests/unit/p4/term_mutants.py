"""Leaves out, one at a time, terms of the conditions in a program of p4/, and says which of these
changes neither a conversation of its rules nor the tests in this folder notice.

    python tests/unit/p4/term_mutants.py esa include/pooling.p4     # one file of a program
    python tests/unit/p4/term_mutants.py switchml                   # it, and all that it includes

A change that nothing notices is either in a state that no test reaches, which one then has to, or
without any effect; REVIEWED lists the latter with the reason. The exit code is 1 if there are
others. A file takes from ten minutes to an hour.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from conversations import Conversation
from rules import ROOT, Rules, every
from tables import write_entries

from agglab.verification.mutants import checks
from agglab.verification.mutants.workspace import Workspace
from p4native.switch import Pipeline

SEEDS = 6
COMPILE_LIMIT_S = 120
HERE = Path(__file__).parent
ALSO_TESTED_IN = {
    "atp": ("pooling",),
    "esa": ("pooling",),
    "switchml": ("deadline", "half", "narrow"),
}
SHARED_TESTS = [HERE / f"test_{name}.py" for name in ("packet_checks", "hierarchy", "known_sums")]
TOKEN = re.compile(
    r"(?P<skip>\s+|//[^\n]*|/\*.*?\*/|^\#[^\n]*(?:\\\n[^\n]*)*)|\w+|&&|\|\||==|!=|<=|>=|<<|>>|\+\+|.",
    re.MULTILINE | re.DOTALL,
)
OPENING, CLOSING = "([{", ")]}"
ENDS = {",", ";", "=", "?", ":", "{", "}", "return"}
"""Tokens that end an operand of any operator, outside its brackets."""
ENDS_OF = {"&&": ENDS | {"&&", "||"}, "||": ENDS | {"||"}, "?": ENDS - {"?"}}
NEIGHBOURS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}

REVIEWED: dict[tuple[str, str], str] = {}
"""(file, change as it is printed) -> why no program that keeps the rules can tell it apart."""


@dataclass(frozen=True)
class Token:
    text: str
    begin: int
    end: int


@dataclass(frozen=True)
class Change:
    """A changed program text: `old`, at this line, became `new`."""

    line: int
    old: str
    new: str
    text: str

    def __str__(self) -> str:
        return f"{self.line}: {squeezed(self.old)}  ->  {squeezed(self.new)}"


def squeezed(text: str) -> str:
    return " ".join(text.split())


def tokens(text: str) -> list[Token]:
    return [
        Token(match[0], match.start(), match.end())
        for match in TOKEN.finditer(text)
        if match["skip"] is None
    ]


def extent(found: Sequence[Token], index: int, step: int, ends: set[str]) -> int:
    """Returns the index of the outermost token of the operand beside an operator. step: -1 for the
    operand on its left, 1 for the one on its right."""
    inner, outer = (CLOSING, OPENING) if step < 0 else (OPENING, CLOSING)
    depth, place = 0, index + step
    while 0 <= place < len(found):
        text = found[place].text
        if depth == 0 and (text in outer or text in ends):
            break
        depth += (text in inner) - (text in outer)
        place += step
    return place - step


def changes(text: str) -> Iterator[Change]:
    """Yields each program in which a term, a branch of a choice or the equality in a comparison is
    missing. No two are the same."""
    seen = {text}
    for begin, end, new in edits(text):
        changed = text[:begin] + new + text[end:]
        if changed not in seen:
            seen.add(changed)
            yield Change(text.count("\n", 0, begin) + 1, text[begin:end], new, changed)


def edits(text: str) -> Iterator[tuple[int, int, str]]:
    """Yields (begin, end, new text) of each change."""
    found = tokens(text)
    for index, token in enumerate(found):
        if token.text in ("&&", "||"):
            first = found[extent(found, index, -1, ENDS_OF[token.text])].begin
            last = found[extent(found, index, 1, ENDS_OF[token.text])].end
            yield first, last, text[first : token.begin]
            yield first, last, text[token.end : last]
        elif token.text == "?":
            yield from choices(text, found, index)
        elif token.text in NEIGHBOURS and text[token.begin - 1] == text[token.end] == " ":
            yield token.begin, token.end, NEIGHBOURS[token.text]


def choices(text: str, found: Sequence[Token], index: int) -> Iterator[tuple[int, int, str]]:
    """Yields the edits that leave one branch of `condition ? one : other`."""
    first = found[extent(found, index, -1, ENDS_OF["?"])].begin
    colon = extent(found, index, 1, {":", ";"}) + 1
    last = found[extent(found, colon, 1, {",", ";"})].end
    yield first, last, f"({text[found[index].end : found[colon].begin]})"
    yield first, last, f"({text[found[colon].end : last]})"


def included(file: str) -> list[str]:
    """Returns the file and all that it includes, by their paths in p4/."""
    names = [file]
    for name in names:
        folder = Path(name).parent
        text = (ROOT / "p4" / name).read_text(encoding="utf-8")
        for other in re.findall(r'^#include "(\S+)"', text, re.MULTILINE):
            path = str(folder / other)
            names += [path] if path not in names else []
    return names


def conversations(rules: Rules) -> list[Conversation]:
    drawn = [make(random.Random(s)) for make in rules.conversations.values() for s in range(SEEDS)]
    attacks = [rules.attack(system, 1) for system in rules.systems]
    return [*drawn, *attacks, rules.deep_and_short(), rules.forwarded()]


def goes_as_said(product: Path, said: Sequence[Conversation]) -> bool:
    return all(_goes_as_said(Pipeline.load(product), conversation) for conversation in said)


def _goes_as_said(pipeline: Pipeline, said: Conversation) -> bool:
    write_entries(pipeline, said.setup)
    for step in said.steps:
        if sorted(pipeline.process(step.port, step.frame)) != sorted(map(tuple, step.out)):
            return False
    return all(_packets(pipeline, name) == count for name, count in said.counters.items())


def _packets(pipeline: Pipeline, name: str) -> int:
    stem, _, index = name.partition("(")
    (full,) = (c for c in pipeline.program.counters if c.endswith(f".{stem}"))
    return pipeline.counters.read(full, int(index[:-1]))[0]


def compiled(rules: Rules, space: Workspace) -> Path | None:
    """Compiles the program in the copy; None if it is no program any more."""
    product = space.folder / "build" / "product.json"
    product.parent.mkdir(exist_ok=True)
    words = [
        "-m",
        "p4native.compiler",
        f"p4/{rules.program}.p4",
        "-o",
        str(product),
        *rules.flags(),
    ]
    return product if space.python(words, COMPILE_LIMIT_S).code == 0 else None


def survivors(rules: Rules, file: str, space: Workspace) -> Iterator[Change]:
    """Yields the changes of a file that nothing notices. The rules are asked first, because they
    answer faster than tests."""
    source, said = space.folder / "p4" / file, conversations(rules)
    original = source.read_text(encoding="utf-8")
    every_change = list(changes(original))
    for number, change in enumerate(every_change, 1):
        print(f"{number} of {len(every_change)} in {file}", end="\r", file=sys.stderr)
        source.write_text(change.text, encoding="utf-8")
        product = compiled(rules, space)
        if product and goes_as_said(product, said) and not checks.unit(space, tests_of(rules)).by:
            yield change
    source.write_text(original, encoding="utf-8")


def tests_of(rules: Rules) -> list[str]:
    """Returns the tests in this folder that compile the program."""
    names = {rules.program, *rules.systems, *ALSO_TESTED_IN.get(rules.program, ())}
    files = [HERE / f"test_{name}.py" for name in sorted(names)]
    return [str(file.relative_to(ROOT)) for file in (*files, *SHARED_TESTS) if file.exists()]


def main(program: str, *files: str) -> int:
    (rules,) = (rules for rules in every() if rules.program == program)
    unreviewed = 0
    with tempfile.TemporaryDirectory() as name:
        space = Workspace(ROOT, Path(name, "copy"), Path(name, "cache"))
        product = compiled(rules, space)
        assert product and goes_as_said(product, conversations(rules)), "without a change"
        for file in files or included(f"{program}.p4"):
            for change in survivors(rules, file, space):
                reason = REVIEWED.get((file, str(change).partition(": ")[2]))
                unreviewed += reason is None
                print(f"{file}:{change}  {f'({reason})' if reason else 'SURVIVED'}", flush=True)
    return min(unreviewed, 1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
