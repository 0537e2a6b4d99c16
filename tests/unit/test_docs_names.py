"""What README.md, CONTRIBUTING.md, docs/ and the pages of toolchain/ name exists: links, files,
commands, messages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from agglab.testbed.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("hosts", "p4", "scenarios", "systems", "testbed", "tests", "toolchain", "topologies")
FOLDERS += ("benchmarks", "labs", "docs", "figures", "verification", ".ci", ".github")
TOOLCHAIN = ROOT / "toolchain"
OF_TOOLCHAIN = (
    *(TOOLCHAIN / "README.md", TOOLCHAIN / "CHANGELOG.md"),
    *(page for folder in ("docs", "tests") for page in (TOOLCHAIN / folder).rglob("*.md")),
)
# CHANGELOG.md speaks of the past.
WITH_PAGES = ("docs", "labs", "systems")
DOCUMENTS = [path for folder in WITH_PAGES for path in (ROOT / folder).rglob("*.md")]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCUMENTS, *OF_TOOLCHAIN])
SUFFIXES = ("py", "c", "h", "p4", "stf", "yaml", "sh", "md")
# Paths that stand for files of the reader's own, of a machine, or of other projects.
THEIRS = re.compile(
    r"mine|my-|path/to|/usr/|/run/|~/|utils/run_exercise|main\.yaml|^p4/bin/|^\.github/workflows/"
    r"|^labs/\d\d-[\w-]+/(?!skeleton|solution)\w+\.(p4|py|yaml)$"  # what a student writes
    r"|^class/"  # what students hand in
)
OF_TESTS = re.compile(r"tests/unit/|(toolchain|systems/\w+)/tests/")
FOREIGN_FLAGS = {
    *("--no-install-recommends", "--system-site-packages", "--index-url", "--privileged"),
    *("--no-deps", "--fork", "--kill-child", "--nworkers", "--nthreads", "--epochs"),
}


def pages() -> list[object]:
    return [pytest.param(page, id=str(page.relative_to(ROOT))) for page in PAGES]


def code(text: str) -> list[str]:
    """What stands in backquotes, and the lines of code blocks."""
    blocks = re.findall(r"^```[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    rest = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    spans = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", rest)]
    return [*spans, *(line for block in blocks for line in block.splitlines())]


@cache
def files() -> frozenset[str]:
    """Every file and folder of the repository's own, from its root."""
    tops = [path for path in ROOT.iterdir() if path.is_file()]
    found = [*tops, *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))]
    names = [path.relative_to(ROOT).as_posix() for path in found if "__pycache__" not in path.parts]
    return frozenset([*names, *FOLDERS])


@cache
def sources() -> str:
    """All code, scripts and settings as one text, without documents and tests."""
    kept = (".py", ".sh", ".c", ".yml", ".toml", "Makefile", "Vagrantfile", "p4native-switch")
    names = [n for n in sorted(files()) if n.endswith(kept) and not OF_TESTS.match(n)]
    return "\n".join((ROOT / name).read_text() for name in names)


@cache
def literals() -> str:
    """The string literals of the code, a line each; `{}` stands for what is put into them."""
    found = []
    for name in sorted(files()):
        if name.endswith(".py") and "tests" not in Path(name).parts:
            tree = ast.parse((ROOT / name).read_text())
            found += [literal(node) for node in ast.walk(tree)]
        elif name.endswith(".sh"):
            found.append((ROOT / name).read_text())
    return "\n".join(found)


def literal(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        parts = (v.value if isinstance(v, ast.Constant) else "{}" for v in node.values)
        return "".join(map(str, parts))
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives to a page's headings."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def broken_links(page: Path, text: str) -> Iterator[str]:
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        leaves = page in OF_TOOLCHAIN and not file.is_relative_to(TOOLCHAIN)
        if leaves or not file.exists() or (anchor and anchor not in anchors(file)):
            yield target


def missing_paths(text: str, home: str = "") -> Iterator[str]:
    """Names of files and folders, with placeholders (`<name>`, `*`, `...`) in them or not. home:
    the folder in which they have to be, such as `toolchain`."""
    for span in code(text):
        for word in re.findall(r"[\w.*<>/{},-]+", span):
            word = word.rstrip(".,").removeprefix("./")
            in_folder = word.partition("/")[0] in (*FOLDERS, "p4native") and "/" in word
            named = "/" in word and word.rpartition(".")[2] in SUFFIXES
            if (in_folder or named) and not THEIRS.search(word) and not exists(word, home):
                yield word


def missing_tests(text: str) -> Iterator[str]:
    """Test files and test functions that are named without a folder."""
    for name in re.findall(r"(?<![\w/.])test_\w+(?:\.py)?(?![\w*])", " ".join(code(text))):
        if name not in known_tests():
            yield name


@cache
def known_tests() -> frozenset[str]:
    """The names of all test files, with and without `.py`, and of all test functions."""
    folders = ("tests", "toolchain/tests", "systems")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("test_*.py")]
    functions = [re.findall(r"def (test_\w+)", path.read_text()) for path in paths]
    names = [name for path in paths for name in (path.name, path.stem)]
    return frozenset([*names, *(name for each in functions for name in each)])


