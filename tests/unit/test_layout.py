"""The layers: who may import whom, and that no import leads back to where it began."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from agglab.testbed import systems
from agglab.testbed.schema.scenario import Scenario

ROOT = Path(__file__).resolve().parents[2]
PLACES = {"p4native": "toolchain/p4native"}
"""Where packages lie whose folders have other names."""
BELOW = {"topologies", "hosts", "p4native"}
ENDPOINTS = "endpoints of systems"
ALLOWED = {
    "p4native": {"p4native"},
    "topologies": {"topologies"},
    "hosts": {"hosts", "p4native"},
    "testbed": {"testbed", *BELOW},
    ENDPOINTS: {ENDPOINTS, "hosts"},
    "systems": {"systems", ENDPOINTS, "testbed", *BELOW},
    "verification": {"verification", "systems", ENDPOINTS, "testbed", *BELOW},
    "benchmarks": {"benchmarks", "verification", ENDPOINTS, "testbed", *BELOW},
}
"""Of each part, whose modules it may import. A system has two halves in one folder: what its
`endpoint.py` imports runs at hosts; the rest is what the testbed asks."""
FOLDERS = sorted({*ALLOWED} - {ENDPOINTS})
LAYERS = (
    ("base",),  # errors, exit codes, paths, the kernel
    ("schema",),  # what a scenario may contain, as values
    ("systems",),  # what the testbed asks of a system
    ("scenario",),  # reads, checks and completes a scenario
    ("run",),  # conducts one run on any network
    ("real", "virtual"),  # the two networks
    ("judge",),  # what the counts of a run say about it
    ("results",),  # what a result folder holds
    ("report",),  # figures and pages of a result folder
    ("experiment",),  # from checked scenarios to result folders
    ("cli",),  # the commands
)
"""The packages of the testbed. Each imports only packages of the lines above its own: there are no
circles, and the packages of one line do not know each other."""
LOOSE = {"__init__.py", "__main__.py"}
"""What lies in testbed/ beside the packages."""


def folder_of(module: str) -> str:
    """Whose rules a module follows. What a system brings for its own verification lies in its
    place, and nothing else of it imports that."""
    if module in AT_HOSTS:
        return ENDPOINTS
    parts = module.split(".")
    return "verification" if parts[0] == "systems" and "verification" in parts else parts[0]


def home_of(folder: str) -> Path:
    """The folder that holds a package of ours."""
    return ROOT / PLACES.get(folder, folder)


def modules() -> dict[str, Path]:
    """Every module of ours by its name in Python."""
    found = {}
    for folder in FOLDERS:
        home = home_of(folder)
        for path in sorted(home.rglob("*.py")):
            parts = (folder, *path.relative_to(home).with_suffix("").parts)
            if "tests" in parts:
                continue
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            found[".".join(parts)] = path
    return found


MODULES = modules()


@functools.cache
def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text())


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All of a module but what is for type checkers alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        yield child
        yield from statements(child)


def imported(module: str) -> set[str]:
    """The modules of ours that one imports, in-function imports included."""
    names: set[str] = set()
    for node in statements(tree(module)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{module}: a relative import"
            names |= {_held(node.module, alias.name) for alias in node.names}
    ours = {name.removeprefix("agglab.") for name in names}
    return {name for name in ours if name in MODULES}


def _held(module: str, name: str) -> str:
    """Of `from module import name`: a module in a package, or the module that defines the name."""
    return f"{module}.{name}" if f"{module}.{name}".removeprefix("agglab.") in MODULES else module


IMPORTS = {name: imported(name) - {name} for name in MODULES}


def at_hosts() -> set[str]:
    """The modules of systems that run at hosts: their endpoints, and what these import."""
    waiting = [name for name in MODULES if re.fullmatch(r"systems\.\w+\.endpoint", name)]
    seen = {name for name in MODULES if re.fullmatch(r"systems(\.\w+)?", name)}
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += [other for other in IMPORTS[name] if other.startswith("systems.")]
    return seen


AT_HOSTS = at_hosts() | {"systems.switchml.all_reducer"}


def packages(module: str) -> set[str]:
    """The packages that a module lies in."""
    parts = module.split(".")
    return {".".join(parts[:length]) for length in range(1, len(parts))} & set(MODULES)


def executed(module: str) -> set[str]:
    """What Python executes for a module's imports: the modules, and the packages that they lie in,
    except those whose import has begun."""
    begun = packages(module) | {module}
    return IMPORTS[module].union(*map(packages, IMPORTS[module])) - begun


@pytest.mark.parametrize("folder", sorted(ALLOWED))
def test_imports_point_one_way(folder: str) -> None:
    own = {name for name in MODULES if folder_of(name) == folder}
    assert own, f"{folder}/ holds no Python"
    for name in sorted(own):
        foreign = {folder_of(other) for other in IMPORTS[name]} - ALLOWED[folder]
        assert not foreign, f"{name} imports {sorted(foreign)}"


def test_hosts_need_of_the_toolchain_only_how_c_is_compiled() -> None:
    """What runs at a host knows neither compiler nor switch."""
    for name in (name for name in MODULES if folder_of(name) == "hosts"):
        known = {other for other in IMPORTS[name] if other.startswith("p4native")}
        assert known <= {"p4native.common", "p4native.common.c_build", "p4native.common.contexts"}


def listed() -> dict[str, set[str]]:
    """What other projects may import of the toolchain, by module: the names of its section in
    toolchain/docs/interface.md."""
    page = (ROOT / "toolchain/docs/interface.md").read_text()
    sections = re.findall(r"^## (p4native[\w.]*)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    cells = {module: re.findall(r"^\| (`[^|]*`) \|", text, re.M) for module, text in sections}
    return {module: set(re.findall(r"`(\w+)`", " ".join(cells[module]))) for module in cells}


LISTED = listed()


def unlisted(tree: ast.AST) -> Iterator[str]:
    """Yields what a module imports of the toolchain although interface.md does not list it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = {alias.name for alias in node.names}
            yield from (n for n in names if n.split(".")[0] == "p4native" and n not in LISTED)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "p4native":
            module = str(node.module)
            for alias in node.names:
                whole = f"{module}.{alias.name}"
                if whole not in LISTED and alias.name not in LISTED.get(module, ()):
                    yield whole


