"""Networks that are cut into parts, whose clocks run at the same time: every result must be that of
a single clock."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, TextIO

import needs
import pytest
from waiting import until
from windowed import LANES, SLOTS, drawn, run

from agglab.common.c_build import compiler
from agglab.testbed import processors, virtual
from agglab.testbed import run as testbed_run
from agglab.testbed.backend import MustRepeat
from agglab.testbed.scenario import ScenarioError, Suite, find, load
from agglab.testbed.virtual import CompiledProgram, VirtualBackend
from agglab.testbed.virtual.clock import Clock
from agglab.testbed.virtual.parts import cut
from agglab.topologies import rack, two_tier
from agglab.verification import programs

SANITIZED = "AGGLAB_SANITIZE" in os.environ
SEEDS = range(4 if SANITIZED else 24)
FILES = ("events.jsonl", "drops.json", "series.csv", "latency.csv", "metrics.json")
GIVES_UP = """
name: gives-up
seed: 3
backend: virtual
topology: {kind: two_tier, racks: 2, workers: 4}
links: {rate: 100mbit}
workload: {kind: allreduce, elements: 50_000, dtype: int32, rounds: 1, give_up: 100ms}
faults: [{kind: link_down, link: h1-s1, at: 1ms}]
"""
COMMON = f"""
name: parts
seed: 3
backend: virtual
topology: {{kind: two_tier, racks: 4, workers: 4}}
switch: {{lanes: {LANES}, slots: {SLOTS}}}
workload: {{kind: allreduce, elements: 4_000, dtype: int32, rounds: 1, give_up: 60s}}
"""
MANY_LANES = 64
"""Packets with values are several times as long as packets without any."""
JITTER = "{kind: jitter, link: '*', jitter: 50us}"


@pytest.mark.parametrize(
    ("system", "lanes"), [("switchml", LANES), ("switchml", MANY_LANES), ("omnireduce", LANES)]
)
def test_random_schedules_come_to_the_same_in_any_number_of_parts(system: str, lanes: int) -> None:
    compiled = CompiledProgram(programs.compiled(system, lanes, SLOTS).json)
    total: Counter[str] = Counter()
    for seed in SEEDS:
        scenario = drawn(seed, system, lanes)
        alone = run(scenario, compiled, 1)
        assert alone.windows == (0, 0)
        for parts in (2, 3):
            total["runs"] += 1
            try:
                seen = run(scenario, compiled, parts)
            except MustRepeat:
                total["repeated"] += 1
                continue
            assert seen.results == alone.results, f"seed {seed}, {parts} parts"
            total["actions"] += seen.actions
            total["in windows"] += seen.windows[1]
    assert total["in windows"] > total["actions"] / 2
    assert total["repeated"] < total["runs"] / 3


def results_of(name: str, settings: list[str], folder: Path) -> dict[str, bytes]:
    """Runs a scenario as `agglab run` does, and returns the files that must not differ."""
    suite = load(find(name), [*settings, "backend=virtual"])
    return files_of(suite, settings, folder)


def files_of(
    suite: Suite, settings: list[str], folder: Path, stream: TextIO | None = None
) -> dict[str, bytes]:
    testbed_run.run(suite, folder, settings, stream or io.StringIO())
    latest = folder / suite.name / "latest"
    manifest = json.loads((latest / "manifest.json").read_text())
    return {name: (latest / name).read_bytes() for name in FILES} | {
        "events_sha256": manifest["events_sha256"].encode()
    }


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("loss", ["workload.elements=50_000"]),
        ("two-racks", ["workload.elements=50_000"]),
        ("disorder", ["workload.elements=50_000"]),
        ("three-tier", ["workload.elements=20_000", "links.delay=20us"]),
        ("two-jobs", ["workload.elements=20_000"]),
        ("link-pulled", []),
        ("survivors", []),
        ("switch-restart", []),
    ],
)
def test_result_folders_are_alike_to_the_byte(
    name: str, settings: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processors, "HOSTS_MIN", 2)
    found = {}
    for count in ("1", "2", "3"):
        monkeypatch.setenv(processors.VARIABLE, count)
        found[count] = results_of(name, settings, tmp_path / count)
    assert found["2"] == found["1"]
    assert found["3"] == found["1"]


@pytest.fixture(scope="module")
def switchml() -> CompiledProgram:
    return CompiledProgram(programs.compiled("switchml", LANES, SLOTS).json)


def assert_alike(text: str, compiled: CompiledProgram, folder: Path) -> str:
    """Checks that a scenario comes to the same in any number of parts. Returns its statistics."""
    path = folder / "scenario.yaml"
    path.write_text(COMMON + text)
    scenario = load(path).points[0].resolved.scenario
    alone = run(scenario, compiled, 1)
    for parts in (2, 3):
        seen = run(scenario, compiled, parts)
        assert seen.results == alone.results
        assert seen.windows[1] > seen.actions / 3
    return str(alone.results[2])


def test_actions_of_python_take_place_between_windows(
    switchml: CompiledProgram, tmp_path: Path
) -> None:
    times = [f"{n}.{n:03}777ms" for n in range(40)]
    faults = [f"{{kind: link_down, link: '*', at: {time}, for: 30us}}" for time in times] + [JITTER]
    text = f"links: {{rate: 20mbit}}\nfaults: [{', '.join(faults)}]\n"
    assert re.search("lost_link_down=[1-9]", assert_alike(text, switchml, tmp_path))


def test_a_full_queue_of_a_link_between_parts(switchml: CompiledProgram, tmp_path: Path) -> None:
    narrow = "{match: 's*-s5', rate: 2mbit, queue: 2kB}"
    text = f"links: {{rate: 20mbit, overrides: [{narrow}]}}\nfaults: [{JITTER}]\n"
    assert re.search("dropped_by_queue=[1-9]", assert_alike(text, switchml, tmp_path))


def test_windows_get_shorter_when_a_link_between_parts_gets_faster(
    switchml: CompiledProgram, tmp_path: Path
) -> None:
    """If they stayed as long, a frame would arrive within a window, and `run` raise MustRepeat."""
    slow = "{match: 's*-s5', rate: 2mbit}"
    faster = "{kind: rate, link: 's*-s5', rate: 200mbit, at: 3ms}"
    text = f"links: {{rate: 20mbit, overrides: [{slow}]}}\nfaults: [{faster}, {JITTER}]\n"
    assert_alike(text, switchml, tmp_path)


def test_a_run_in_which_python_must_act_in_a_window_is_repeated_with_one_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    class Recorded(VirtualBackend):
        def __init__(self, *given: Any, parts: int = 1, **more: Any) -> None:
            made.append(parts)
            super().__init__(*given, parts=parts, **more)

    monkeypatch.setattr(virtual, "VirtualBackend", Recorded)
    monkeypatch.setattr(processors, "HOSTS_MIN", 2)
    (tmp_path / "gives-up.yaml").write_text(GIVES_UP)
    found, told = [], []
    for count in ("1", "2"):
        monkeypatch.setenv(processors.VARIABLE, count)
        stream = io.StringIO()
        found.append(files_of(load(tmp_path / "gives-up.yaml"), [], tmp_path / count, stream))
        told.append("begins again with one; AGGLAB_PROCESSORS=1 avoids" in stream.getvalue())
    assert made == [1, 2, 1]
    assert told == [False, True]
    assert found[0] == found[1]
    assert b"never heard the sum" in found[0]["metrics.json"]


def test_threads_end_with_the_network(switchml: CompiledProgram) -> None:
    before = set(os.listdir("/proc/self/task"))
    assert run(drawn(1, "switchml"), switchml, 3).windows > (0, 0)
    # The kernel lists a thread a little longer.
    until(lambda: not set(os.listdir("/proc/self/task")) - before, "the threads have ended")


def test_one_processor_for_small_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(processors.VARIABLE, "5")
    monkeypatch.setattr(processors, "HOSTS_MIN", 8)
    assert processors.for_network(rack(7)) == 1
    assert processors.for_network(rack(8)) == 5
    monkeypatch.delenv(processors.VARIABLE)
    assert processors.allowed() == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("value", ["0", "two", "-1", "1.5", "²", "99999"])
def test_a_number_of_processors_that_is_none_is_refused(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(processors.VARIABLE, value)
    with pytest.raises(ScenarioError, match=f"AGGLAB_PROCESSORS: '{value}' is not a whole number"):
        results_of("quickstart", [], tmp_path)
    assert not list(tmp_path.iterdir())
    with pytest.raises(ScenarioError, match="is not a whole number"):
        processors.allowed()  # by a point on another machine


@pytest.mark.parametrize(
    ("name", "hosts"),
    [("ten-thousand-workers", [5000, 5000]), ("fat-tree", [8, 8]), ("quickstart", [2, 2])],
)
def test_parts_have_as_many_hosts(name: str, hosts: list[int]) -> None:
    graph = load(find(name)).points[0].resolved.graph
    parts = cut(graph, 2)
    assert set(parts) == {node.name for node in (*graph.hosts, *graph.switches)}
    count = Counter(parts[host.name] for host in graph.hosts)
    assert [count[0], count[1]] == hosts


@pytest.mark.parametrize("wanted", [4, 5, 1000, 10**12])
def test_there_are_no_clocks_for_more_parts_than_there_are_racks(
    wanted: int, switchml: CompiledProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, part = [], Clock.part

    def counted(self: Clock) -> int:
        assert len(made) < 4, "a clock without nodes"
        made.append(part(self))
        return made[-1]

    monkeypatch.setattr(Clock, "part", counted)
    graph = two_tier(4, 3)
    with VirtualBackend(graph, 1, {s.name: switchml for s in graph.switches}, parts=wanted):
        assert len(made) == 4


def test_pods_and_racks_are_not_cut() -> None:
    graph = load(find("ten-thousand-workers")).points[0].resolved.graph
    parts = cut(graph, 2)
    crossing = [link for link in graph.links if parts[link.a.node] != parts[link.b.node]]
    assert len(crossing) == 4  # of the root and four pods


@pytest.mark.skipif(SANITIZED, reason="this is the process it starts")
def test_random_schedules_under_the_thread_sanitizer() -> None:
    tsan = subprocess.run(
        [compiler(), "-print-file-name=libtsan.so"], capture_output=True, text=True, check=True
    )
    if not os.path.isabs(tsan.stdout.strip()):
        needs.skip_lacking("the C compiler's thread sanitizer", "apt-get install libtsan2")
    environment = dict(os.environ, AGGLAB_SANITIZE="thread", LD_PRELOAD=tsan.stdout.strip())
    command = ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", "random_schedules"]
    done = subprocess.run(
        [sys.executable, *command, str(Path(__file__))],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "3 passed" in done.stdout
