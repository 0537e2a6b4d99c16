"""docs/interface.md: the modules and names that it lists exist, and its examples run."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1]
PAGE = (FOLDER / "docs/interface.md").read_text()
SECTION = re.compile(r"^## (p4native[\w.]*)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| (`[^|]*`) \|", re.MULTILINE)
EXAMPLE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def listed(text: str) -> dict[str, list[str]]:
    """The names that the table of each module has, by the name of the module."""
    rows = {module: " ".join(ROW.findall(body)) for module, body in SECTION.findall(text)}
    return {module: re.findall(r"`(\w+)`", cells) for module, cells in rows.items()}


def block(page: str, start: str) -> str:
    """The code block of a page that begins with these words."""
    (text,) = re.findall(rf"^```\w*\n({start}.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return str(text)


@pytest.mark.parametrize("module", sorted(listed(PAGE)))
def test_what_is_listed_exists(module: str) -> None:
    names = listed(PAGE)[module]
    assert names, f"the section on {module} lists nothing"
    assert [name for name in names if not hasattr(importlib.import_module(module), name)] == []


def test_what_a_package_offers_is_listed() -> None:
    pages = listed(PAGE)
    for module in pages:
        offered = getattr(importlib.import_module(module), "__all__", ())
        assert set(offered) <= set(pages[module]), module


def test_every_module_has_an_example() -> None:
    assert [module for module, body in SECTION.findall(PAGE) if not EXAMPLE.search(body)] == []


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "include").mkdir()
    for name, page, start in (
        ("prog.p4", "README.md", "#include"),
        ("reflect.stf", "docs/stf.md", "# destination"),
    ):
        (tmp_path / name).write_text(block((FOLDER / page).read_text(), start))
    names: dict[str, object] = {}
    for module, body in SECTION.findall(PAGE):
        for example in EXAMPLE.findall(body):
            exec(compile(example, f"interface.md, {module}", "exec"), names)


def test_a_list_is_read_from_tables() -> None:
    page = "## p4native.x\n| name | is |\n|---|---|\n| `a`, `b` | `c` |\n\n| `a.part` | d |\n"
    assert listed(page) == {"p4native.x": ["a", "b"]}