def test_only_what_the_toolchain_offers_is_imported() -> None:
    labs = {str(path): path for path in (ROOT / "labs").rglob("*.py")}
    agglab = {name: path for name, path in MODULES.items() if folder_of(name) != "p4native"}
    assert len(labs) > 3 and len(agglab) > 300
    for name, path in {**labs, **agglab}.items():
        private = sorted(unlisted(ast.parse(path.read_text())))
        assert not private, f"{name} imports {private}"


def test_an_import_of_what_is_not_listed_is_seen() -> None:
    text = """
import p4native, p4native.switch.translate
from p4native import SWITCH_SCRIPT, FOLDERS, switch
from p4native.switch import Pipeline, tables
from p4native.switch.io.loop import PacketLoop
"""
    assert sorted(unlisted(ast.parse(text))) == [
        "p4native.FOLDERS",
        "p4native.switch.io.loop.PacketLoop",
        "p4native.switch.tables",
        "p4native.switch.translate",
    ]


def packages_below(package: str) -> set[str]:
    """The packages of the testbed that one may import."""
    lines = [number for number, line in enumerate(LAYERS) if package in line]
    return {package, *(other for line in LAYERS[: lines[0]] for other in line)}


@pytest.mark.parametrize("package", [package for line in LAYERS for package in line])
def test_packages_of_the_testbed_know_only_what_lies_below(package: str) -> None:
    """Imports for type checkers alone count as well."""
    start = f"testbed.{package}"
    below = (name for name in MODULES if name == start or name.startswith(f"{start}."))
    own = {name for name in below if folder_of(name) == "testbed"}
    assert own, f"testbed/{package}/ holds no Python"
    for name in sorted(own):
        known = {o.split(".")[1] for o in all_imports(name) if o.startswith("testbed.")}
        above = known - packages_below(package)
        assert not above, f"{name} imports {sorted(above)}"


def test_networks_do_not_know_each_other() -> None:
    assert "virtual" not in packages_below("real")
    assert "real" not in packages_below("virtual")


def test_the_testbed_has_no_modules_beside_its_packages() -> None:
    entries = {path.name for path in (ROOT / "testbed").iterdir()} - {"__pycache__"}
    assert entries == LOOSE.union(*LAYERS)
    assert len(entries) <= 15


