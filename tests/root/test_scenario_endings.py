"""However a run ends, nothing of it stays; whatever outsiders send, no sum changes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from own_program import AGGREGATION, own_program
from waiting import until

pytestmark = pytest.mark.root

ROOT = Path(__file__).resolve().parents[2]
LONG = """
name: long
topology: {workers: 3}
links: {rate: 20mbit}
switch: {lanes: 64, slots: 16}
workload: {elements: 400_000, rounds: 1000}
"""
"""It lasts much longer than what a test does meanwhile."""

COLD = """
name: cold
topology: {kind: two_tier, racks: 2, workers: 2}
switch: {lanes: 8, slots: 8}
workload: {elements: 100}
"""
COMPILER = """#!/bin/sh
[ "$#" -gt 5 ] && echo $(tr '\\0' ' ' </proc/$PPID/cmdline) "$@" >>{log}
exec {cc} "$@"
"""


def world() -> tuple[set[str], set[str]]:
    """Interfaces and named namespaces outside any run."""
    interfaces = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True)
    names = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True)
    links = {line.split(": ")[1] for line in interfaces.stdout.splitlines()}
    return links, set(names.stdout.split())


@pytest.mark.long(but=["15"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_nothing_but_a_reason(scenario, number: int) -> None:
    before = world()
    process = scenario.start(scenario.write(LONG))
    scenario.await_event("long", "progress")
    assert len(scenario.processes()) > 4
    os.killpg(process.pid, number)  # as a terminal does: to all of them
    out, err = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in out + err
    assert "FAILED  long" in out
    assert "interrupted" in out
    assert scenario.processes() == {}
    assert world() == before


@pytest.mark.long
def test_an_interrupted_comparison_leaves_nothing_but_reasons(scenario) -> None:
    before = world()
    process = scenario.start(scenario.write(LONG + "compare: {a: {}, b: {system: ring}}\n"))
    folder = scenario.await_event("long", "progress", "b")
    both = [words for words in scenario.processes().values() if "agent-h1.json" in words]
    assert len(both) == 2, "all contenders are alive"
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in out + err
    found = json.loads((folder.parent / "metrics.json").read_text())
    assert [run["reason"] for run in found["contenders"].values()] == ["interrupted"] * 2
    assert scenario.processes() == {}
    assert world() == before
    assert not list(folder.parent.rglob("sums"))


def test_a_killed_run_leaves_nothing_behind_the_next_clean(scenario) -> None:
    before = world()
    process = scenario.start(scenario.write(LONG))
    folder = scenario.await_event("long", "progress")
    process.kill()
    process.communicate()
    until(lambda: scenario.processes() == {}, "the kernel ends what the run started")
    done = subprocess.run(
        [sys.executable, "-m", "agglab.testbed", "clean"], cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert world() == before
    assert '"the run did not finish"' in (folder / "metrics.json").read_text()
    assert not (folder / "report.html").exists()


def test_an_agent_that_is_killed_ends_the_run_and_is_named(scenario) -> None:
    process = scenario.start(scenario.write(LONG))
    scenario.await_event("long", "progress")
    agent = next(p for p, words in scenario.processes().items() if "agent-h2.json" in words)
    os.kill(agent, signal.SIGKILL)
    out, err = process.communicate()
    assert process.returncode == 1
    assert "h2: worker 1 exited early" in err
    assert "hosts.agent" in err
    assert "FAILED  long" in out
    assert scenario.processes() == {}


@pytest.mark.long
def test_a_switch_that_is_killed_ends_the_run_and_is_named(scenario) -> None:
    process = scenario.start(scenario.write(LONG))
    scenario.await_event("long", "progress")
    switch = next(p for p, words in scenario.processes().items() if "-m p4native.switch" in words)
    os.kill(switch, signal.SIGKILL)
    _, err = process.communicate()
    assert process.returncode == 1
    assert err.startswith("s1: ")
    assert "-m p4native.switch" in err


@pytest.mark.long
def test_a_worker_that_hears_nothing_gives_up_and_names_what_is_missing(scenario) -> None:
    text = LONG.replace("20mbit}", "20mbit, overrides: [{match: h3-s1, loss: 99.999%}]}")
    ended = scenario.run(scenario.write(text), "--set", "workload.give_up=500ms")
    assert ended.code == 1
    assert ended.metrics["ok"] is False
    assert "worker " in ended.metrics["reason"]
    assert "chunk" in ended.metrics["reason"]


@pytest.mark.long
def test_two_runs_at_once_do_not_meet(scenario) -> None:
    processes = [scenario.start(scenario.write(LONG.replace("1000", "1"))) for _ in range(2)]
    for process in processes:
        out, err = process.communicate()
        assert process.returncode == 0, out + err


def test_a_p4_program_with_an_error_is_shown_with_its_place(scenario, tmp_path: Path) -> None:
    bad = own_program(tmp_path, (AGGREGATION, "meta.stale = ", "meta.stail = "))
    ended = scenario.run("quickstart", "--set", f"switch.program={bad}")
    assert ended.code == 2
    assert "aggregation.p4:" in ended.err
    assert "stail" in ended.err
    assert "Traceback" not in ended.err
    assert ended.folder is None


def test_a_program_that_cannot_be_filled_is_refused_before_anything_starts(scenario) -> None:
    program = ROOT / "toolchain/tests/packets/ipv4_router.p4"
    ended = scenario.run("quickstart", "--set", f"switch.program={program}")
    assert ended.code == 2
    lines = ended.err.splitlines()
    assert all(line.startswith(f"{program}: ") for line in lines)
    assert "it has no table sources, macs, members, results, only Work.routes; " in lines[0]
    assert "Work.routes" in lines[1]
    assert "no action route, only Work.forward, Work.drop: " in lines[1]
    assert len(lines) == 2
    assert ended.folder is None


@pytest.mark.long(but=["numpy"])
@pytest.mark.parametrize("module", ["yaml", "numpy", "mininet", "grpc", "google"])
def test_a_missing_python_module_is_named(module: str, tmp_path: Path) -> None:
    script = tmp_path / "without.py"
    script.write_text(
        "import importlib.machinery, runpy, sys\n"
        "find = importlib.machinery.PathFinder.find_spec\n"
        f"hide = lambda n, *a: None if n.split('.')[0] == {module!r} else find(n, *a)\n"
        "importlib.machinery.PathFinder.find_spec = staticmethod(hide)\n"
        "sys.argv = ['agglab', 'run', 'quickstart']\n"
        "runpy.run_module('agglab.testbed', run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith(f"this machine lacks the Python module {module}")
    assert f"run `make -C {ROOT} setup`" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_missing_program_is_named_with_its_package(scenario, tmp_path: Path) -> None:
    """`mnexec`, because Agglab looks for what administers a system outside of the PATH, too."""
    for name in ("ip", "cc", "gcc", "ld", "as"):
        found = subprocess.run(["which", name], capture_output=True, text=True).stdout.strip()
        (tmp_path / name).symlink_to(found)
    ended = scenario.run_with_programs(tmp_path, "quickstart")
    assert ended.code == 3
    assert ended.err.startswith("this machine lacks the program mnexec: ")
    assert "apt-get install mininet" in ended.err
    assert ended.err.count("\n") == 1
    assert ended.folder is None


OUTSIDER = Path(__file__).with_name("send_foreign_frames.py")
EXPECT = "expect: {{exact: true, findings: [{findings}]}}\n"


@pytest.fixture
def disturbed(scenario):
    """Metrics of a run during which an outsider sent frames in a process's namespace."""

    def run(where: str, *words: str, findings: str = "refused") -> dict:
        text = LONG.replace("1000", "12") + EXPECT.format(findings=findings)
        process = scenario.start(scenario.write(text))
        folder = scenario.await_event("long", "progress")
        pid = next(p for p, command in scenario.processes().items() if where in command)
        enter = ["nsenter", f"--net=/proc/{pid}/ns/net", sys.executable, str(OUTSIDER)]
        subprocess.run([*enter, *words], check=True)
        assert process.poll() is None, "the run was over before the outsider had finished"
        out, err = process.communicate()
        assert process.returncode == 0, out + err
        return json.loads((folder / "metrics.json").read_text())

    return run


