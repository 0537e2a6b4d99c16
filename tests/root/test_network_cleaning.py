"""However a run ends, nothing of it stays, and nothing that is not its own is touched."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import needs
import pytest
from waiting import until

from agglab.testbed.base.scratch import remove_stale, state_folder
from agglab.testbed.real import isolation
from agglab.testbed.real.isolation import isolated

pytestmark = pytest.mark.root

CASES = Path(__file__).with_name("network_cases.py")
MARKER = "AGGLAB_TEST_RUN"


class Run:
    """A case in the background; every process of it carries a marker in its environment."""

    def __init__(self, tmp_path: Path, name: str, **arguments: Any) -> None:
        self.result = tmp_path / f"{uuid.uuid4().hex}.json"
        self.marker = f"{MARKER}={uuid.uuid4().hex}"
        self.before = world()
        key, value = self.marker.split("=")
        self.process = subprocess.Popen(
            [sys.executable, str(CASES), name, json.dumps(arguments), str(self.result)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, key: value},
            start_new_session=True,
            preexec_fn=heed_hangup,
        )

    def await_stage(self) -> dict[str, Any]:
        """The next line the case prints, as JSON."""
        assert self.process.stdout and self.process.stderr
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        stage: dict[str, Any] = json.loads(line)
        return stage

    def chain(self) -> dict[str, int]:
        """pids of the run's own four processes, as seen from here."""
        names = ("outer", "gate", "init", "run")
        pids = [self.process.pid]
        for _ in names[1:]:
            pids.append(min(children(pids[-1])))
        return dict(zip(names, pids, strict=True))

    def members(self) -> list[int]:
        """pids of all living processes of the run."""
        return marked(self.marker)

    def assert_nothing_left(self) -> None:
        """No process, interface, mount or cgroup more than before the run.

        Nor a namespace: one without a process lives on only in a mount, which is looked for.
        (Their inode numbers tell nothing: the kernel gives them to the next run.)
        """
        until(lambda: not self.members(), "no process of the run is left")
        assert world() == self.before


