"""The points of a sweep: side by side or one after the other with the same results, and resumed
without running a finished one again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from waiting import until

from agglab.testbed.cli import main
from agglab.testbed.experiment.interleaved_runs import Run, take_turns
from agglab.testbed.experiment.point_group import DONE
from agglab.testbed.experiment.points import code_sha256, key_of, processes_for
from agglab.testbed.run.result_folder import RunFolder
from agglab.testbed.scenario import load

TEXT = """
name: tiny
backend: virtual
topology: {workers: 2}
links: {rate: 10mbit, loss: 2%}
switch: {lanes: 16, slots: 8}
workload: {elements: 700, dtype: int32, rounds: 2}
sweep: {topology.workers: [2, 3], seed: [1, 2]}
"""
POINTS = 4


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    file = tmp_path / "tiny.yaml"
    file.write_text(TEXT)
    return file


def ran(scenario: Path, results: Path, *words: str) -> Path:
    """The folder of a run."""
    assert main.main(["run", str(scenario), "--results", str(results), *words]) == 0
    return (results / "tiny" / "latest").resolve()


def outcome(folder: Path) -> dict[str, bytes]:
    """What every point left that has no time of day in it."""
    files = ("metrics.json", "events.jsonl", "drops.json", "scenario.yaml")
    return {
        f"{point.name}/{file}": (point / file).read_bytes()
        for point in sorted(folder.glob("point-*"))
        for file in files
    }


def written(folder: Path) -> dict[str, int]:
    """When each point's events were written last."""
    return {p.parent.name: p.stat().st_mtime_ns for p in folder.glob("point-*/events.jsonl")}


def test_points_side_by_side_are_those_one_after_the_other(scenario: Path, tmp_path: Path) -> None:
    alone = ran(scenario, tmp_path / "alone", "--processes", "1")
    together = ran(scenario, tmp_path / "together", "--processes", "3")
    assert len(outcome(alone)) == 4 * POINTS
    assert outcome(alone) == outcome(together)
    assert (alone / "metrics.json").read_bytes() == (together / "metrics.json").read_bytes()
    hashes = [json.loads((f / "manifest.json").read_text()) for f in (alone, together)]
    assert hashes[0]["events_sha256"] == hashes[1]["events_sha256"]


