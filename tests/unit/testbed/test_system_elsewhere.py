"""A system with C code in a folder outside the repository, in virtual time."""

from __future__ import annotations

import importlib
import io
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from copied_system import commands, copied_ring
from system_runs import DISORDER, Run, scenario_text

from agglab import systems as built_in_systems
from agglab.testbed import systems
from agglab.testbed.base.paths import REPOSITORY
from agglab.testbed.experiment.points import key_of
from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.run.programs.prepare import compile_points
from agglab.testbed.scenario import load

NAME = "mine_of_a_user"
OF_A_RUN = ("allreduce", "workers", "links", "totals", "exact", "error", "findings")


@pytest.fixture
def mine(tmp_path: Path) -> Iterator[str]:
    """What a scenario calls the copy. It is forgotten afterwards, as the next test has its own."""
    yield copied_ring(tmp_path, NAME)
    for name in [name for name in sys.modules if name.partition(".")[0] == NAME]:
        del sys.modules[name]
    systems.find.cache_clear()
    sys.path[:] = [path for path in sys.path if path != str(tmp_path)]


def folder_of(spec: str) -> Path:
    return Path(spec.rpartition(":")[0]).parent


def replace_in(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1, old
    path.write_text(text.replace(old, new))


def test_it_does_what_the_same_system_inside_does(tried: Run, mine: str) -> None:
    text = f"{scenario_text('SYSTEM', loss='1%')}{DISORDER}"
    code, inside = tried(text.replace("SYSTEM", "ring"))
    own_code, outside = tried(text.replace("SYSTEM", mine))
    assert code == own_code == 0
    assert outside["exact"] is True and outside["totals"]["retransmitted"] > 0
    assert {key: outside[key] for key in OF_A_RUN} == {key: inside[key] for key in OF_A_RUN}


def test_a_point_depends_on_its_code_and_on_nothing_that_running_leaves(
    mine: str, tmp_path: Path
) -> None:
    (tmp_path / "own.yaml").write_text(scenario_text(mine))
    points = load(tmp_path / "own.yaml").points
    runs = [(points[0], compile_points(points)[0])]
    before = key_of(runs, "")
    cached = folder_of(mine) / "__pycache__"
    cached.mkdir(exist_ok=True)
    (cached / "worker.cpython-3.pyc").write_bytes(b"compiled")
    assert key_of(runs, "") == before
    replace_in(folder_of(mine) / "ring.c", "#include <errno.h>", "#include  <errno.h>")
    assert key_of(runs, "") != before


def test_its_own_python_runs(tried: Run, mine: str) -> None:
    text = scenario_text("SYSTEM")
    replace_in(folder_of(mine) / "worker.py", "ACKNOWLEDGE_EVERY = 4", "ACKNOWLEDGE_EVERY = 2")
    _, inside = tried(text.replace("SYSTEM", "ring"))
    _, outside = tried(text.replace("SYSTEM", mine))
    sent = [run["workers"]["0"]["acknowledgements"] for run in (inside, outside)]
    assert sent[1] > 1.5 * sent[0]


def test_its_own_c_code_runs(tried: Run, mine: str) -> None:
    """A worker that adds one to each sum: the testbed, which knows the sums, says so."""
    replace_in(
        folder_of(mine) / "ring.c", "payload[i]) + values[i];", "payload[i]) + values[i] + 1;"
    )
    code, metrics = tried(scenario_text(mine, dtype="int32"))
    assert code == 1 and metrics["exact"] is False


def test_c_code_that_does_not_compile_is_one_line(
    mine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (folder_of(mine) / "ring.c").open("a") as source:
        source.write("nonsense\n")
    path = tmp_path / "broken.yaml"
    path.write_text(scenario_text(mine))
    assert run(load(path), tmp_path / "results", [], io.StringIO()) == 1
    line = r"C code cannot be built: .*ring\.c:\d+:\d+: error: .*\n"
    assert re.fullmatch(line, capsys.readouterr().err)


def test_the_page_makes_a_copy_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(REPOSITORY / "systems/ring", tmp_path / "systems/ring")
    subprocess.run(["sh", "-e", "-c", commands()[0]], cwd=tmp_path, check=True)
    code = [*tmp_path.glob("systems/mine/**/*.py")]
    assert len(code) > 5 and all("agglab.systems.ring" not in path.read_text() for path in code)
    monkeypatch.setattr(built_in_systems, "__path__", [str(tmp_path / "systems")])
    copy = importlib.import_module("agglab.systems.mine.system").SYSTEM()
    assert (copy.name, copy.endpoints) == ("mine", "agglab.systems.mine.endpoint")
    assert Path(sys.modules["agglab.systems.mine.worker"].__file__ or "").is_relative_to(tmp_path)
    for name in [name for name in sys.modules if name.startswith("agglab.systems.mine")]:
        del sys.modules[name]


def test_a_pack_of_its_run_has_all_of_it(mine: str, tmp_path: Path) -> None:
    """Another user, who has no such folder, gets the same results from the pack."""
    path = tmp_path / "packed.yaml"
    path.write_text(scenario_text(mine))
    assert run(load(path), tmp_path / "results", [], io.StringIO()) == 0
    pack = tmp_path / "run.zip"
    folder = (tmp_path / "results/tried/latest").resolve()
    agglab = [sys.executable, "-m", "agglab.testbed"]
    subprocess.run([*agglab, "pack", str(folder), "--out", str(pack)], check=True)
    folder_of(mine).rename(tmp_path / "gone")
    again = [*agglab, "repeat", str(pack), "--trust-code", "--results", str(tmp_path / "again")]
    done = subprocess.run(again, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
