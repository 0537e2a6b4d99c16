"""Scratch folders: whose they may be, which are stale, and that nothing else is removed."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import needs
import pytest
from waiting import until

from agglab.testbed.base import scratch
from agglab.testbed.base.errors import MachineLacks
from agglab.testbed.base.scratch import note_elsewhere, remove_stale, scratch_folder
from p4native.common import private_folders

OTHER_USER = 65534
ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "state"
    monkeypatch.setattr(scratch, "state_folder", lambda program: folder)
    return folder


def test_only_folders_of_dead_runs_are_stale(state: Path) -> None:
    state.mkdir()
    for name in ("run-dead", "run-alive", "run-killed-early", "other"):
        (state / name).mkdir()
        (state / name / "s1.grpc").touch()
    for name in ("run-dead", "run-alive", "other"):
        (state / name / scratch.LOCK).touch()
    lock = os.open(state / "run-alive" / scratch.LOCK, os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    dead = [str(state / "run-dead"), str(state / "run-killed-early")]
    try:
        assert remove_stale() == dead
    finally:
        os.close(lock)
    assert sorted(path.name for path in state.iterdir()) == ["guard", "other", "run-alive"]


def test_what_a_dead_run_noted_elsewhere_goes_with_it(state: Path, tmp_path: Path) -> None:
    noted, foreign = tmp_path / "results" / "sums", tmp_path / "results" / "logs"
    link = tmp_path / "link"
    for folder in (noted, foreign, state / "run-dead"):
        folder.mkdir(parents=True)
    link.symlink_to(foreign)
    for path in (noted, tmp_path / "gone", link):
        note_elsewhere(state / "run-dead", path)
    with (state / "run-dead" / scratch.ELSEWHERE).open("a") as notes:
        notes.write('"/half a li')
    assert remove_stale() == [str(noted), str(state / "run-dead")]
    assert foreign.exists() and not noted.exists()


def test_what_cannot_be_removed_yet_is_remembered(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while the last process of a killed run still writes there."""
    noted, dead = tmp_path / "sums", state / "run-dead"
    for folder in (noted, dead):
        folder.mkdir(parents=True)
    note_elsewhere(dead, noted)
    with monkeypatch.context() as patched:
        patched.setattr(scratch.shutil, "rmtree", lambda path, ignore_errors: None)
        assert remove_stale() == []
    assert remove_stale() == [str(noted), str(dead)]


def test_a_link_among_them_is_not_followed(state: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    for folder in (foreign, state):
        folder.mkdir()
    (foreign / "thesis.tex").touch()
    (state / "run-link").symlink_to(foreign)
    assert remove_stale() == []
    assert (foreign / "thesis.tex").exists()


def as_link(state: Path, target: Path) -> None:
    state.symlink_to(target)


def as_file(state: Path, target: Path) -> None:
    state.touch()


def writable(state: Path, target: Path) -> None:
    (state / "run-x").mkdir(parents=True)
    state.chmod(0o777)


def of_another(state: Path, target: Path) -> None:
    needs.require("root")  # to give a folder away
    (state / "run-x").mkdir(parents=True)
    os.chown(state, OTHER_USER, OTHER_USER)


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (as_link, "is not a folder"),
        (as_file, "File exists"),
        (writable, "others may write to it"),
        (of_another, f"belongs to user {OTHER_USER}"),
    ],
)
def test_a_state_folder_that_others_have_a_say_in_is_not_used(
    state: Path, tmp_path: Path, made: Callable[[Path, Path], None], why: str
) -> None:
    target = tmp_path / "victim"
    (target / "run-thesis").mkdir(parents=True)
    made(state, target)
    assert remove_stale() == []
    with pytest.raises(MachineLacks, match=why) as raised, scratch_folder():
        pass
    assert "set XDG_RUNTIME_DIR to a folder that belongs to you" in str(raised.value)
    assert (target / "run-thesis").exists()
    assert not (state / "run-x").exists() or list(state.iterdir()) == [state / "run-x"]


def test_a_runtime_folder_that_does_not_exist_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() or 1000)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "none"))
    monkeypatch.setattr(private_folders.tempfile, "gettempdir", lambda: str(tmp_path))
    assert scratch.state_folder("agglab") == tmp_path / f"agglab-{os.geteuid()}"


def test_a_runtime_folder_of_our_own_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = os.getuid()
    monkeypatch.setattr(private_folders, "why_not_ours", lambda path: None)
    monkeypatch.setattr(os, "geteuid", lambda: user or 1000)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert scratch.state_folder("agglab") == tmp_path / "agglab"


def test_a_living_run_keeps_its_folder_and_removes_it_in_the_end(state: Path) -> None:
    with scratch_folder() as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        assert remove_stale() == []
        assert folder.exists()
    assert not folder.exists()


def test_clean_removes_what_a_killed_virtual_run_left(tmp_path: Path) -> None:
    words = ["run", "quickstart", "--set", "backend=virtual", "--set", "workload.rounds=1000"]
    words += ["--results", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "agglab.testbed", *words], cwd=ROOT, stdout=subprocess.DEVNULL
    )
    until(lambda: [*tmp_path.glob("quickstart/2*/sums")] or process.poll() is not None, "it runs")
    (sums,) = tmp_path.glob("quickstart/2*/sums")
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = subprocess.run(
        [sys.executable, "-m", "agglab.testbed", "clean"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0
    assert not sums.exists()  # removed by this `clean`, or by a run that began in between
