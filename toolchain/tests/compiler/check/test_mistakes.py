"""docs/mistakes.md: the mistakes that beginners make most, with what the compiler says to each.

The table is made from the golden messages. `BLESS=1 pytest ...` (make bless) writes it anew.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs/mistakes.md"
TOPICS = {
    "Signs and words": (
        *("semicolon_missing", "brace_of_if_end", "assign_in_condition", "increment", "elif"),
        *("while", "if_without_parentheses", "define_semicolon", "c_type", "printf"),
    ),
    "Types": ("if_bit", "not_of_bit", "bit_and", "assigned_too_wide", "fraction"),
    "Names": ("header_without_hdr", "field_misspelt", "control_named_ingress", "drop"),
    "Parsers": ("transition_in_if", "state_start_missing"),
    "Tables and actions": (
        *("action_below_table", "table_called", "if_table", "table_in_action"),
        *("statement_outside_apply", "key_without_kind"),
    ),
    "Registers and metadata": ("register_read_result", "register_index", "egress_port"),
}
MESSAGE = re.compile(r"^[^:]+:\d+:\d+: (?:error|warning): (?P<text>.*?)(?: \[--.*)?$")
HINT = "  hint: "


def golden(name: str) -> list[str]:
    (path,) = HERE.glob(f"*/student_{name}.err")
    return path.read_text().splitlines()


def row(name: str) -> str:
    """One mistake: the line where it is noticed, the message, and the hint."""
    first, source, *rest = golden(name)
    message = MESSAGE.match(first)
    assert message is not None, first
    hint = next((line.removeprefix(HINT) for line in rest if line.startswith(HINT)), "")
    cells = (f"`{source.strip()}`", plain(message["text"]), plain(hint))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def plain(text: str) -> str:
    """A message without the names of the test's files, and so that no `<...>` is taken for HTML."""
    text = re.sub(r"student_\w+\.p4", "prog.p4", text.replace("<include>/", ""))
    parts = text.split("`")
    return "`".join(p if n % 2 else p.replace("<", "\\<") for n, p in enumerate(parts))


def tables() -> str:
    parts = []
    for topic, names in TOPICS.items():
        rows = "\n".join(map(row, names))
        parts.append(
            f"## {topic}\n| written | the compiler says | its hint |\n|---|---|---|\n{rows}\n"
        )
    return "\n".join(parts)


def test_the_page_has_what_the_compiler_says() -> None:
    text = PAGE.read_text()
    begin = text.index(f"## {next(iter(TOPICS))}\n")
    if os.environ.get("BLESS"):
        PAGE.write_text(text[:begin] + tables())
    assert PAGE.read_text() == text[:begin] + tables(), "read the difference; BLESS=1 accepts it"


def test_they_are_thirty() -> None:
    names = [name for names in TOPICS.values() for name in names]
    assert len(names) == len({*names}) == 30


@pytest.mark.parametrize("path", sorted(HERE.glob("*/student_*.err")), ids=lambda path: path.stem)
def test_one_mistake_has_one_message(path: Path) -> None:
    assert len([line for line in path.read_text().splitlines() if MESSAGE.match(line)]) == 1


@pytest.mark.parametrize("name", [name for names in TOPICS.values() for name in names])
def test_each_message_says_what_to_write(name: str) -> None:
    text = "\n".join(golden(name))
    assert HINT in text or "expected ';'" in text
