"""MLfabric end to end in virtual time: sums on the way, faults, attacks, a server that dies; and
what its answers to the testbed are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from system_runs import DISORDER, Run

from agglab.systems.mlfabric import plan
from agglab.systems.mlfabric.store import Store
from agglab.systems.mlfabric.system import Mlfabric
from agglab.systems.mlfabric.transport import Transport
from agglab.systems.mlfabric.worker import Worker
from agglab.testbed.scenario import ScenarioError, load
from agglab.testbed.systems.base import ResolvedScenario

TEXT = """
name: tried
system: mlfabric
backend: virtual
seed: 5
topology: {{{topology}}}
links: {{rate: 10mbit, queue: 1MB, loss: {loss}}}
switch: {{lanes: 16, slots: 64}}
mlfabric: {{{own}}}
workload: {{kind: async_sgd, features: 32, classes: 4, updates: 24, compute: 3ms, rounds: 1{more}}}
expect: {{exact: true}}
{faults}
"""
RACK = "kind: rack, workers: 3, servers: 2"
DEDICATED = 'servers: "p*", ahead: 3'


def text(
    topology: str = RACK, own: str = DEDICATED, loss: str = "0%", more: str = "", faults: str = ""
) -> str:
    return TEXT.format(topology=topology, own=own, loss=loss, more=more, faults=faults)


def training(metrics: dict[str, Any]) -> dict[str, Any]:
    assert metrics["exact"] is True and metrics["wrong_results"] == 0
    assert metrics["accounts"]["balanced"] is True
    found: dict[str, Any] = metrics["training"]
    assert found["updates"] == 24 and found["delay"]["max"] <= 16
    assert found["divergence"] <= 2
    return found


def carried_as_decided(metrics: dict[str, Any]) -> None:
    """Every direction, byte for byte."""
    assert (metrics["links_as_predicted"], metrics["links_unclear"]) == (True, "")
    for ways in metrics["links"].values():
        for name, way in ways.items():
            assert way["bytes"] == way["predicted_bytes"], name


@pytest.mark.long
def test_a_worker_that_ended_all_its_steps_makes_it_unclear(tried: Run) -> None:
    """It has no mistakes any more, and so nothing to send."""
    given = text(more=", samples: 2, batch: 1").replace("features: 32", "features: 4")
    _, metrics = tried(given.replace("compute: 3ms", "compute: 3ms, learning_rate: 1"))
    assert metrics["exact"] is None and metrics["links_as_predicted"] is None
    assert "ended all its 96 steps" in metrics["links_unclear"]


RACKS = "kind: two_tier, racks: 2, workers: 2"
SECOND_RACK = "servers: [p2, p1], ahead: 3"


@pytest.mark.long(
    but=[
        'kind: rack, workers: 3, servers: 2-servers: "p*", ahead: 3',
        "kind: ring_of_racks, racks: 3, workers: 1, servers: 1-servers: [p2, p1], ahead: 3",
        "kind: two_tier, racks: 2, workers: 2, servers: 1-servers: [p2, p1], ahead: 3",
    ]
)
@pytest.mark.parametrize(
    "topology, own",
    [
        (RACK, DEDICATED),
        ("kind: rack, workers: 5", "ahead: 3"),
        (f"{RACKS}, servers: 1", DEDICATED),
        (f"{RACKS}, servers: 1", SECOND_RACK),
        (RACKS, "ahead: 3"),
        ("kind: leaf_spine, racks: 2, workers: 2, spines: 2, servers: 1", SECOND_RACK),
        ("kind: ring_of_racks, racks: 3, workers: 1, servers: 1", SECOND_RACK),
    ],
)
def test_groups_are_summed_on_the_way(tried: Run, topology: str, own: str) -> None:
    """Also of workers at other switches, whichever the server's is, and where servers are beside
    workers."""
    code, metrics = tried(text(topology, own))
    assert (code, metrics["reason"]) == (0, "")
    training(metrics)
    passed = sum(switch["packets"]["complete"] for switch in metrics["switches"].values())
    assert passed == metrics["servers"]["0"]["summed"] > 0
    assert metrics["servers"]["0"]["repaired"] == 0
    assert metrics["totals"]["retransmitted"] == 0
    carried_as_decided(metrics)


def test_without_groups_switches_only_forward(tried: Run) -> None:
    _, metrics = tried(text(own=DEDICATED + ", group: 1"))
    training(metrics)
    assert metrics["switches"]["s1"]["packets"]["new"] == 0
    assert metrics["servers"]["0"]["groups"] == 24
    carried_as_decided(metrics)


@pytest.mark.long(but=["1-", "1-bound: 1, ahead: 8"])
@pytest.mark.parametrize("own", ["", "replica: false", "bound: 1, ahead: 8", "order: fifo"])
@pytest.mark.parametrize("runs", [1, 3])
def test_links_carry_what_was_decided(tried: Run, own: str, runs: int) -> None:
    given = text(own=f'servers: "p*", {own}').replace("rounds: 1", f"rounds: {runs}")
    code, metrics = tried(given)
    assert (code, metrics["rounds"], metrics["totals"]["retransmitted"]) == (0, runs, 0)
    carried_as_decided(metrics)


class Sabotage:
    """Ways in which agents can send more than was decided, while every sum stays right."""

    @staticmethod
    def a_model_twice(patch: pytest.MonkeyPatch) -> None:
        parts = Store.parts

        def doubled(store: Store, *given: Any) -> Any:
            return parts(store, *given) * 2

        patch.setattr(Store, "parts", doubled)

    @staticmethod
    def the_log_with_every_model(patch: pytest.MonkeyPatch) -> None:
        parts = Store.parts

        def longer(store: Store, transfer: int, since: int, log_from: int | None) -> Any:
            return parts(store, transfer, since, log_from or 0)

        patch.setattr(Store, "parts", longer)

    @staticmethod
    def values_past_the_switch(patch: pytest.MonkeyPatch) -> None:
        push = Worker._push
        patch.setattr(
            Worker,
            "_push",
            lambda self, update, grant, chunk, _: push(self, update, grant, chunk, 0),
        )

    @staticmethod
    def an_acknowledgement_twice(patch: pytest.MonkeyPatch) -> None:
        is_new = Transport._is_new

        def both(transport: Transport, *given: Any) -> bool:
            new = is_new(transport, *given)
            transport._once.append(transport._once[-1])
            return new

        patch.setattr(Transport, "_is_new", both)


@pytest.mark.long(but=["0%-a_model_twice", "1%-an_acknowledgement_twice"])
@pytest.mark.parametrize("how", [name for name in vars(Sabotage) if not name.startswith("__")])
@pytest.mark.parametrize("loss", ["0%", "1%"])
def test_what_nobody_decided_is_found(
    tried: Run, monkeypatch: pytest.MonkeyPatch, how: str, loss: str
) -> None:
    getattr(Sabotage, how)(monkeypatch)
    _, metrics = tried(text(loss=loss))
    assert metrics["exact"] is True
    assert metrics["links_as_predicted"] is False


def test_a_job_ends_when_its_last_copy_has_arrived(tried: Run) -> None:
    """The replica has nothing in flight before the copy comes, and answers it then."""
    slow = text().replace("rate: 10mbit", "rate: 2mbit").replace("features: 32", "features: 256")
    code, metrics = tried(slow)
    assert code == 0
    carried_as_decided(metrics)


def test_what_a_paused_replica_never_acknowledged_is_unclear(tried: Run) -> None:
    faults = "faults:\n- {kind: server_pause, server: p2, at: 50ms, for: 5s}"
    _, metrics = tried(text(faults=faults))
    training(metrics)
    assert metrics["links_as_predicted"] is None
    assert "were still under way" in metrics["links_unclear"]


@pytest.mark.parametrize("back", ["", ", for: 1ms"])
@pytest.mark.parametrize(("host", "named"), [("p1", "server 0"), ("p2", "server 1")])
def test_what_an_agent_had_sent_again_before_it_died_is_unclear(
    tried: Run, host: str, named: str, back: str
) -> None:
    """When the run is over, acknowledgements are still under way; then the job needs no server."""
    given = text(loss="3%").replace("queue: 1MB", "queue: 1MB, delay: 5ms")
    _, alive = tried(given)
    kind = "server_restart" if back else "server_crash"
    at_ms = 1000 * alive["completion_s"] + 1
    fault = f"faults:\n- {{kind: {kind}, server: {host}, at: {at_ms:.3f}ms{back}}}"
    _, metrics = tried(given + fault)
    training(metrics)
    assert alive["links_as_predicted"] is True and alive["servers"]["0"]["retransmitted"] > 0
    assert metrics["links_as_predicted"] is None
    lost = f"{host}: {named} ended early, and its last counts are lost with it"
    assert metrics["links_unclear"] == lost


@pytest.mark.long
def test_a_switch_with_too_few_cells_sums_less(tried: Run) -> None:
    """Then servers ask for values, and these are counted as sent again."""
    _, metrics = tried(text().replace("slots: 64", "slots: 1"))
    assert metrics["servers"]["0"]["repaired"] > 0 == metrics["totals"]["retransmitted"]
    assert metrics["links_as_predicted"] is True
    ways = metrics["links"]["p1-s1"]
    assert ways["s1->p1"]["bytes"] > ways["s1->p1"]["predicted_bytes"]


def test_a_job_without_cells_has_no_sums(tried: Run) -> None:
    jobs = "jobs:\n- {name: a, workers: [h1, h2]}\n- {name: b, workers: [h3, h4]}"
    given = text("kind: rack, workers: 4, servers: 2", faults=jobs).replace("slots: 64", "slots: 1")
    code, metrics = tried(given)
    assert code == 0 and metrics["switches"]["s1"]["packets"]["new"] == 0
    carried_as_decided(metrics)


def test_the_time_limit_ends_a_run_once(tried: Run) -> None:
    code, metrics = tried(text(more=", time: 30ms"))
    assert code == 0 and 0 < metrics["training"]["updates"] < 24
    carried_as_decided(metrics)


@pytest.mark.parametrize("faults", ["", DISORDER])
def test_losses_and_disorder_change_nothing(tried: Run, faults: str) -> None:
    _, metrics = tried(text(loss="3%", faults=faults))
    training(metrics)
    assert metrics["totals"]["retransmitted"] > 0
    # What was counted as sent again is included. Nobody counts what becomes of copies.
    assert metrics["links_as_predicted"] in ((True, None) if faults else (True,))


def test_a_switch_that_forgets_costs_time_alone(tried: Run) -> None:
    faults = "faults:\n- {kind: switch_restart, switch: s1, at: 20ms, for: 5ms}"
    _, metrics = tried(text(faults=faults, more=", on_failure: fail"))
    training(metrics)
    assert metrics["restarts"] == 0 and metrics["links_as_predicted"] is True


def test_a_worker_that_dies_makes_the_run_begin_again(tried: Run) -> None:
    faults = "faults:\n- {kind: worker_restart, worker: h2, at: 20ms, for: 30ms}"
    _, metrics = tried(text(faults=faults, more=", on_failure: restart"))
    training(metrics)
    assert metrics["restarts"] == 1


@pytest.mark.parametrize("fault", ["server_crash", "server_restart", "server_pause"])
def test_the_replica_goes_on_for_the_server(tried: Run, fault: str) -> None:
    lasts = "" if fault == "server_crash" else ", for: 100ms"
    faults = f"faults:\n- {{kind: {fault}, server: p1, at: 25ms{lasts}}}"
    _, metrics = tried(text(own=DEDICATED + ", silence: 60ms", faults=faults))
    training(metrics)
    assert (metrics["restarts"], metrics["servers"]["2"]["takeovers"]) == (0, 1)
    assert metrics["links_as_predicted"] is None
    assert "the replica of job1 took the place" in metrics["links_unclear"]


def test_without_a_replica_the_server_is_missed(tried: Run) -> None:
    faults = "faults:\n- {kind: server_crash, server: p1, at: 25ms}"
    code, metrics = tried(text(own=DEDICATED + ", replica: false", faults=faults))
    assert code == 1 and metrics["failure"]["reason"].startswith("p1: server 0 exited early")


def test_strangers_change_nothing(tried: Run) -> None:
    faults = "faults:\n- {kind: attack, host: h4, frames: 300, at: 1ms, for: 60ms}\njobs:\n"
    faults += "- {name: tried, workers: [h1, h2, h3]}"
    _, metrics = tried(text("kind: rack, workers: 4, servers: 2", faults=faults))
    training(metrics["jobs"]["tried"] if "training" not in metrics else metrics)
    assert metrics["totals"]["forged"] > 100


Loaded = Callable[[str], ResolvedScenario]


@pytest.fixture
def loaded(tmp_path: Path) -> Loaded:
    def load_text(given: str) -> ResolvedScenario:
        path = tmp_path / "given.yaml"
        path.write_text(given)
        return load(path).points[0].resolved

    return load_text


def test_two_jobs_have_cells_of_their_own() -> None:
    assert [plan.cells_of(65, index, 2) for index in (0, 1)] == [(0, 32), (32, 32)]


def test_a_model_beyond_the_packets_of_a_request_is_refused(loaded: Loaded) -> None:
    with pytest.raises(ScenarioError, match=r"workload.features.*at most 4096 weights: 256 packet"):
        loaded(text().replace("features: 32", "features: 1025"))


def test_an_attacker_is_no_server(loaded: Loaded) -> None:
    with pytest.raises(ScenarioError, match="p1 is a server of every job"):
        loaded(text(faults="faults:\n- {kind: attack, host: p1, frames: 3, at: 1ms}"))


def test_what_it_promises(loaded: Loaded) -> None:
    resolved = loaded(text(own=DEDICATED + ", bound: 7, divergence: 0.5"))
    promised = Mlfabric().right_results(resolved, resolved.whole(resolved.jobs[0]), None).training
    assert (promised.delay, promised.divergence) == (7, 32768)
    resolved = loaded(text(own=DEDICATED + ", bound: 0, replica: false"))
    promised = Mlfabric().right_results(resolved, resolved.whole(resolved.jobs[0]), None).training
    assert (promised.delay, promised.divergence) == (None, None)
