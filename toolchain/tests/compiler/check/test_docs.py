"""docs/compiler.md says what the compiler has: stages, kinds of warnings, refused flags."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from p4native.compiler.options import REFUSED, STAGES, WARNING_KINDS, WITHOUT_EFFECT

TEXT = (Path(__file__).resolve().parents[3] / "docs/compiler.md").read_text()
WARNED = Path(__file__).parent / "warned"
# of the C preprocessor; of the back end
OF_OTHERS = {"preprocessor", "unsupported"}


def first_cells(heading: str) -> list[str]:
    """What stands in backquotes in the first column of the table after a heading."""
    section = TEXT.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


def test_stages() -> None:
    assert tuple(first_cells("Stages")) == STAGES


def test_kinds_of_warnings() -> None:
    assert sorted(first_cells("Diagnostics")) == list(WARNING_KINDS)


def test_flags() -> None:
    assert set(first_cells("Flags")) == set(REFUSED)
    assert all(f"`{flag}`" in TEXT for flag in WITHOUT_EFFECT)


@pytest.mark.parametrize("kind", sorted({*WARNING_KINDS} - OF_OTHERS))
def test_every_kind_has_an_example(kind: str) -> None:
    tag = f"[--Wdisable={kind}]"
    assert any(tag in path.read_text() for path in WARNED.glob("*.err"))


def test_no_warning_of_an_unlisted_kind() -> None:
    tags = re.findall(r"--Wdisable=([a-z-]+)", "".join(p.read_text() for p in WARNED.glob("*.err")))
    assert set(tags) <= set(WARNING_KINDS)
