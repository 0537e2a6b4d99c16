"""Imports point one way: verification -> testbed -> {topologies, hosts, compiler, switch}."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PARTS = {"topologies", "hosts", "compiler", "switch"}
ALLOWED = {part: {part} for part in PARTS} | {
    "testbed": {"testbed", *PARTS},
    "verification": {"verification", "testbed", *PARTS},
    "benchmarks": {"benchmarks", "testbed", *PARTS},
}


def imported(path: Path) -> set[str]:
    """Top-level names a file imports absolutely, in-function imports included."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.split(".")[0])
    return names


@pytest.mark.parametrize("folder", sorted(ALLOWED))
def test_imports_point_one_way(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files, f"{folder}/ holds no Python"
    for path in files:
        foreign = imported(path) & set(ALLOWED) - ALLOWED[folder]
        assert not foreign, f"{path.relative_to(ROOT)} imports {sorted(foreign)}"


def test_p4_folder_holds_no_python() -> None:
    """The p4runtime package's import name is `p4`: a Python file here would hide it."""
    assert not list((ROOT / "p4").rglob("*.py"))


@pytest.mark.parametrize("name", ["v1", "config", "server"])
def test_p4_folder_hides_no_package_of_p4runtime(name: str) -> None:
    assert not (ROOT / "p4" / name).exists()


def test_layout() -> None:
    """The folders and files the project's users named."""
    code = ["topologies", "p4", "compiler", "switch", "hosts", "testbed", "verification"]
    folders = [*code, "scenarios", "results", "tests", "benchmarks", "docs"]
    for name in [*folders, "Makefile", "README.md", "LICENSE"]:
        assert (ROOT / name).exists(), name
