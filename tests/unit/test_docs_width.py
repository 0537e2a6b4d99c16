"""README.md and other documents are at most 120 columns wide; tables are as they are."""

from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "labs", "systems", "toolchain/docs", "toolchain/tests")
HERE = (page for top in (ROOT, ROOT / "toolchain") for page in top.glob("*.md"))
PAGES = sorted([*HERE, *(page for name in FOLDERS for page in (ROOT / name).rglob("*.md"))])
COLUMNS = 120


def too_wide(text: str) -> Iterator[tuple[int, str]]:
    """Number and text of each line that is."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("|") and len(line) > COLUMNS:
            yield number, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_at_most_120_columns_wide(page: Path) -> None:
    assert list(too_wide(page.read_text())) == []


def test_a_wide_line_is_found_and_tables_are_not() -> None:
    wide = "x" * (COLUMNS + 1)
    text = f"{wide}\n| {wide} |\n```\n{wide}\n```\n- {wide}\n{wide[1:]}\n"
    assert [number for number, _ in too_wide(text)] == [1, 4, 6]
