"""tests/skipped.py and tests/needs.py: skipped tests are counted by what they need, are run again
alone, and fail where nothing is missing."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import needs
import pytest

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
TOOL, OTHER = f"needs a hammer: {needs.TEST_TOOLS}", "needs a tail, long: grow one"
PEER = needs.NEEDS["BMv2"]
FILES = {
    "one/test_a.py": f"""
import pytest
@pytest.mark.parametrize("word", ["a b", "c::d[e]", "plain"])
def test_many(word):
    if word != "plain":
        pytest.skip({TOOL!r})
@pytest.fixture
def absent():
    pytest.skip({PEER.reason!r})
def test_fixture(absent): pass
def test_other(): pytest.skip({OTHER!r})
@pytest.mark.xfail
def test_wrong(): assert False
""",
    "two/test_b.py": f"""
import pytest
pytest.skip({TOOL!r}, allow_module_level=True)
def test_never(): pass
""",
    "two/test_c.py": "def test_fine(): pass\n",
}
TABLE = """\
skipped     need          how to get it            folders
2 + 1 file  a hammer      ./setup.sh --test-tools  one, two
1           BMv2          ./setup.sh --peers       one
1           a tail, long  grow one                 one
"""


class Folder:
    """Tests of which some are skipped, run by a pytest that has the plugin."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self._options = folder, options
        self.record = folder / "records/this.json"
        (folder / "pytest.ini").write_text("[pytest]\naddopts = -ra\n")
        for name, text in FILES.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)

    def run(self, *options: str, path: str = "/none") -> subprocess.CompletedProcess[str]:
        """path: where programs are, such as BMv2's."""
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "tests.skipped"]
        command += [f"--rootdir={self.folder}", f"--skipped-to={self.record}", "--skipped-table"]
        words = [*command, *self._options, *options, str(self.folder)]
        return subprocess.run(words, capture_output=True, text=True, cwd=ROOT, env={"PATH": path})

    def change(self, name: str, old: str, new: str) -> None:
        text = (self.folder / name).read_text()
        assert old in text
        (self.folder / name).write_text(text.replace(old, new))


@pytest.fixture(
    params=[
        pytest.param((), id="one process"),
        pytest.param(("-n", "2"), id="two", marks=pytest.mark.long),
    ]
)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    return Folder(tmp_path, *request.param)


def closing_line(done: subprocess.CompletedProcess[str]) -> str:
    """Without the number of deselected tests, which pytest-xdist does not tell, and the time."""
    line = done.stdout.splitlines()[-1].strip("= ")
    return re.sub(r"(, \d+ deselected)? in [0-9.]+s.*", "", line)


def test_the_table_comes_last_but_for_the_closing_line(folder: Folder) -> None:
    done = folder.run()
    assert closing_line(done) == "2 passed, 5 skipped, 1 xfailed"
    title, *table = done.stdout.splitlines()[-6:-1]
    assert "= skipped, because this machine lacks something =" in title
    assert table == TABLE.splitlines()


def test_no_table_where_nothing_was_skipped(folder: Folder) -> None:
    done = folder.run("-k", "fine", "--ignore", str(folder.folder / "two/test_b.py"))
    assert closing_line(done) == "1 passed"
    assert "lacks" not in done.stdout


def test_what_another_run_recorded_is_in_the_table_as_well(folder: Folder) -> None:
    folder.record.parent.mkdir()
    (folder.record.parent / "other.json").write_text(json.dumps({"x/test_x.py::test_x": OTHER}))
    assert re.search(r"^2 +a tail, long +grow one +one, x$", folder.run().stdout, re.MULTILINE)


def test_what_was_skipped_and_nothing_else_is_run_again(folder: Folder) -> None:
    before = folder.run()
    assert before.returncode == 0
    kept = folder.record.rename(folder.folder / "before.json")
    folder.change("one/test_a.py", 'word != "plain"', 'word == "a b"')
    folder.change("two/test_b.py", "pytest.skip", "str")
    folder.change("two/test_b.py", ", allow_module_level=True", "")
    after = folder.run(f"--skipped-from={kept}")
    assert closing_line(after) == "2 passed, 3 skipped"
    assert len(json.loads(folder.record.read_text())) == 3


def test_a_test_is_run_again_only_if_its_need_is_met(folder: Folder) -> None:
    (folder.folder / "two/test_b.py").unlink()
    folder.run("-k", "fixture")
    kept = folder.record.rename(folder.folder / "before.json")
    assert json.loads(kept.read_text()) == {"one/test_a.py::test_fixture": PEER.reason}
    folder.change("one/test_a.py", f"pytest.skip({PEER.reason!r})", "pass")
    assert closing_line(folder.run(f"--skipped-from={kept}")) == "1 skipped"
    assert folder.record.read_text() == kept.read_text()
    programs = folder.folder / "bin"
    programs.mkdir()
    for name in ("simple_switch", "simple_switch_CLI", "simple_switch_grpc"):
        (programs / name).touch(0o755)
    assert closing_line(folder.run(f"--skipped-from={kept}", path=str(programs))) == "1 passed"


