"""The layers: who may import whom, and that no import leads back to where it began."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PARTS = {"topologies", "hosts", "compiler", "switch"}
ALLOWED = {part: {part} for part in PARTS} | {
    "testbed": {"testbed", *PARTS},
    "verification": {"verification", "testbed", *PARTS},
    "benchmarks": {"benchmarks", "verification", "testbed", *PARTS},
}
# Within the testbed. `network` and `virtual` implement what `control` asks of a network; neither
# knows the other, and control knows neither.
APART = {
    "control": {"network", "virtual", "real", "report", "metrics", "summary", "cli", "run"},
    "network": {"control", "virtual", "report", "metrics", "summary", "cli", "run", "experiment"},
    "virtual": {"control", "network", "real", "report", "metrics", "summary", "cli", "run"},
    "scenario": {"control", "network", "virtual", "real", "report", "metrics", "run", "cli"},
    "systems": {"control", "network", "virtual", "real", "report", "metrics", "run", "cli"},
    "plan": {"control", "network", "virtual", "real", "report", "metrics", "run", "cli"},
    "impairments": {"control", "network", "virtual", "real", "report", "scenario", "run", "cli"},
}


def modules() -> dict[str, Path]:
    """Every module of ours by its name in Python."""
    found = {}
    for folder in ALLOWED:
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            found[".".join(parts)] = path
    return found


MODULES = modules()


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All of a module but what is for type checkers alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        yield child
        yield from statements(child)


def imported(path: Path) -> set[str]:
    """The modules of ours that a file imports, in-function imports included."""
    names: set[str] = set()
    for node in statements(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: a relative import"
            names |= {_held(node.module, alias.name) for alias in node.names}
    ours = {name.removeprefix("agglab.") for name in names}
    return {name for name in ours if name in MODULES}


def _held(module: str, name: str) -> str:
    """Of `from module import name`: a module in a package, or the module that defines the name."""
    return f"{module}.{name}" if f"{module}.{name}".removeprefix("agglab.") in MODULES else module


IMPORTS = {name: imported(path) - {name} for name, path in MODULES.items()}


@pytest.mark.parametrize("folder", sorted(ALLOWED))
def test_imports_point_one_way(folder: str) -> None:
    own = {name for name in MODULES if name.split(".")[0] == folder}
    assert own, f"{folder}/ holds no Python"
    for name in sorted(own):
        foreign = {other.split(".")[0] for other in IMPORTS[name]} - ALLOWED[folder]
        assert not foreign, f"{name} imports {sorted(foreign)}"


@pytest.mark.parametrize("package", sorted(APART))
def test_the_testbeds_layers_know_only_what_lies_below(package: str) -> None:
    start = f"testbed.{package}"
    own = {name for name in MODULES if name == start or name.startswith(f"{start}.")}
    assert own, f"testbed/{package}/ holds no Python"
    for name in sorted(own):
        known = {other.split(".")[1] for other in IMPORTS[name] if other.startswith("testbed.")}
        assert not known & APART[package], f"{name} imports {sorted(known & APART[package])}"


def test_no_import_leads_back() -> None:
    """A package's `__init__` gathers what its modules hold; they do not import it."""
    order: list[str] = []
    state: dict[str, str] = {}

    def visit(name: str, way: tuple[str, ...]) -> None:
        assert state.get(name) != "open", f"a circle: {' -> '.join([*way, name])}"
        if name in state:
            return
        state[name] = "open"
        for other in sorted(IMPORTS[name]):
            visit(other, (*way, name))
        state[name] = "closed"
        order.append(name)

    for name in MODULES:
        visit(name, ())
    assert len(order) == len(MODULES)


def test_only_agglab_is_imported_by_name() -> None:
    """Not `hosts` or `topologies`, which a user's own repository may have."""
    for name, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text())):
            roots = set()
            if isinstance(node, ast.Import):
                roots = {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                roots = {node.module.split(".")[0]}
            assert not roots & (set(ALLOWED) - {"benchmarks"}), f"{name} imports {sorted(roots)}"


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


def test_the_wheel_has_every_package() -> None:
    """pyproject.toml lists them, since folders and names in Python differ."""
    listed = {
        line.strip().strip('",').removeprefix("agglab.")
        for line in (ROOT / "pyproject.toml").read_text().splitlines()
        if line.startswith('    "agglab.')
    }
    holding = {path.parent.relative_to(ROOT) for path in MODULES.values()}
    needed = {".".join(folder.parts) for folder in holding if folder.parts[0] != "benchmarks"}
    assert needed <= listed, sorted(needed - listed)
    assert all((ROOT / name.replace(".", "/")).is_dir() for name in listed)


SYSTEMS = sorted(path.parent.name for path in (ROOT / "testbed/systems").glob("*/__init__.py"))
NAMELESS = ("testbed", "topologies", "compiler", "switch")


@pytest.mark.parametrize("system", SYSTEMS)
def test_nothing_but_its_own_parts_names_a_system(system: str) -> None:
    """But for one line, which says what a scenario runs that names none. A short name may be a word
    or a part of one: only quoted, or in a path, does it name the system."""
    is_short = len(system) <= 4
    short = rf"""["'/`]{system}["'/.`]"""
    word = re.compile(short if is_short else system, re.IGNORECASE)
    for folder in NAMELESS[:2] if is_short else NAMELESS:  # a packet ring is no system
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".py", ".c", ".h", ".p4") or f"systems/{system}/" in str(path):
                continue
            lines = [x for x in path.read_text().splitlines() if x != f'DEFAULT = "{system}"']
            found = [line for line in lines if word.search(line)]
            assert not found, f"{path.relative_to(ROOT)}: {found[0]}"


def test_a_system_knows_no_other() -> None:
    for name in SYSTEMS:
        own = {module for module in MODULES if module.startswith(f"testbed.systems.{name}")}
        allowed = own | {module for module in MODULES if module.startswith(f"hosts.systems.{name}")}
        others = {o for module in own for o in IMPORTS[module]} - allowed
        foreign = {o for o in others if any(f"systems.{each}" in o for each in SYSTEMS)}
        assert own and not foreign, f"{name} imports {sorted(foreign)}"


def test_scenario_knows_of_systems_only_what_they_promise() -> None:
    """A system's modules import `scenario`, which asks the registry for the System."""
    for name in (name for name in MODULES if name.startswith("testbed.scenario")):
        foreign = {other for other in IMPORTS[name] if other.startswith("testbed.systems.")}
        assert foreign <= {"testbed.systems.base"}, f"{name} imports {sorted(foreign)}"