@pytest.mark.long
def test_wrong_contributions_change_no_sum_and_are_counted(disturbed) -> None:
    metrics = disturbed("agent-h2.json", "h2-eth0", "2", "contributions", "400")
    assert metrics["exact"] is True
    packets = metrics["switches"]["s1"]["packets"]
    assert packets["refused"] == 13 * 20
    assert packets["malformed"] >= 20
    assert metrics["totals"]["malformed"] >= 14 * 20


@pytest.mark.long
def test_wrong_results_change_no_sum_and_are_counted(disturbed) -> None:
    metrics = disturbed(
        *("-m p4native.switch", "s1-eth1", "1", "results", "280"), findings="refused, sent-unasked"
    )
    assert metrics["exact"] is True
    assert metrics["workers"]["0"]["malformed"] == 14 * 20
    assert metrics["workers"]["1"]["malformed"] == 0


@pytest.mark.long
def test_results_forged_by_another_host_change_no_sum(disturbed) -> None:
    metrics = disturbed("agent-h2.json", "h2-eth0", "2", "forged", "2000")
    assert metrics["exact"] is True
    assert metrics["switches"]["s1"]["packets"]["forged"] == 2000


@pytest.fixture
def tmp_path_for_everybody() -> Iterator[Path]:
    """The switch is another user when it calls the compiler."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.long
def test_what_all_programs_share_is_compiled_once_and_before_them(
    scenario, tmp_path: Path, tmp_path_for_everybody: Path
) -> None:
    """Not on the time that switches and agents have for their start (`timeouts.start`)."""
    everybodys = tmp_path_for_everybody
    log, compiler = everybodys / "compiled", everybodys / "bin/cc"
    compiler.parent.mkdir()
    compiler.write_text(COMPILER.format(log=log, cc=shutil.which("cc")))
    compiler.chmod(0o755)
    log.touch()
    log.chmod(0o666)
    surroundings = {
        "PATH": f"{compiler.parent}:{os.environ['PATH']}",
        "P4NATIVE_CACHE": str(tmp_path / "cache"),
    }
    done = scenario.run(scenario.write(COLD), **surroundings)
    assert done.code == 0, done.err
    # Of the hosts' C there is a library of its own, and one with the system's C.
    times = {"switch/io": 1, "hosts/native": 2, "summing/native": 1}
    asked: dict[str, list[str]] = {folder: [] for folder in times}
    for words in map(str.split, log.read_text().splitlines()):
        sources = [Path(word).parent for word in words if word.endswith(".c")]
        for folder in {"/".join(source.parts[-2:]) for source in sources} & set(asked):
            asked[folder].append(words[words.index("-m") + 1])
    assert asked == {folder: ["agglab.testbed"] * count for folder, count in times.items()}