def test_without_a_record_everything_is_run(folder: Folder) -> None:
    done = folder.run(f"--skipped-from={folder.folder / 'none.json'}")
    assert closing_line(done) == "2 passed, 5 skipped, 1 xfailed"


def test_a_run_that_ends_early_leaves_no_record(folder: Folder) -> None:
    folder.change("two/test_c.py", "pass", "assert False")
    assert folder.run("-x").returncode != 0
    assert not folder.record.exists()
    assert folder.run().returncode == 1
    assert folder.record.exists()


def test_a_skip_fails_where_ci_has_what_it_needs(folder: Folder) -> None:
    """But not one that needs BMv2, or a machine of another kind."""
    done = folder.run("--skipped-fail", "--ignore", str(folder.folder / "two/test_b.py"))
    assert done.returncode == 1
    assert closing_line(done) == "2 failed, 2 passed, 2 skipped, 1 xfailed"
    assert f"skipped, although CI has what it needs: {TOOL}" in done.stdout
    assert "1 error" in closing_line(folder.run("--skipped-fail"))


@pytest.mark.parametrize(
    ("reason", "is_met"),
    [
        ("Skipped: needs chromium: ./setup.sh --test-tools", True),
        ("needs make: ./setup.sh", True),
        ("needs root: run the tests as root", True),
        ("needs network namespaces: start the container with --privileged", True),
        ("needs a module: .venv/bin/python -m pip install it", True),
        ("because I like to", True),
        ("needs p4c: ./setup.sh --peers", False),
        ("needs a kernel with netem: make machine", False),
        ("needs another processor: use a newer one", False),
    ],
)
def test_what_ci_has(reason: str, is_met: bool) -> None:
    assert needs.is_met_in_ci(reason) is is_met


def test_what_the_system_has_no_package_of_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(needs, "UNPACKAGED", tmp_path / "unpackaged")
    needs.UNPACKAGED.write_text("ruby\nvagrant\n")
    vagrant = needs.NEEDS["vagrant"].reason
    assert needs.need_and_remedy(vagrant) == ("vagrant", needs.NO_PACKAGE)
    assert not needs.is_met_in_ci(vagrant)
    assert needs.is_met_in_ci(needs.NEEDS["clang"].reason)


def test_what_agglab_lacks_has_the_name_of_the_need() -> None:
    said = {
        "PyTorch, which `workload.kind: torch` needs": "PyTorch",
        "the Python module sklearn, which mnist.py imports": "scikit-learn",
        "the netem queueing discipline, which link delays need": "a kernel with netem",
        "BMv2 (simple_switch_grpc or simple_switch)": "BMv2",
    }
    for what, name in said.items():
        with pytest.raises(pytest.skip.Exception, match=f"^needs {name}: "):
            needs.skip_if_said_lacking(f"a line before\nthis machine lacks {what}: remedy\nmake: 3")
    with pytest.raises(pytest.skip.Exception, match="needs memory, the run needs 9 GiB: use"):
        needs.skip_lacking("memory: the run needs 9 GiB", "use less")
    needs.skip_if_said_lacking("the file has no such thing")


def test_every_test_tool_is_a_need() -> None:
    """By the name that setup.sh gives it: of a package, or in what it says of itself."""
    script = (ROOT / "setup.sh").read_text()
    (packages,) = re.findall(r"^TEST_TOOLS=\((.*)\)$", script, re.MULTILINE)
    extras = re.findall(r"going on without (\w[\w-]*)\\n", script.partition("install_extras()")[2])
    tools = {*packages.split(), *(name for name in extras if name in needs.NEEDS)}
    versions = {"PyTorch 2.6 or newer"}
    assert tools | versions == {n.name for n in needs.ALL if n.remedy == needs.TEST_TOOLS}


def skips(tree: ast.AST) -> Iterator[ast.expr]:
    """Calls of pytest's functions that skip, in a test's source."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("skip", "importorskip"):
                yield node
            elif node.func.attr == "skipif":
                yield from (word.value for word in node.keywords if word.arg == "reason")


# A process that a test starts with sanitizers leaves that test out; a booted machine is asked for.
OTHER_SKIPS = {"this is the process it starts", "needs a booted machine: make machine"}


def test_tests_skip_by_the_name_of_a_need_alone() -> None:
    """By needs.mark, needs.require or needs.skip_lacking."""
    others = {
        str(file.relative_to(TESTS)): ast.unparse(reason)
        for file in sorted(TESTS.rglob("*.py"))
        for reason in skips(ast.parse(file.read_text()))
        if file.name not in ("needs.py", "skipped.py")
        and ast.unparse(reason).strip("'") not in OTHER_SKIPS
    }
    assert others == {}
