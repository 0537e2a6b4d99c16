"""docs/own-programs.md, done as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def blocks(language: str) -> list[str]:
    text = (ROOT / "docs/own-programs.md").read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def replaced(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """The folder as it is after step 3."""
    folder = tmp_path / "mine"
    folder.mkdir()
    adding, choosing, comparing = blocks("p4")
    program = replaced((ROOT / "p4/switchml.p4").read_text(), adding, choosing)
    program = replaced(program, "#define ADD", comparing + "#define ADD")
    (folder / "maximum.p4").write_text(program)
    (folder / "maximum.yaml").write_text(blocks("yaml")[0])
    return folder


def with_worker(mine: Path) -> None:
    """Step 4."""
    path, line = mine / "maximum.yaml", blocks("yaml")[1]
    path.write_text(re.sub(r"^workload: .*\n", line, path.read_text(), flags=re.MULTILINE))
    (mine / "maximum.py").write_text(blocks("python")[0])


def test_the_maximum_is_not_the_sum(scenario, mine: Path) -> None:
    ended = scenario.run(str(mine / "maximum.yaml"), "--set", "backend=virtual")
    assert ended.code == 1, ended.err
    assert "FAILED  maximum" in ended.out
    assert 1_500_000 < ended.metrics["wrong_sums"] <= 4 * 2 * 200_000


@pytest.mark.parametrize(
    ("backend", "dtype"),
    [pytest.param("mininet", "int32", marks=pytest.mark.root), ("virtual", "float32")],
)
def test_the_maximum_is_exact_with_the_worker_class(
    scenario, mine: Path, backend: str, dtype: str
) -> None:
    with_worker(mine)
    settings = ("--set", f"backend={backend}", "--set", f"workload.dtype={dtype}")
    ended = scenario.run(str(mine / "maximum.yaml"), *settings)
    assert ended.code == 0, ended.out + ended.err
    assert "PASSED  maximum" in ended.out
    assert ended.metrics["totals"]["injected_drops"] > 0
    # The result folder's scenario runs from anywhere.
    resolved = (ended.folder / "scenario.yaml").read_text()
    assert f"worker: {mine / 'maximum.py'}:Maximum" in resolved


def test_a_worker_that_cannot_be_loaded_is_named_before_anything_starts(
    scenario, mine: Path
) -> None:
    with_worker(mine)
    (mine / "maximum.py").write_text("class Maximum:\n    pass\n")
    ended = scenario.run(str(mine / "maximum.yaml"))
    assert ended.code == 2
    assert ended.err.startswith(f"{mine}/maximum.yaml:4: workload.worker: ")
    assert "has no class Maximum that is a subclass of hosts.AllReducer" in ended.err
    (mine / "maximum.py").write_text("raise RuntimeError('not today')")
    assert "RuntimeError: not today" in scenario.run(str(mine / "maximum.yaml")).err


def test_virtual_time_refuses_a_worker_that_does_its_own_reducing(scenario, mine: Path) -> None:
    with_worker(mine)
    path = mine / "maximum.py"
    path.write_text(path.read_text() + "\n    def all_reduce(self, array, out, sums):\n        1\n")
    ended = scenario.run(str(mine / "maximum.yaml"), "--set", "backend=virtual")
    assert ended.code == 2
    assert "in virtual time only its `combine` can be its own" in ended.err