def all_imports(module: str) -> set[str]:
    """The modules of ours that one imports, those for type checkers alone included."""
    known = set(IMPORTS[module])
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom) and node.module:
            known |= {_held(node.module, a.name).removeprefix("agglab.") for a in node.names}
    return {name for name in known if name in MODULES} - {module}


def circle(imports: Callable[[str], Iterable[str]]) -> str:
    """A chain of imports that leads back to where it began; empty if there is none."""
    state: dict[str, str] = {}

    def visit(name: str, way: tuple[str, ...]) -> str:
        if state.get(name) == "open":
            return " -> ".join([*way[way.index(name) :], name])
        if name in state:
            return ""
        state[name] = "open"
        for other in sorted(imports(name)):
            found = visit(other, (*way, name))
            if found:
                return found
        state[name] = "closed"
        return ""

    return next(filter(None, (visit(name, ()) for name in MODULES)), "")


def test_no_import_leads_back() -> None:
    """A package's `__init__` gathers what its modules hold; they do not import it."""
    assert not circle(IMPORTS.__getitem__)
    assert not circle(executed)


def test_no_import_for_types_leads_back() -> None:
    """An import for type checkers alone is how a circle is hidden from the test above."""
    module = "testbed.scenario.workloads.base"
    seen = all_imports(module) - IMPORTS[module]
    assert "testbed.schema.workload_section" in seen
    assert not circle(all_imports)


def test_a_circle_is_found() -> None:
    (first, second, third, *_) = MODULES
    back = {first: [second], second: [third], third: [second]}
    assert circle(lambda name: back.get(name, [])) == f"{second} -> {third} -> {second}"


def classes(module: str) -> dict[str, ast.ClassDef]:
    return {node.name: node for node in tree(module).body if isinstance(node, ast.ClassDef)}


CLASSES = {module: classes(module) for module in MODULES}


@functools.cache
def origins(module: str) -> dict[str, str]:
    """The module of each class that a module defines or imports by name."""
    known = dict.fromkeys(CLASSES[module], module)
    for statement in tree(module).body:
        if isinstance(statement, ast.ImportFrom) and statement.module:
            source = statement.module.removeprefix("agglab.")
            known |= {a.asname or a.name: source for a in statement.names}
    return known


def inherited(module: str, node: ast.ClassDef) -> dict[tuple[str, str], ast.ClassDef]:
    """The classes of ours that a class inherits from, at any distance, by module and name."""
    found: dict[tuple[str, str], ast.ClassDef] = {}
    known = origins(module)
    for base in node.bases:
        name = base.value if isinstance(base, ast.Subscript) else base
        if isinstance(name, ast.Name):
            source = known.get(name.id, "")
            parent = CLASSES.get(source, {}).get(name.id)
            if parent is not None and parent is not node:
                found |= {(source, name.id): parent, **inherited(source, parent)}
    return found


@pytest.mark.parametrize("folder", sorted(ALLOWED))
def test_classes_are_parts_and_not_pages_of_one_class(folder: str) -> None:
    """A class that inherits from a class that inherits, and so on, is one object in many files."""
    seen = 0
    for module in (name for name in MODULES if folder_of(name) == folder):
        for node in CLASSES[module].values():
            above = inherited(module, node)
            assert len(above) <= 2, f"{module}: {node.name} inherits from {sorted(above)}"
            lines = sum(n.end_lineno - n.lineno + 1 for n in (node, *above.values()))
            assert lines <= 600, f"{module}: {node.name} has {lines} lines with what it inherits"
            seen += 1
    assert seen


def test_no_part_waits_for_a_subclass() -> None:
    """What a subclass has to have is an abstract method."""
    for name, path in MODULES.items():
        assert "raise NotImplementedError" not in path.read_text(), name


