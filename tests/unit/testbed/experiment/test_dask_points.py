"""Points of a sweep run by the workers of a Dask scheduler, one of which is killed midway."""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import needs
import pytest
from waiting import until

from agglab.testbed.base import scratch
from agglab.testbed.base.errors import MachineLacks
from agglab.testbed.base.exit_codes import LACKING
from agglab.testbed.base.scratch import remove_stale
from agglab.testbed.cli import main
from agglab.testbed.experiment import dask_points
from agglab.testbed.experiment.point_group import DONE

TEXT = """
name: tiny
backend: virtual
topology: {workers: 2}
links: {rate: 10mbit, loss: 2%}
switch: {lanes: 16, slots: 8}
workload: {elements: 700, dtype: int32, rounds: 2}
sweep: {topology.workers: [2, 3], seed: {from: 1, to: 3}}
"""
POINTS = 6
PATIENCE_S = 60


class Cluster:
    """A scheduler and two workers, each a process."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.temporary = folder, folder / "temporary"
        self.temporary.mkdir()
        self._started: list[subprocess.Popen[str]] = []
        self.address = f"tcp://127.0.0.1:{free_port()}"
        self._start("distributed.cli.dask_scheduler", "--host", self.address, "--no-dashboard")
        self.workers = [self.add_worker() for _ in range(2)]

    def add_worker(self) -> subprocess.Popen[str]:
        """Without a nanny, so that nobody starts it again."""
        words = [self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        return self._start("distributed.cli.dask_worker", *words)

    def _start(self, module: str, *words: str) -> subprocess.Popen[str]:
        log = (self._folder / f"{len(self._started)}.log").open("w")
        process = subprocess.Popen(
            [sys.executable, "-m", module, *words],
            cwd=self._folder,
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env={**os.environ, "TMPDIR": str(self.temporary)},
        )
        self._started.append(process)
        return process

    def stop(self) -> None:
        for process in self._started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    needs.require("Dask")
    made = Cluster(tmp_path)
    yield made
    made.stop()


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    file = tmp_path / "tiny.yaml"
    file.write_text(TEXT)
    return file


def latest(results: Path) -> Path:
    return (results / "tiny/latest").resolve()


@pytest.mark.long
def test_a_worker_that_is_killed_midway_loses_nothing(
    cluster: Cluster, scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same table as on this machine alone, and each point is there once."""
    here, there = tmp_path / "here", tmp_path / "there"
    assert main.main(["run", str(scenario), "--results", str(here)]) == 0
    killer = threading.Thread(target=kill_after_first_point, args=(cluster, there), daemon=True)
    killer.start()
    words = ["run", str(scenario), "--results", str(there), "--scheduler", cluster.address]
    capsys.readouterr()
    assert main.main(words) == 0
    out = capsys.readouterr().out
    for ended in range(1, POINTS):
        assert re.search(rf"\({ended} of {POINTS}, about \d+ s left\)", out)
    assert f"({POINTS} of {POINTS})" in out
    killer.join()
    assert cluster.workers[0].poll() == -signal.SIGKILL
    remove_stale()  # as the next run does
    assert list(cluster.temporary.glob("agglab-point-*")) == []
    for file in ("metrics.json", "events.jsonl", "series.csv", "scenario.yaml", DONE):
        ours, theirs = (
            {path.parent.name: path.read_bytes() for path in latest(folder).glob(f"point-*/{file}")}
            for folder in (here, there)
        )
        assert len(ours) == POINTS
        assert ours == theirs
    assert (latest(here) / "metrics.json").read_bytes() == (
        latest(there) / "metrics.json"
    ).read_bytes()


def kill_after_first_point(cluster: Cluster, results: Path) -> None:
    until(lambda: list(results.glob(f"tiny/2*/point-*/{DONE}")), "a point has ended")
    os.killpg(cluster.workers[0].pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--scheduler", "here:1"], "'here:1' is not tcp://HOST:PORT"),
        (["--scheduler", "tcp://"], "'tcp://' is not tcp://HOST:PORT"),
        (["--scheduler", "tcp://127.0.0.1:1", "--set", "sweep={}"], "has no sweep"),
    ],
)
def test_what_is_no_scheduler_is_told_in_one_line(
    scenario: Path,
    tmp_path: Path,
    words: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "alone.yaml"
    file.write_text(re.sub(r"sweep:.*\n", "", TEXT))
    chosen = file if "--set" in words else scenario
    words = words[:2]
    assert main.main(["run", str(chosen), "--results", str(tmp_path / "r"), *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "r").exists()


def test_a_worker_with_another_version_runs_nothing(tmp_path: Path) -> None:
    status, said, files = dask_points.work(
        json.dumps({"number": 0, "label": "x", "runs": [], "code": "another"})
    )
    assert (status, files) == (2, b"")
    assert "another version of agglab" in said


def test_files_of_a_point_stay_in_its_folder(tmp_path: Path) -> None:
    """A worker is trusted with its point, not with what lies beside it."""
    import io
    import tarfile

    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name in ("inside", "../outside", "/tmp/agglab-outside"):
            member = tarfile.TarInfo(name)
            member.size = 2
            archive.addfile(member, io.BytesIO(b"hi"))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        archive.addfile(link)
    dask_points._unpack(made.getvalue(), tmp_path / "point")
    assert [p.name for p in (tmp_path / "point").rglob("*")] == ["inside"]
    assert not (tmp_path / "outside").exists()
    assert not Path("/tmp/agglab-outside").exists()


def test_a_worker_without_a_state_folder_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scratch, "state_folder", lambda _: tmp_path / "file")
    (tmp_path / "file").write_text("")
    code, said, files = dask_points.work("{}")
    assert (code, files) == (LACKING, b"")
    assert f"({tmp_path / 'file'}: File exists)" in said


def test_what_a_machine_lacks_can_be_told_by_another_process() -> None:
    found = pickle.loads(pickle.dumps(MachineLacks("a thing", "get it")))
    assert str(found) == "this machine lacks a thing: get it"
    assert (found.what, found.remedy) == ("a thing", "get it")
