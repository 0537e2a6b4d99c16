"""NetRPC end to end in virtual time: sums, counts and sections, bytes of every link, accounts,
faults; and that what is wrong is found."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from system_runs import (
    DISORDER,
    ELEMENTS,
    LANES,
    ROUNDS,
    Run,
    is_clean,
    predict_otherwise,
    scenario_text,
    ways,
)

from agglab.hosts.workloads import Calls, InputKey
from agglab.hosts.workloads.library_text import library_text
from agglab.systems.netrpc import diagnosis
from agglab.systems.netrpc.sessions import Share
from agglab.systems.netrpc.system import NetRpc
from agglab.testbed.base.traffic_counters import NetworkStatistics
from agglab.testbed.scenario import ScenarioError, load, resolve
from agglab.testbed.scenario.workloads import KINDS
from agglab.testbed.systems.plan.forwarding import wiring_of
from agglab.testbed.systems.received_arrays import Received

ARRAY, NOTHING, MAP, KEYS = 62 + 4 * LANES, 62, 254, 574
CHUNKS, WINDOW = 157, 16
RACKS = ["kind: rack, workers: 4", "kind: two_tier, racks: 2, workers: 2"]
COUNTS = "kind: calls, application: wordcount"
LOCKS = "kind: calls, application: lock"


def scenario(
    workload: str = "kind: allreduce",
    shape: str = RACKS[0],
    dtype: str = "float32",
    loss: str = "0%",
    more: str = "",
    cells: int = 4096,
    elements: int = ELEMENTS,
) -> str:
    keys = f"{workload}, window: {WINDOW}{more}"
    text = scenario_text(
        "netrpc", shape, keys, dtype, loss, "slots: 32", ["seed: 5", f"netrpc: {{cells: {cells}}}"]
    )
    if "kind: calls" in workload:
        text = text.replace(f"dtype: {dtype}, ", "")
    return text.replace(f"elements: {ELEMENTS}", f"elements: {elements}")


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("shape", RACKS)
def test_links_without_loss_carry_what_was_predicted(tried: Run, shape: str, dtype: str) -> None:
    """By hand: an OPEN, for floats an AGREE for each position, and the chunks; an uplink carries
    those of both workers below it."""
    code, metrics = tried(scenario(shape=shape, dtype=dtype))
    assert is_clean(code, metrics)
    assert 1 <= metrics["link_bound_ratio"] < 1.2 and metrics["totals"]["retransmitted"] == 0
    size = ROUNDS * ((1 + CHUNKS) * ARRAY + (WINDOW * NOTHING if dtype == "float32" else 0))
    carried = {name: way["bytes"] for name, way in ways(metrics).items()}
    below = {name: 2 if "3" in name and "h" not in name else 1 for name in carried}
    assert carried == {name: below[name] * size for name in carried}


@pytest.mark.long(but=["kind: rack, workers: 4"])
@pytest.mark.parametrize("shape", RACKS)
def test_words_are_counted_with_the_bytes_that_were_predicted(tried: Run, shape: str) -> None:
    """By hand for the worker beside the server, whose calls to that cross no link."""
    code, metrics = tried(scenario(COUNTS, shape, elements=3000))
    assert is_clean(code, metrics)
    work = Calls(3000, "int32", "wordcount", 4)
    up, servers = 0, {"places_given": 0, "keys_kept": 0}
    for number in range(ROUNDS):
        keys = work.inputs(InputKey(5, 1, 0, number))["key"]
        packets = max(Counter(key % 32 for key in keys.tolist()).values())
        up += ARRAY + NOTHING + 2 * packets * MAP
    carried = {name: way["bytes"] for name, way in ways(metrics).items()}
    answers = metrics["servers"]["0"]["bytes_sent"]
    own = -(-sum(np.unique(work.inputs(InputKey(5, 1, 0, 0))["key"]).shape) // 32)
    assert carried["h1->s1"] >= up and (carried["h1->s1"] - up) % KEYS == 0
    assert carried["h1->s1"] - up <= answers - own * KEYS
    assert metrics["servers"]["0"]["keys_kept"] == servers["keys_kept"]


@pytest.mark.long
def test_more_words_than_places_are_counted_too(tried: Run) -> None:
    code, metrics = tried(scenario(COUNTS, cells=16, elements=3000))
    assert (code, metrics["exact"], metrics["findings"]) == (0, True, [])
    server = metrics["servers"]["0"]
    assert server["places_given"] == 32 and server["keys_kept"] > 500
    assert metrics["links_as_predicted"] is None, "nobody can tell"


@pytest.mark.long
@pytest.mark.parametrize("workload", ["kind: allreduce", COUNTS, LOCKS])
@pytest.mark.parametrize("shape", RACKS)
def test_losses_and_disorder_change_nothing(tried: Run, workload: str, shape: str) -> None:
    elements = {COUNTS: 2000, LOCKS: 20}.get(workload, ELEMENTS)
    text = scenario(workload, shape, loss="2%", elements=elements, cells=64) + DISORDER
    code, metrics = tried(text)
    assert (code, metrics["reason"], metrics["exact"]) == (0, "", True)
    assert metrics["rounds"] == ROUNDS and metrics["restarts"] == metrics["wrong_results"] == 0
    assert metrics["totals"]["injected_drops"] > 0 < metrics["totals"]["retransmitted"]


FAULTS = {
    "worker": "{kind: worker_restart, worker: h2, at_chunk: {round: 0, chunk: 9}, for: 100ms}",
    "switch": "{kind: switch_restart, switch: s1, at_chunk: {round: 1, chunk: 9}, for: 100ms}",
    "server": "{kind: server_restart, server: h1, at_chunk: {round: 0, chunk: 9}, for: 100ms}",
}


@pytest.mark.long(but=["kind: allreduce-worker", "kind: allreduce-server"])
@pytest.mark.parametrize("who", FAULTS)
@pytest.mark.parametrize("workload", ["kind: allreduce", COUNTS, LOCKS])
def test_who_restarts_costs_a_round_and_no_result(tried: Run, workload: str, who: str) -> None:
    if workload == "kind: allreduce" and who == "server":
        return  # it has none
    elements = {COUNTS: 2000, LOCKS: 40}.get(workload, ELEMENTS)
    more = ", on_failure: restart, give_up: 300ms"
    text = scenario(workload, elements=elements, more=more, cells=64)
    code, metrics = tried(f"{text}\nfaults:\n- {FAULTS[who]}\n")
    assert (code, metrics["exact"], metrics["wrong_results"]) == (0, True, 0)
    assert metrics["restarts"] == 1 and metrics["rounds"] == ROUNDS


@pytest.mark.parametrize("direction, off", [("h1->s1", 1), ("s1->h3", -62), ("s3->s1", 4)])
def test_a_wrong_prediction_is_found(
    tried: Run, monkeypatch: pytest.MonkeyPatch, direction: str, off: int
) -> None:
    predict_otherwise(monkeypatch, NetRpc, direction.replace("s1->h3", "s2->h3"), off)
    _, metrics = tried(scenario(shape=RACKS[1]))
    assert metrics["links_as_predicted"] is False and metrics["exact"] is True


MINE = """
from agglab.systems.netrpc.service import *