def test_only_agglab_is_imported_by_name() -> None:
    """Not `hosts` or `topologies`, which a user's own repository may have."""
    for name, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text())):
            roots = set()
            if isinstance(node, ast.Import):
                roots = {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                roots = {node.module.split(".")[0]}
            assert not roots & (set(FOLDERS) - {"benchmarks", "p4native"}), (
                f"{name} imports {sorted(roots)}"
            )


def test_p4_folder_holds_no_python() -> None:
    """The p4runtime package's import name is `p4`: a Python file here would hide it."""
    assert not list((ROOT / "p4").rglob("*.py"))


@pytest.mark.parametrize("name", ["v1", "config", "server"])
def test_p4_folder_hides_no_package_of_p4runtime(name: str) -> None:
    assert not (ROOT / "p4" / name).exists()


def test_python_and_type_checkers_find_the_folders_on_one_path() -> None:
    """`src/agglab` links to each folder; there is no import hook and no other tree of links."""
    links = {
        path.name: path.resolve() for path in (ROOT / "src/agglab").iterdir() if path.is_symlink()
    }
    apart = {"benchmarks", *PLACES}  # not installed; a product of its own
    assert links == {name: ROOT / name for name in FOLDERS if name not in apart}
    program = "import agglab; print(*agglab.__path__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd="/")
    assert done.stdout.split() == [str(ROOT / "src/agglab")], done.stderr


def test_layout() -> None:
    """The folders and files the project's users named."""
    code = ["topologies", "p4", "hosts", "systems", "testbed", "toolchain", "verification"]
    folders = [*code, "scenarios", "results", "tests", "benchmarks", "docs"]
    for name in [*folders, "Makefile", "README.md", "LICENSE"]:
        assert (ROOT / name).exists(), name


SYSTEMS = sorted(path.parent.name for path in (ROOT / "systems").glob("*/system.py"))
SHARED = {"pooling": {"atp", "esa"}}
"""The folders of systems/ that are no systems, and the systems that share them."""
OF_THE_DEFAULT = ["hosts/__init__.py", "benchmarks/hosts_protocol.py"]
"""What names the default system: the public name `hosts.AllReducer`, and a benchmark of it."""
ALL_CODE = [*FOLDERS, "p4"]
CODE = (".py", ".c", ".h", ".p4", ".sh", ".yaml")
SCRIPTS = [
    "Makefile",
    "setup.py",
    "pyproject.toml",
    "setup.sh",
    "provision.sh",
    "Vagrantfile",
    ".ci/run",
]
WORDS_TOO = {"ring": ("hosts", "p4native", "benchmarks", "p4"), "ps": ()}
"""Where a short name is a word of its own: a ring of packets."""


TESTS = {"tests/unit": ROOT, "toolchain/tests": home_of("p4native")}
"""Folders of unit tests, and where the code lies that they are about."""


def folders_of_modules(code: Path) -> dict[tuple[str, str], set[str]]:
    """Maps a package and the name of one of its modules to the folders that have such a module; a
    folder has its own name, too."""
    found: dict[tuple[str, str], set[str]] = {}
    ours = sorted(set(MODULES.values()))
    for relative in (path.relative_to(code) for path in ours if path.is_relative_to(code)):
        if len(relative.parts) > 1:
            name = relative.parent.name if relative.stem == "__init__" else relative.stem
            found.setdefault((relative.parts[0], name), set()).add(str(relative.parent))
    return found


def misplaced(test: Path, code: Path, folders: dict[tuple[str, str], set[str]]) -> str:
    """What is wrong with the place of a test file, relative to its tests' folder; "" if nothing."""
    package, name = test.parts[0], test.stem.removeprefix("test_")
    if not (code / test.parent).is_dir() and package not in ("root", "packets"):
        return f"{test.parent} is no folder of the code"
    expected = folders.get((package, name))
    if expected is None or str(test.parent) in expected:
        return ""
    return f"{test} is named after a module in {' and '.join(sorted(expected))}"


@pytest.mark.parametrize("place", TESTS)
def test_unit_tests_lie_where_the_code_lies(place: str) -> None:
    """Folders of unit tests are those of the code. A test file that has the name of a module lies
    in that module's folder; one that has the name of a folder lies in that folder."""
    unit, code = ROOT / place, TESTS[place]
    folders = folders_of_modules(code)
    tests = [path.relative_to(unit) for path in sorted(unit.glob("*/**/test_*.py"))]
    assert len(tests) > 50
    assert [wrong for test in tests if (wrong := misplaced(test, code, folders))] == []


@pytest.mark.parametrize("test", ["testbed/test_decisions.py", "testbed/packets/test_any.py"])
def test_a_misplaced_test_is_found(test: str) -> None:
    assert misplaced(Path(test), ROOT, folders_of_modules(ROOT))


def places(system: str) -> tuple[str, ...]:
    """Where a system is at home: what these begin."""
    return (f"systems/{system}/", f"p4/{system}.p4", f"p4/{system}_", f"p4/include/{system}_")


def code_outside(system: str) -> Iterator[Path]:
    folders = [folder for folder in ALL_CODE if folder not in WORDS_TOO.get(system, ())]
    found = (path for folder in folders for path in sorted(home_of(folder).rglob("*")))
    for path in [*(path for path in found if path.suffix in CODE), *map(ROOT.joinpath, SCRIPTS)]:
        place = path.relative_to(ROOT)
        is_home = str(place).startswith((*places(system), *OF_THE_DEFAULT))
        if not is_home and "tests" not in place.parts:
            yield path


@pytest.mark.parametrize("system", SYSTEMS)
def test_nothing_but_its_own_parts_names_a_system(system: str) -> None:
    """A short name may be a word or a part of one: only quoted, or in a path, does it name the
    system. A longer one may be a part of `library` or `calibrate`."""
    short = rf"""["'/`]{system}["'/.`]"""
    word = re.compile(short if len(system) <= 4 else f"(?<!ca){system}(?!r[yi])", re.IGNORECASE)
    searched = list(code_outside(system))
    assert len(searched) > 300
    for path in searched:
        text = re.sub(r"systems/\w+/tests/", "", path.read_text())  # which tests judge a mutant
        found = [line for line in text.splitlines() if word.search(line)]
        assert not found, f"{path.relative_to(ROOT)}: {found[0]}"


def test_one_system_is_the_default() -> None:
    chosen = [name for name in systems.built_in() if systems.find(name).is_default]
    assert chosen == [systems.default()] == [Scenario().system]


def test_a_system_knows_no_other() -> None:
    for name in (*SYSTEMS, *SHARED):
        shared = [folder for folder, users in SHARED.items() if name in users]
        known = tuple(f"systems.{each}" for each in (name, *shared))
        inside = [module for module in MODULES if f"{module}.".startswith(f"systems.{name}.")]
        others = {other for module in inside for other in IMPORTS[module]}
        foreign = {o for o in others if o.startswith("systems.") and not o.startswith(known)}
        assert inside and not foreign, f"{name} imports {sorted(foreign)}"


def test_every_folder_of_systems_is_a_system_or_is_shared() -> None:
    folders = {path.parent.name for path in (ROOT / "systems").glob("*/endpoint.py")}
    assert folders == {*SYSTEMS, *SHARED}
    assert all((ROOT / "systems" / name / "README.md").is_file() for name in folders)


@pytest.mark.parametrize("name", [*SYSTEMS, *SHARED])
def test_what_runs_at_a_host_loads_neither_testbed_nor_toolchain(name: str) -> None:
    """Even the package is empty, because Python executes it before any module in it."""
    assert (ROOT / "systems" / name / "__init__.py").read_text() == ""
    program = f"""
import sys
import agglab.systems.{name}.endpoint
parts = ("agglab.testbed", "agglab.verification", "p4native.compiler", "p4native.switch")
print([module for module in sys.modules if module.startswith(parts)])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stdout + done.stderr


PROMISED = tuple(f"testbed.systems.{name}" for name in ("base", "plan", "received_arrays"))


def test_scenario_knows_of_systems_only_what_they_promise() -> None:
    """A system's modules import `scenario`, which asks the registry for the System."""
    for name in (name for name in MODULES if name.startswith("testbed.scenario")):
        known = {other for other in IMPORTS[name] if other.startswith("testbed.systems.")}
        foreign = {other for other in known if not other.startswith(PROMISED)}
        assert not foreign, f"{name} imports {sorted(foreign)}"


def test_the_files_that_ten_changes_touch_exist() -> None:
    """docs/architecture.md names at most four for each."""
    section = (ROOT / "docs/architecture.md").read_text().partition("## Ten changes")[2]
    rows = [line.split(" | ") for line in section.partition("## ")[0].splitlines()]
    changes = {row[0].strip("| "): row[1] for row in rows if len(row) == 3}
    assert len(changes) == 12, sorted(changes)  # a fault is of a link or of a node; the head
    for change, files in changes.items():
        named = set(re.findall(r"`([\w/.<>]*(?:/|\.py|\.p4|\.md|Makefile))`", files))
        assert len(named) <= 4, f"{change}: {sorted(named)}"
        for name in named:
            folder = name.partition("<name>")[0] if "<name>" in name else name
            assert (ROOT / folder).exists(), f"{change}: {name}"