def exists(word: str, home: str = "") -> bool:
    plain = re.escape(word.rstrip("/"))
    pattern = re.sub(r"<\w+>|\\\*|\\\.\\\.\\\.", "[^/]+", plain)
    pattern = re.sub(r"\\\{([^}]*)\\\}", lambda m: "(" + m[1].replace(",", "|") + ")", pattern)
    sought = re.compile(rf"(^|/){pattern}(\.py)?$")
    return any(sought.search(name, len(home)) for name in files() if name.startswith(home))


def unknown_commands(text: str) -> Iterator[str]:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    scenarios = {path.stem for path in (ROOT / "scenarios").glob("*.yaml")}
    for span in code(text):
        for target in re.findall(r"^(?:\$ |sudo )?make ([a-z][a-z-]*)", span):
            if target not in targets:
                yield f"make {target}"
        for command in re.findall(r"(?:^|bin/|\./)agglab ([a-z]+)(?![\w=./-])", span):
            if command not in COMMANDS:
                yield f"agglab {command}"
        for module in re.findall(r"-m (agglab\.[\w.]+)", span):
            if not exists(module.removeprefix("agglab.").replace(".", "/")):
                yield f"-m {module}"
        for name in re.findall(r"\bNAME=([a-z0-9-]+)", span):
            figure = f"figures/{name}.yaml" in files()
            if name not in scenarios and not figure:
                yield f"NAME={name}"


def unknown_flags(text: str) -> Iterator[str]:
    for span in code(text):
        for flag in re.findall(r"(?<![\w-])--[a-zA-Z][\w-]*", span):
            if flag not in FOREIGN_FLAGS and not re.search(rf"{flag}\b", sources()):
                yield flag


def unsaid(text: str) -> Iterator[str]:
    """Of the first column of tables of symptoms: what no message of ours has."""
    symptoms = text.partition("## Before anything runs")[2]
    for cell in re.findall(r"^\| ([^|]+) \|", symptoms, re.MULTILINE):
        for message in re.findall(r"`([^`]+)`", cell):
            words = message.removeprefix("this machine lacks ").strip()
            if words not in literals():
                yield message


@pytest.mark.parametrize("page", pages())
def test_links_lead_somewhere(page: Path) -> None:
    assert list(broken_links(page, page.read_text())) == []


@pytest.mark.parametrize("page", pages())
def test_files_that_are_named_exist(page: Path) -> None:
    home = "toolchain" if page in OF_TOOLCHAIN else ""
    assert list(missing_paths(page.read_text(), home)) == []


@pytest.mark.parametrize("page", pages())
def test_tests_that_are_named_exist(page: Path) -> None:
    written_there = set(re.findall(r"def (test_\w+)", page.read_text())) | {"test_mine.py"}
    assert [name for name in missing_tests(page.read_text()) if name not in written_there] == []


@pytest.mark.parametrize("page", pages())
def test_commands_that_are_named_exist(page: Path) -> None:
    assert list(unknown_commands(page.read_text())) == []


@pytest.mark.parametrize("page", pages())
def test_flags_that_are_named_exist(page: Path) -> None:
    assert list(unknown_flags(page.read_text())) == []


def test_symptoms_are_messages_of_ours() -> None:
    assert list(unsaid((ROOT / "docs/troubleshooting.md").read_text())) == []


def test_what_does_not_exist_is_found() -> None:
    text = "`testbed/gone.py`, `systems/gone.py`, `make gone`, `agglab gone`, `--gone-flag`,"
    text += " `NAME=gone`, `python -m agglab.gone` [x](gone.md) [y](README.md#gone)"
    assert list(missing_paths(text)) == ["testbed/gone.py", "systems/gone.py"]
    of_both = "`hosts/agent.py`, `p4native/stf/`, `tests/packets/`"
    assert list(missing_paths(of_both, "toolchain")) == ["hosts/agent.py"]
    assert list(missing_tests("`test_gone.py`, `test_gone`, `test_g*.py`, `test_tls.py`")) == [
        "test_gone.py",
        "test_gone",
    ]
    assert list(unknown_commands(text)) == [
        "make gone",
        "agglab gone",
        "NAME=gone",
        "-m agglab.gone",
    ]
    assert list(unknown_flags(text)) == ["--gone-flag"]
    assert list(broken_links(ROOT / "README.md", text)) == ["gone.md", "README.md#gone"]
    out = "[x](../README.md) [y](README.md) [z](docs/stf.md)"
    assert list(broken_links(TOOLCHAIN / "README.md", out)) == ["../README.md"]
    assert list(unsaid("## Before anything runs\n| `no such message at all` | x |\n"))