@pytest.mark.long(but=["1"])
@pytest.mark.parametrize("processes", ["1", "2"])
def test_only_what_is_not_finished_runs_again(
    scenario: Path, tmp_path: Path, processes: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ran(scenario, tmp_path)
    before, times = outcome(folder), written(folder)
    (folder / "point-1" / DONE).unlink()
    (folder / "point-2" / DONE).write_text('{"key": "of other code"}')
    (folder / "point-3" / DONE).write_text("{")
    capsys.readouterr()
    again = ran(scenario, tmp_path, "--resume", str(folder), "--processes", processes)
    assert again == folder and outcome(folder) == before
    changed = {name for name, at in written(folder).items() if at != times[name]}
    assert changed == {"point-1", "point-2", "point-3"}
    assert "tiny: 1 of 4 points were already finished" in capsys.readouterr().out


@pytest.mark.long(but=["None"])
@pytest.mark.parametrize("left", [None, b'{"ok": tr', b"[]", b'{"ok": true}'])
def test_a_finished_point_whose_results_are_damaged_runs_again(
    scenario: Path, tmp_path: Path, left: bytes | None
) -> None:
    folder = ran(scenario, tmp_path)
    before, times = outcome(folder), written(folder)
    metrics = folder / "point-2" / "metrics.json"
    metrics.unlink() if left is None else metrics.write_bytes(left)
    ran(scenario, tmp_path, "--resume", str(folder))
    assert outcome(folder) == before
    assert {name for name, at in written(folder).items() if at != times[name]} == {"point-2"}


def test_two_runs_cannot_fill_one_folder(
    scenario: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = ran(scenario, tmp_path)
    before = (folder / "metrics.json").read_bytes()
    monkeypatch.setattr("agglab.testbed.run.result_folder.OWNER_ENDS_S", 0)
    capsys.readouterr()
    with RunFolder(folder, new=False).owned():
        assert main.main(["run", str(scenario), "--resume", str(folder)]) == 2
    line = f"cannot write results: {folder}: another run is filling this folder\n"
    assert capsys.readouterr().err == line
    assert (folder / "metrics.json").read_bytes() == before
    ran(scenario, tmp_path, "--resume", str(folder))


def test_a_point_whose_own_worker_has_changed_runs_again(tmp_path: Path) -> None:
    own, scenario = tmp_path / "own.py", tmp_path / "tiny.yaml"
    text = "from agglab.hosts import AllReducer\nclass Mine(AllReducer):\n    pass\n"
    own.write_text(text)
    scenario.write_text(TEXT.replace("rounds: 2", "rounds: 2, worker: 'own.py:Mine'"))
    folder = ran(scenario, tmp_path)
    times = written(folder)
    assert written(ran(scenario, tmp_path, "--resume", str(folder))) == times
    own.write_text(text + "# another\n")
    later = written(ran(scenario, tmp_path, "--resume", str(folder)))
    assert all(later[name] != at for name, at in times.items())


OWN = "from agglab.hosts import AllReducer\nclass Mine(AllReducer):\n    pass\n"
OWN_FILES = {
    "a worker": ("own.py", "workload: {worker: 'own.py:Mine'}"),
    "what is beside a worker of a package": ("package/other.py", "workload: {worker: '%s'}"),
    "entries": ("s1-runtime.json", "switch: {entries: s1-runtime.json}"),
    "entries of one of the switches": ("entries/s1-runtime.json", "switch: {entries: entries}"),
}


@pytest.mark.parametrize("what", OWN_FILES)
def test_the_users_own_files_are_part_of_what_a_point_is_made_of(tmp_path: Path, what: str) -> None:
    file, text = OWN_FILES[what]
    for each in ("own.py", "package/own.py", "package/__init__.py", "package/other.py"):
        (tmp_path / each).parent.mkdir(exist_ok=True)
        (tmp_path / each).write_text(OWN)
    (tmp_path / "entries").mkdir()
    (tmp_path / file).write_text(OWN)
    (tmp_path / "own.yaml").write_text(text.replace("%s", "package/own.py:Mine"))
    (point,) = load(tmp_path / "own.yaml").points
    prepared: Any = SimpleNamespace(programs={})
    before = key_of([(point, prepared)], "code")
    assert key_of([(point, prepared)], "code") == before
    (tmp_path / file).write_text(f"{OWN}# another\n")
    assert key_of([(point, prepared)], "code") != before


def test_the_code_is_part_of_what_a_point_is_made_of(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert code_sha256.__wrapped__() == code_sha256()
    folder = ran(scenario, tmp_path)
    times = written(folder)
    monkeypatch.setattr("agglab.testbed.experiment.points.code_sha256", lambda: "another")
    later = written(ran(scenario, tmp_path, "--resume", str(folder), "--processes", "1"))
    assert all(later[name] != at for name, at in times.items())


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_sweep_goes_on_where_it_was(tmp_path: Path, how: signal.Signals) -> None:
    scenario = tmp_path / "tiny.yaml"
    scenario.write_text(TEXT.replace("[1, 2]", str(list(range(12)))))
    folder = killed_midway(scenario, tmp_path, how)
    done = {p.parent.name for p in folder.glob(f"point-*/{DONE}")}
    assert done
    times = written(folder)
    assert ran(scenario, tmp_path, "--resume", str(folder)) == folder
    later = written(folder)
    assert len(later) == 24
    assert {name for name in done if later[name] == times[name]} == done
    assert json.loads((folder / "metrics.json").read_text())["ok"] is True
    whole = ran(scenario, tmp_path / "whole")
    assert outcome(whole) == outcome(folder)


INTERRUPTED_AT_A_FORK = """
import os, signal, sys
waiting = [signal.SIGTERM]
os.register_at_fork(after_in_parent=lambda: waiting and signal.raise_signal(waiting.pop()))
from agglab.testbed.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def test_an_interrupt_that_comes_during_a_fork_is_not_lost(scenario: Path, tmp_path: Path) -> None:
    words = ["run", str(scenario), "--results", str(tmp_path), "--processes", "2"]
    command = [sys.executable, "-c", INTERRUPTED_AT_A_FORK, *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, "Exception ignored" in done.stderr) == (130, False)


def killed_midway(scenario: Path, results: Path, how: signal.Signals) -> Path:
    """The folder of a run that was killed when some of its points were finished; all its processes
    are gone."""
    run = begun(scenario, results)
    assert run.stdout is not None
    for line in run.stdout:
        if "(3 of 24" in line:
            break
    points = children(run.pid)
    run.send_signal(how)
    run.stdout.read()
    assert run.wait() == (-how if how == signal.SIGKILL else 130)
    until(lambda: not any(map(is_running, points)), "no point outlives its sweep")
    return (results / "tiny" / "latest").resolve()


def begun(scenario: Path, results: Path) -> subprocess.Popen[str]:
    """A run that has two points at a time, in a process of its own."""
    words = ["run", str(scenario), "--results", str(results), "--processes", "2"]
    command = [sys.executable, "-m", "agglab.testbed", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def is_running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.long
def test_a_sweep_survives_the_kill_of_three_of_its_points(tmp_path: Path) -> None:
    scenario = tmp_path / "tiny.yaml"
    scenario.write_text(TEXT.replace("[1, 2]", str(list(range(6)))))
    run = begun(scenario, tmp_path)
    assert run.stdout is not None
    said, again = "", "was killed by SIGKILL; it will be run once more"
    for line in run.stdout:
        said += line
        wanted = said.count(again) < 3 and " of 12, about" in line
        if wanted and (points := children(run.pid)):
            os.kill(int(points[-1]), signal.SIGKILL)
    assert (run.wait(), said.count(again) >= 3) == (0, True)
    folder = (tmp_path / "tiny" / "latest").resolve()
    assert len(list(folder.glob(f"point-*/{DONE}"))) == 12
    points = json.loads((folder / "metrics.json").read_text())["points"]
    assert [point["metrics"]["ok"] for point in points] == [True] * 12
    assert "(12 of 12)" in said and "PASSED  tiny, 12 runs" in said


def kills_itself(suite_point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the process of a point with this label kill itself whenever it is run."""

    def killed(runs: Sequence[Run]) -> int:
        if runs[0].folder.path.name == suite_point:
            os.kill(os.getpid(), signal.SIGKILL)
        return take_turns(runs)

    monkeypatch.setattr("agglab.testbed.experiment.points.take_turns", killed)


def test_a_point_that_is_killed_twice_is_the_only_one_without_a_result(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        kills_itself("point-1", patch)
        words = ["run", str(scenario), "--results", str(tmp_path), "--processes", "2"]
        assert main.main(words) == 1
    folder = (tmp_path / "tiny" / "latest").resolve()
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["reason"] == "workers 2, seed 2: its process was killed by SIGKILL, twice"
    assert [point["metrics"]["ok"] for point in metrics["points"]] == [True, False, True, True]
    assert not (folder / "point-1" / DONE).exists(), "it does not count as finished"
    ran(scenario, tmp_path, "--resume", str(folder))
    assert len(list(folder.glob(f"point-*/{DONE}"))) == POINTS


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_point_that_is_aborted_does_not_end_the_sweep(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: str
) -> None:
    def aborted(runs: Sequence[Run]) -> int:
        return 1 if runs[0].folder.path.name == "point-0" else take_turns(runs)

    monkeypatch.setattr("agglab.testbed.experiment.points.take_turns", aborted)
    words = ["run", str(scenario), "--results", str(tmp_path), "--processes", processes]
    assert main.main(words) == 1
    metrics = json.loads((tmp_path / "tiny" / "latest" / "metrics.json").read_text())
    assert [point["metrics"]["ok"] for point in metrics["points"]] == [False, True, True, True]
    assert metrics["reason"] == "workers 2, seed 1: the run did not finish"


@pytest.mark.parametrize("processes", ["1", "2"])
def test_what_the_machine_lacks_ends_the_sweep_with_its_code(
    scenario: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    processes: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("agglab.testbed.experiment.points.take_turns", lambda runs: 3)
    words = ["run", str(scenario), "--results", str(tmp_path), "--processes", processes]
    assert main.main(words) == 3
    assert "  not run  " in capsys.readouterr().out


def test_a_point_whose_agent_was_killed_is_run_once_more(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[str] = []

    def killed_at_first(runs: Sequence[Run]) -> int:
        code = take_turns(runs)
        name = runs[0].folder.path.name
        runs[0].killed = "" if name in attempts else "h1: worker 0 exited early with status -9"
        attempts.append(name)
        return code

    monkeypatch.setattr("agglab.testbed.experiment.points.take_turns", killed_at_first)
    folder = ran(scenario, tmp_path, "--processes", "1")
    assert sorted(attempts) == sorted([f"point-{i}" for i in range(POINTS)] * 2)
    assert len(list(folder.glob(f"point-*/{DONE}"))) == POINTS


@pytest.mark.long(but=["change0-only sweeps can be resumed, and tiny has no sweep"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sweep": ""}, "only sweeps can be resumed, and tiny has no sweep"),
        ({"rounds: 2": "rounds: 3"}, "holds results of another scenario than "),
    ],
)
def test_what_cannot_be_resumed_is_one_line_and_exit_code_2(
    scenario: Path,
    tmp_path: Path,
    change: dict[str, str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = ran(scenario, tmp_path)
    before = (folder / "metrics.json").read_bytes()
    text = TEXT
    for old, new in change.items():
        text = text.replace(old, new) if new else text.partition(old)[0]
    scenario.write_text(text)
    capsys.readouterr()
    assert main.main(["run", str(scenario), "--resume", str(folder)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and message in error
    assert (folder / "metrics.json").read_bytes() == before


def test_a_folder_that_is_none_cannot_be_resumed(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["run", str(scenario), "--resume", str(tmp_path / "none")]) == 2
    assert "is not the result folder of a sweep" in capsys.readouterr().err


def test_how_many_run_at_once(scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = load(scenario)
    assert processes_for(suite, 7) == 7
    assert processes_for(suite, None) == len(os.sched_getaffinity(0))
    monkeypatch.setattr("agglab.testbed.experiment.points.memory_available_bytes", lambda: 1)
    assert processes_for(suite, None) == 1
    real = load(scenario, ["backend=mininet"])
    assert processes_for(real, 7) == 1


@pytest.mark.parametrize("number", ["0", "-1", "two"])
def test_a_wrong_number_of_processes_is_refused(
    scenario: Path, number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main.main(["run", str(scenario), f"--processes={number}"])
    assert "is not a whole number greater than 0" in capsys.readouterr().err
