"""What docs/own-systems.md says of worker classes, programs and table entries, on real links."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from own_walk import Walk

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """The folder as it is after the first two steps of the page."""
    walk = Walk(tmp_path)
    for number in (1, 2):
        walk.follow(number)
    return walk.mine


@pytest.mark.long
@pytest.mark.root
@pytest.mark.parametrize("name", ["maximum", "exchange"])
def test_what_the_page_runs_on_real_links(tmp_path: Path, name: str) -> None:
    walk = Walk(tmp_path)
    commands = [command for number in range(1, 6) for command in walk.follow(number)]
    own = [command for command in commands if f"mine/{name}.yaml" in command]
    (real,) = (command for command in own if "virtual" not in command)
    assert f"PASSED  {name}" in walk.run(real)


@pytest.mark.long
@pytest.mark.parametrize(
    ("backend", "dtype"),
    [pytest.param("mininet", "int32", marks=pytest.mark.root), ("virtual", "float32")],
)
def test_the_maximum_is_exact_with_the_worker_class(
    scenario, mine: Path, backend: str, dtype: str
) -> None:
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
    (mine / "maximum.py").write_text("class Maximum:\n    pass\n")
    ended = scenario.run(str(mine / "maximum.yaml"))
    assert ended.code == 2
    assert ended.err.startswith(f"{mine}/maximum.yaml:4: workload.worker: ")
    assert "has no class Maximum that is a subclass of hosts.AllReducer" in ended.err
    declared = "from agglab.hosts import AllReducer\n\n\nclass Maximum(AllReducer):\n    pass\n\n\n"
    (mine / "maximum.py").write_text(declared + "raise RuntimeError('not today')\n")
    assert "RuntimeError: not today" in scenario.run(str(mine / "maximum.yaml")).err


def test_virtual_time_refuses_a_worker_that_does_its_own_reducing(scenario, mine: Path) -> None:
    path = mine / "maximum.py"
    path.write_text(path.read_text() + "\n    def all_reduce(self, array, out, sums):\n        1\n")
    ended = scenario.run(str(mine / "maximum.yaml"), "--set", "backend=virtual")
    assert ended.code == 2
    assert "in virtual time only its `combine` can be its own" in ended.err


ENTRIES = """
topology: {workers: 2}
switch: {lanes: 64, slots: 8, entries: run.json}
workload: {elements: 4000, rounds: 1, give_up: 300ms}
expect: {exact: true}
"""
TO_H1 = {
    "table": "results",
    "match": {"standard_metadata.egress_port": 1, "hdr.aggregation.job": 1},
    "action_name": "to_worker",
    "action_params": {"mac": "02:00:00:00:00:01", "address": "10.0.0.1", "udp_port": 48866},
}


@pytest.mark.long
@pytest.mark.parametrize("backend", [pytest.param("mininet", marks=pytest.mark.root), "virtual"])
def test_own_entries_reach_the_switch(scenario, tmp_path: Path, backend: str) -> None:
    """The same entry as planned changes nothing; one that sends elsewhere starves worker 0."""
    (tmp_path / "own.yaml").write_text(ENTRIES)
    elsewhere = {**TO_H1, "action_params": {**TO_H1["action_params"], "udp_port": 48999}}
    codes = []
    for entry in (TO_H1, elsewhere):
        (tmp_path / "run.json").write_text(json.dumps({"table_entries": [entry]}))
        ended = scenario.run(str(tmp_path / "own.yaml"), "--set", f"backend={backend}")
        codes.append(ended.code)
    assert codes == [0, 1], ended.out + ended.err
    assert "h1" in ended.out and "h2:" not in ended.err


def test_own_entries_are_checked_before_anything_starts(scenario, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(ENTRIES)
    ended = scenario.run(str(tmp_path / "own.yaml"))
    assert ended.code == 2
    assert "own.yaml:3: switch.entries: no such file or folder 'run.json'" in ended.err
    (tmp_path / "run.json").write_text('{"table_entries": [{"table": "result"}]}')
    ended = scenario.run(str(tmp_path / "own.yaml"), "--set", "backend=virtual")
    assert (ended.code, ended.folder) == (2, None)
    assert "run.json: table_entries[0].table: 'result' does not exist" in ended.err


ALONE = '''
"""All-reduce by the hosts alone: everyone sends everyone its values, in one datagram."""
import socket

import numpy as np

from agglab.hosts import AllReducer


class Alone(AllReducer):
    def __init__(self, job, rank, workers, lanes, slots, bind, *rest, **more):
        super().__init__(job, rank, workers, lanes, slots, bind, *rest, **more)
        self.others = [(f"10.0.0.{n + 1}", 6000) for n in range(workers) if n != rank]
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((bind[0], 6000))
        self.socket.settimeout(10)

    def all_reduce(self, array, out=None, sums=None):
        out[...] = array
        for address in self.others:
            self.socket.sendto(array.tobytes(), address)
        for _ in self.others:
            out += np.frombuffer(self.socket.recv(2000), np.int32)
        return out
'''


@pytest.mark.long
@pytest.mark.root
def test_workers_may_do_without_the_aggregator(scenario, tmp_path: Path) -> None:
    """A router with its own entries, and workers that send to each other."""
    (tmp_path / "alone.py").write_text(ALONE)
    routes = [
        {
            "table": "routes",
            "match": {"h.ip.dst": [f"10.0.0.{n}", 32]},
            "action_name": "forward",
            "action_params": {"mac": f"02:00:00:00:00:0{n}", "port": n},
        }
        for n in (1, 2, 3)
    ]
    (tmp_path / "run.json").write_text(json.dumps({"table_entries": routes}))
    (tmp_path / "alone.yaml").write_text(
        "topology: {workers: 3}\n"
        f"switch: {{program: {ROOT}/toolchain/tests/packets/ipv4_router.p4, entries: run.json}}\n"
        'workload: {elements: 300, dtype: int32, rounds: 1, worker: "alone:Alone"}\n'
        "expect: {exact: true}\n"
    )
    ended = scenario.run(str(tmp_path / "alone.yaml"))
    assert ended.code == 0, ended.out + ended.err
    assert ended.metrics["links"]["h1-s1"]["h1->s1"]["seen"] == 2