class Twice(Service):
    reduce = method(Array, add_to=True, get=True, clear=SHADOW, forward=CntFwd(ALL, WORKERS))

    def run(self, call, inputs, out):
        spare = inputs.copy()
        yield call.reduce(spare, spare)
        yield call.reduce({again}, out)
"""


@pytest.mark.parametrize("again, exact", [("inputs", True), ("spare", False)])
def test_a_service_of_ones_own_is_judged(
    tried: Run, tmp_path: Path, again: str, exact: bool
) -> None:
    """The sum of sums is not what the workload asks for."""
    path = tmp_path / f"mine_{again}.py"
    path.write_text(MINE.replace("{again}", again))
    text = scenario(dtype="int32").replace("netrpc: {", f"netrpc: {{service: '{path}:Twice', ")
    _, metrics = tried(text.replace("rounds: 2", "rounds: 1"))
    assert metrics["exact"] is exact


WRONG = [
    ("netrpc.service=lock", "lock is not the service that the workload calls"),
    ("netrpc.service=nothing_such", "netrpc.service: ModuleNotFoundError"),
    ("netrpc.cells=3", "netrpc.cells"),
    ("workload.window=300", "a window of 300"),
    ("workload.application=lock", "workload.application: has no meaning for allreduce"),
]


@pytest.mark.parametrize("setting, message", WRONG)
def test_mistakes_are_named(tmp_path: Path, setting: str, message: str) -> None:
    path = tmp_path / "tried.yaml"
    path.write_text(scenario())
    with pytest.raises(ScenarioError, match=message):
        load(path, [setting])


def resolved(tmp_path: Path, text: str) -> Any:
    path = tmp_path / "tried.yaml"
    path.write_text(text)
    return load(path).points[0].resolved


def test_who_has_not_come_to_a_call_is_missing(tmp_path: Path) -> None:
    found = resolved(tmp_path, scenario())
    job = found.whole(found.jobs[0], Share(0, 32, "allreduce", 4096))

    class Switches:
        def registers(self, switch: str, register: str, indices: list[int]) -> list[int]:
            assert (switch, register) == ("s1", "sequences")
            return [[7, 6, 7, 0], [7, 7, 8, 7]][indices[0] == 3]

        def statistics(self) -> NetworkStatistics:
            return NetworkStatistics((), (), {})

    waiting = {"h1": [[40, 2, 7]], "h3": [[40, 2, 7], [41, 3, 7]]}
    missing = diagnosis.diagnose(Switches(), "s1", job, waiting)
    assert {host: (a.never_sent, a.never_heard) for host, a in missing.items()} == {
        "h2": ({40}, set()),
        "h4": ({40}, set()),
        "h3": (set(), {41}),
    }


def test_jobs_have_places_of_their_own(tmp_path: Path) -> None:
    text = scenario(COUNTS).replace(
        "expect:", "jobs:\n- {workers: [h1, h2]}\n- {workers: [h3, h4]}\nexpect:"
    )
    found = resolved(tmp_path, text)
    jobs = [
        found.whole(job, Share(16 * i, 16, "wordcount", 4096)) for i, job in enumerate(found.jobs)
    ]
    entries = found.system.tables(found.graph, jobs)["s1"].tables
    given = [e.parameters for e in entries if e.action == "execute"]
    assert [(p["first_cell"], p["cells"], p["flow"]) for p in given] == [
        (0, 256, 0),
        (0, 256, 256),
        (256, 256, 64 * 256),
        (256, 256, 65 * 256),
    ]
    assert wiring_of(found.graph) and resolve


def verdict(tmp_path: Path, application: str, change: Any) -> Any:
    """Of results that are right but for a change. change(results by rank)."""
    found = resolved(tmp_path, scenario(f"kind: calls, application: {application}", elements=300))
    job = found.whole(found.jobs[0], None)
    work = job.job.work
    keys = [InputKey(5, 1, rank, 1) for rank in range(4)]
    results = {rank: work.room(work.inputs(key)) for rank, key in enumerate(keys)}
    if application == "wordcount":
        text = library_text()
        whole = Counter(text.keys[np.concatenate([work.part(key) for key in keys])].tolist())
        for rank, key in enumerate(keys):
            results[rank][:] = [whole[k] for k in work.inputs(key)["key"].tolist()]
    else:
        stood = Counter[int]()
        for rank, key in enumerate(keys):
            for index, lock in enumerate(work.inputs(key).tolist()):
                results[rank][index] = stood[lock]
                stood[lock] += 1
    change(results)
    received = {rank: Received(result) for rank, result in results.items()}
    return KINDS["calls"].verdict(found, job, 1, received)


def swap(results: dict[int, Any]) -> None:
    first = results[2]
    first[0], first[-1] = first[-1], first[0]


def copy(results: dict[int, Any]) -> None:
    other = int(results[3][6])
    results[3][5] = other if other != results[3][5] else other + 1


CHANGES: dict[str, Any] = {
    "one too few": lambda results: results[1].__setitem__(4, results[1][4] - 1),
    "one too many": lambda results: results[1].__setitem__(4, results[1][4] + 1),
    "far too many": lambda results: results[0].__setitem__(0, 10**6),
    "another length": lambda results: results.update({2: results[2][:-1]}),
    "nothing": lambda results: results.update({2: None}),
    "of another section": copy,
}


@pytest.mark.parametrize("application", ["wordcount", "lock"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_wrong_result_is_found(tmp_path: Path, application: str, change: str) -> None:
    right = verdict(tmp_path, application, lambda results: None)
    assert right.right and right.first is None
    wrong = verdict(tmp_path, application, CHANGES[change])
    assert not wrong.right and wrong.first is not None and not wrong.exact


def test_sections_of_a_worker_follow_one_another(tmp_path: Path) -> None:
    def disorder(results: dict[int, Any]) -> None:
        work = Calls(300, "int32", "lock", 4)
        first, second = np.flatnonzero(work.inputs(InputKey(5, 1, 2, 1)) == 0)[:2]
        mine = results[2]
        mine[first], mine[second] = int(mine[second]), int(mine[first])

    assert not verdict(tmp_path, "lock", disorder).right
    assert replace(verdict(tmp_path, "lock", lambda results: None)).right


def test_two_sections_under_a_lock_at_the_same_time_are_found(tmp_path: Path) -> None:
    """The first section of a worker reads what the last one of another has read; each worker's own
    follow one another."""

    def overlap(results: dict[int, Any]) -> None:
        work = Calls(300, "int32", "lock", 4)
        of_rank = [np.flatnonzero(work.inputs(InputKey(5, 1, rank, 1)) == 0) for rank in (0, 1)]
        results[1][of_rank[1][0]] = results[0][of_rank[0][-1]]

    assert not verdict(tmp_path, "lock", overlap).right
