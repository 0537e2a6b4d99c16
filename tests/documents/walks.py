"""The walks of labs/: documents that show commands, what they print, and changes of a program, one
after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pages import ROOT

WALKS = tuple(sorted((ROOT / "labs").glob("*-walk.md")))
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LEFT_OUT = "[...]"
"""What stands in a line for a part of it that the document leaves out."""


@dataclass
class Step:
    """Command lines that are typed one after the other, and what the document shows of their
    output. before, after: a text of the program, and what it is replaced by before the commands;
    empty for none."""

    lines: list[str]
    before: str = ""
    after: str = ""
    shown: list[str] = field(default_factory=list)


def steps(page: Path) -> list[Step]:
    """Returns the steps of a walk. A block without a language shows the output of the commands
    before it, and two blocks of P4 are a text and what replaces it."""
    made: list[Step] = []
    texts: list[str] = []
    for language, block in BLOCK.findall(page.read_text()):
        if language == "p4":
            texts.append(block)
        elif language == "sh":
            before, after = texts or ("", "")
            made.append(Step(block.splitlines(), before, after))
            texts = []
        else:
            made[-1].shown += [line for line in block.splitlines() if line != "..."]
    assert not texts, f"{page.name} ends with a change that nobody tries"
    return made


def missing(shown: list[str], output: str) -> Iterator[str]:
    """Yields the lines of a document that an output does not have, in their order. A line may be
    the beginning of one of the output."""
    lines = iter(output.splitlines())
    for line in shown:
        pattern = re.compile(".*".join(map(re.escape, line.split(LEFT_OUT))))
        if not any(pattern.match(each) for each in lines):
            yield line
            return