def heed_hangup() -> None:
    """A run under nohup ignores SIGHUP, as it should; so would every run these tests start."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def all_pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def marked(marker: str) -> list[int]:
    """pids of the living processes that have the marker in their environment."""
    return [pid for pid in all_pids() if marker in environment(pid)]


def environment(pid: int) -> list[str]:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    return []


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def world() -> dict[str, Any]:
    """What of the machine a run must leave as it was, as far as a run could change it.

    Not all interfaces, mounts and cgroups: system services and other users come and go meanwhile.
    """
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    named = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout
    names = [line.split(":")[1].strip().split("@")[0] for line in links.splitlines()]
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    cgroups = [folder for folder, _, _ in os.walk("/sys/fs/cgroup")]
    limits = ("fs/file-max", "net/core/wmem_max", "net/core/rmem_max", "net/ipv4/tcp_rmem")
    return {
        "interfaces": sorted(name for name in names if re.search(r"-eth\d|^probe|^veth|^br", name)),
        "named namespaces": named,
        "mounts": [line for line in mounts if re.search("agglab|netns|bpf|tmpfs /tmp", line)],
        "cgroups": sorted(
            path for path in cgroups if re.search(r"/([hs]\d+|mininet|agglab)", path)
        ),
        "limits": [(Path("/proc/sys") / name).read_text() for name in limits],
    }


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Any]:
    """Start runs that do not outlive the test."""
    runs: list[Run] = []

    def start_run(name: str, **arguments: Any) -> Run:
        runs.append(Run(tmp_path, name, **arguments))
        return runs[-1]

    yield start_run
    for run in runs:
        for pid in run.members():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        run.process.communicate()


STAGES = [
    ("stand_still", {"at": "before"}),
    ("stand_still_while_building", {}),
    ("stand_still", {"at": "built"}),
    ("stand_still", {"at": "closing"}),
]


BUILT = STAGES[2]


@pytest.mark.long(but=["stand_still-arguments0-outer"])
@pytest.mark.parametrize(
    ("name", "arguments", "victim"),
    [
        *((*stage, victim) for stage in STAGES for victim in ("outer", "run")),
        *((*BUILT, victim) for victim in ("gate", "init")),
    ],
)
def test_kill_of_any_process_at_any_moment(
    start: Any, name: str, arguments: dict[str, str], victim: str
) -> None:
    run = start(name, **arguments)
    stage = run.await_stage()
    os.kill(run.chain()[victim], signal.SIGKILL)
    status = run.process.wait()
    assert status == (-signal.SIGKILL if victim == "outer" else 128 + signal.SIGKILL)
    run.assert_nothing_left()
    scratch = Path(stage["scratch"])
    until(
        lambda: remove_stale() == [] and not scratch.exists(),  # another run may be removing it
        f"{scratch} is removed",
    )


@pytest.mark.long(but=["built"])
@pytest.mark.parametrize(("name", "arguments"), STAGES, ids=["start", "building", "built", "end"])
def test_ctrl_c_reaches_the_whole_group(start: Any, name: str, arguments: dict[str, str]) -> None:
    run = start(name, **arguments)
    run.await_stage()
    os.killpg(run.process.pid, signal.SIGINT)
    assert run.process.wait() == 130
    assert run.process.stderr.read() == "", "no traceback"
    run.assert_nothing_left()


@pytest.mark.long
@needs.mark("make")
def test_ctrl_c_at_a_terminal_under_make(tmp_path: Path) -> None:
    """The terminal sends SIGINT to make and to every process of the run at once."""
    case = f'{sys.executable} {CASES} stand_still \'{{"at": "built"}}\' {tmp_path / "result"}'
    (tmp_path / "Makefile").write_text(f"run:\n\t@{case}\n")
    before, marker = world(), f"{MARKER}={uuid.uuid4().hex}"
    pid, terminal = pty.fork()
    if pid == 0:
        key, value = marker.split("=")
        os.environ[key] = value
        os.execvp("make", ["make", "-C", str(tmp_path), "run"])
    read_terminal(terminal, until_seen='"stage"')
    os.write(terminal, b"\x03")
    said = read_terminal(terminal, until_seen=None)
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) in (2, -signal.SIGINT)
    assert "Error 130" in said and "Traceback" not in said
    until(lambda: not marked(marker), "no process of the run is left")
    assert world() == before


def read_terminal(terminal: int, until_seen: str | None) -> str:
    """What appears, up to the line that holds a text, or to the end when that is None."""
    said = ""
    while until_seen is None or until_seen not in said or not said.endswith("\n"):
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # EIO: nobody has the other end any more
            break
        said += piece.decode()
    return said


@pytest.mark.long(but=["15"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_outer_process_alone(start: Any, number: int) -> None:
    run = start("stand_still", at="built")
    run.await_stage()
    os.kill(run.process.pid, number)
    assert run.process.wait() == 130
    run.assert_nothing_left()


@pytest.mark.long
def test_a_second_ctrl_c_ends_a_run_that_does_not(start: Any) -> None:
    run = start("deaf")
    run.await_stage()
    os.kill(run.process.pid, signal.SIGINT)
    run.await_stage()
    assert run.process.poll() is None
    impatient = time.monotonic() + isolation.PATIENCE_S
    until(lambda: time.monotonic() > impatient, "the run has been patient")
    os.kill(run.process.pid, signal.SIGINT)
    assert run.process.wait() == 128 + signal.SIGKILL


def test_an_exception_leaves_nothing_and_fails(start: Any) -> None:
    run = start("fail")
    _, said = run.process.communicate()
    assert run.process.returncode == 1
    assert "RuntimeError: a bug of the caller" in said
    run.assert_nothing_left()


@pytest.mark.long(but=["3"])
@pytest.mark.parametrize("code", [0, 1, 2, 3, 7])
def test_exit_codes_pass_through(start: Any, code: int) -> None:
    run = start("leave", code=code)
    assert run.process.wait() == code


def test_two_networks_with_the_same_names_at_once(start: Any) -> None:
    runs = [start("two_at_once", gate=gate) for gate in ("a", "b")]
    stages = [run.await_stage() for run in runs]
    assert stages[0]["scratch"] != stages[1]["scratch"]
    remove_stale()
    assert all(Path(stage["scratch"]).is_dir() for stage in stages), "a living run is not stale"
    for run, gate in zip(runs, ("a", "b"), strict=True):
        run.process.communicate("go\n")
        result = json.loads(run.result.read_text())
        assert result["gate"] == gate
        assert "1 received" in result["ping"]


def test_the_next_run_removes_what_a_killed_one_left(start: Any, tmp_path: Path) -> None:
    run = start("stand_still", at="before")
    run.await_stage()
    before = set(state_folder("agglab").iterdir())
    os.kill(run.process.pid, signal.SIGKILL)
    run.process.wait()
    until(lambda: not run.members(), "no process of the run is left")
    foreign = state_folder("agglab") / f"not-a-run-{uuid.uuid4().hex}"
    foreign.mkdir()
    try:
        follower = start("leave", code=0)
        assert follower.process.wait() == 0
        assert foreign.exists(), "no run made it"
        assert len(set(state_folder("agglab").iterdir()) & before) < len(before)
    finally:
        foreign.rmdir()


def test_isolated_hides_the_machine_and_gives_a_private_directory(tmp_path: Path) -> None:
    seen = tmp_path / "seen.json"

    def look(scratch: Path) -> int:
        links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True).stdout
        (scratch / "mine").touch()
        subprocess.run(["mount", "-t", "tmpfs", "none", str(scratch)], check=True)
        seen.write_text(
            json.dumps(
                {
                    "interfaces": [line.split(":")[1].strip() for line in links.splitlines()],
                    "pids": sorted(
                        int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()
                    ),
                    "scratch": str(scratch),
                    "mode": scratch.stat().st_mode & 0o777,
                }
            )
        )
        return 5

    before = world()
    assert isolated(look) == 5
    got = json.loads(seen.read_text())
    assert got["interfaces"] == ["lo"]
    assert got["pids"][:2] == [1, 2] and len(got["pids"]) == 2
    assert len(got["scratch"]) < 40, "Unix socket paths have 107 bytes"
    assert not Path(got["scratch"]).exists()
    assert world() == before
