"""Slots that all jobs share, end to end in virtual time: sums, bytes of every link, faults,
attacks, jobs that want the same slots; and that what is wrong is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from system_runs import (
    DISORDER,
    LANES,
    ROUNDS,
    Run,
    is_clean,
    judge_otherwise,
    predict_otherwise,
    scenario_text,
    ways,
)

from agglab.systems.pooling.base import Pooling
from agglab.systems.pooling.scales import limit_of, unfit
from agglab.systems.pooling.truth import truth_of
from agglab.testbed import systems
from agglab.testbed.scenario import load
from agglab.testbed.systems.base import Truth

WINDOW, CHUNKS = 16, 157
FRAME = 42 + 32 + 4 * LANES
BOTH = ["atp", "esa"]
RACKS = ["kind: rack, workers: 4, servers: 1", "kind: two_tier, racks: 3, workers: 2, servers: 1"]
BESIDE = "kind: rack, workers: 3"


def scenario(
    system: str = "atp",
    shape: str = RACKS[0],
    dtype: str = "float32",
    loss: str = "0%",
    more: str = "",
    slots: int = 32,
    own: str = "",
) -> str:
    keys = f"kind: allreduce, window: {WINDOW}{more}"
    lines = ["seed: 5", *([f"{system}: {{{own}}}"] if own else [])]
    return scenario_text(system, shape, keys, dtype, loss, f"slots: {slots}", lines)


def server_of(metrics: dict[str, Any]) -> dict[str, int]:
    (server,) = metrics["servers"].values()
    found: dict[str, int] = server
    return found


@pytest.mark.long(
    but=[
        "atp-kind: rack, workers: 4, servers: 1-int32",
        "esa-kind: rack, workers: 3-float32",
        "atp-kind: two_tier, racks: 3, workers: 2, servers: 1-float32",
    ]
)
@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("shape", [*RACKS, BESIDE])
@pytest.mark.parametrize("system", BOTH)
def test_links_without_loss_carry_what_was_predicted(
    tried: Run, system: str, shape: str, dtype: str
) -> None:
    code, metrics = tried(scenario(system, shape, dtype))
    assert is_clean(code, metrics)
    assert 1 <= metrics["link_bound_ratio"] < 1.2
    assert metrics["totals"]["retransmitted"] == 0
    assert {way["bytes"] - way["predicted_bytes"] for way in ways(metrics).values()} == {0}
    assert server_of(metrics)["whole"] == server_of(metrics)["summed_ever"] == ROUNDS * CHUNKS
    assert metrics["switch_share"] == 1


def test_bytes_by_hand(tried: Run) -> None:
    """Every chunk crosses each cable once, each way, that of the server's included."""
    _, metrics = tried(scenario(shape=RACKS[1]))
    carried = {name: way["bytes"] for name, way in ways(metrics).items() if way["bytes"]}
    assert set(carried.values()) == {ROUNDS * CHUNKS * FRAME}
    assert {name for name in carried if "p" in name} == {"s1->p1", "p1->s1"}


def test_a_server_beside_a_worker_is_on_its_link(tried: Run) -> None:
    _, metrics = tried(scenario(shape=BESIDE))
    carried = {name: way["bytes"] for name, way in ways(metrics).items()}
    assert carried["h1->s1"] == carried["s1->h1"] == 2 * carried["h2->s1"]


@pytest.mark.long(
    but=[
        "atp-kind: rack, workers: 4, servers: 1",
        "esa-kind: rack, workers: 3",
        "esa-kind: rack, workers: 4, servers: 1",
        "atp-kind: two_tier, racks: 3, workers: 2, servers: 1",
    ]
)
@pytest.mark.parametrize("shape", [*RACKS, BESIDE])
@pytest.mark.parametrize("system", BOTH)
def test_what_does_not_fit_the_scale_travels_as_floats(tried: Run, system: str, shape: str) -> None:
    code, metrics = tried(scenario(system, shape, own="scale_log2: 31"))
    assert is_clean(code, metrics)
    assert {way["bytes"] - way["predicted_bytes"] for way in ways(metrics).values()} == {0}
    workers = metrics["workers"].values()
    assert 0 < {worker["overflown"] for worker in workers}.pop() < ROUNDS * CHUNKS
    assert len({worker["overflown"] for worker in workers}) == 1


@pytest.mark.long(
    but=[
        "atp-kind: rack, workers: 4, servers: 1-",
        "esa-kind: two_tier, racks: 3, workers: 2, servers: 1-scale_log2: 31",
        "esa-kind: rack, workers: 4, servers: 1-",
        "atp-kind: two_tier, racks: 3, workers: 2, servers: 1-",
    ]
)
@pytest.mark.parametrize("own", ["", "scale_log2: 31"])
@pytest.mark.parametrize("shape", RACKS)
@pytest.mark.parametrize("system", BOTH)
def test_losses_change_no_sum(tried: Run, system: str, shape: str, own: str) -> None:
    """Nor is more sent again in vain than the losses explain."""
    code, metrics = tried(scenario(system, shape, loss="1%", own=own))
    assert is_clean(code, metrics)
    assert metrics["totals"]["injected_drops"] > 0 < metrics["totals"]["retransmitted"]


def packets_for_a_chunk(workers: int, loss: float) -> float:
    """Predicts how many packets reach a server of its own for each chunk (systems/atp/README.md).
    Losses among the packets that are sent again are left out."""
    whole = (1 - loss) ** (workers + 1)
    answered = whole * (1 - loss)
    return whole + workers * (1 - answered) + workers * loss * answered


@pytest.mark.parametrize("system", BOTH)
def test_a_loss_costs_what_the_page_predicts(tried: Run, system: str) -> None:
    """All workers send their contribution again. Who asks for a result is answered alone."""
    workers, shape = 8, "kind: rack, workers: 8, servers: 1"
    code, metrics = tried(scenario(system, shape, loss="1%"), "workload.elements=50_000")
    assert is_clean(code, metrics)
    server = server_of(metrics)
    chunks = server["summed_ever"]
    predicted = packets_for_a_chunk(workers, 0.01)
    assert predicted == pytest.approx(1.751, abs=0.001)
    assert server["received"] / chunks == pytest.approx(predicted, rel=0.2)
    results = sum(worker["received"] for worker in metrics["workers"].values())
    assert results / workers / chunks < 1.1


@pytest.mark.long(but=["atp-0", "esa-2", "atp-1"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("system", BOTH)
def test_many_losses_are_accounted_for(tried: Run, system: str, seed: int) -> None:
    code, metrics = tried(scenario(system, RACKS[1], loss="5%"), f"seed={seed}")
    assert is_clean(code, metrics)
    packets = [switch["packets"] for switch in metrics["switches"].values()]
    for kind in ("released", "passed", "to_one"):
        assert sum(each[kind] for each in packets) > 0


@pytest.mark.parametrize("loss", ["0%", "1%"])
@pytest.mark.parametrize("system", BOTH)
def test_disorder_changes_no_sum(tried: Run, system: str, loss: str) -> None:
    code, metrics = tried(scenario(system, "kind: rack, workers: 4", loss=loss) + DISORDER)
    assert (code, metrics["reason"], metrics["findings"]) == (0, "", [])
    assert metrics["exact"] is metrics["accounts"]["balanced"] is True


RESTARTS = {
    "worker": "{kind: worker_restart, worker: h2, at_chunk: {round: 1, chunk: 60}, for: 50ms}",
    "switch": "{kind: switch_restart, switch: s1, at_chunk: {round: 1, chunk: 60}, for: 50ms}",
    "emptied": "{kind: switch_reprogram, switch: s1, at_chunk: {round: 1, chunk: 60}}",
    "server": "{kind: server_restart, server: p1, at_chunk: {round: 1, chunk: 60}, for: 50ms}",
}


@pytest.mark.long(
    but=[
        "atp-worker-kind: rack, workers: 4, servers: 1",
        "esa-server-kind: two_tier, racks: 3, workers: 2, servers: 1",
        "esa-worker-kind: rack, workers: 4, servers: 1",
    ]
)
@pytest.mark.parametrize("shape", RACKS)
@pytest.mark.parametrize("what", RESTARTS)
@pytest.mark.parametrize("system", BOTH)
def test_what_starts_again_changes_no_sum(tried: Run, system: str, what: str, shape: str) -> None:
    more = ", on_failure: restart, give_up: 300ms"
    text = scenario(system, shape, more=more) + f"\nfaults: [{RESTARTS[what]}]"
    code, metrics = tried(text)
    assert (code, metrics["reason"], metrics["exact"]) == (0, "", True)
    assert metrics["rounds"] == ROUNDS


def test_a_switch_that_forgets_its_slots_ends_no_round(tried: Run) -> None:
    """What was in them is sent again: nobody has to begin anew."""
    text = scenario(more=", on_failure: restart, give_up: 300ms")
    text += f"\nfaults: [{RESTARTS['emptied']}]"
    code, metrics = tried(text)
    assert (code, metrics["exact"]) == (0, True)


def test_who_is_gone_is_named(tried: Run) -> None:
    fault = "\nfaults: [{kind: worker_crash, worker: h3, at_chunk: {round: 0, chunk: 40}}]"
    code, metrics = tried(scenario(more=", give_up: 300ms") + fault)
    assert code == 1 and metrics["exact"] is None
    assert "h3" in metrics["reason"] and "worker 2" in metrics["reason"]
    assert not any(f"h{n}: " in metrics["reason"] for n in (1, 2, 4))


@pytest.mark.parametrize("system", BOTH)
def test_survivors_go_on(tried: Run, system: str) -> None:
    fault = "\nfaults: [{kind: worker_crash, worker: h3, at_chunk: {round: 1, chunk: 40}}]"
    text = scenario(system, more=", give_up: 300ms, on_failure: survivors") + fault
    code, metrics = tried(text)
    assert (code, metrics["exact"], metrics["rounds"]) == (0, True, ROUNDS)
    assert metrics["lost_workers"] == ["h3"]


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("system", BOTH)
def test_attacks_change_no_sum(tried: Run, system: str, dtype: str) -> None:
    text = scenario(system, "kind: rack, workers: 5, servers: 1", dtype) + (
        "\njobs: [{workers: [h1, h2, h3, h4]}]"
        "\nfaults: [{kind: attack, host: h5, frames: 350, for: 20ms}]"
    )
    code, metrics = tried(text)
    assert (code, metrics["reason"], metrics["exact"]) == (0, "", True)
    assert set(metrics["attack"]) == set(systems.find(system).attack_kinds)
    packets = metrics["switches"]["s1"]["packets"]
    assert min(packets[kind] for kind in ("refused", "forged", "malformed")) > 10


# Jobs that want the same slots.

TWO = "\njobs: [{name: a, workers: [h1, h2]}, {name: b, workers: [h3, h4]}]"


@pytest.mark.long(but=["atp-1-0%"])
@pytest.mark.parametrize("loss", ["0%", "1%"])
@pytest.mark.parametrize("slots", [1, 4, 8, 16])
@pytest.mark.parametrize("system", BOTH)
def test_jobs_share_slots_and_all_sums_are_right(
    tried: Run, system: str, slots: int, loss: str
) -> None:
    """4 slots are an eighth of what both have in flight, 8 a quarter."""
    text = scenario(system, "kind: rack, workers: 4, servers: 2", slots=slots, loss=loss) + TWO
    _, metrics = tried(text)
    assert metrics["exact"] is True and metrics["wrong_results"] == 0
    assert metrics["accounts"]["balanced"] is True
    packets = metrics["switches"]["s1"]["packets"]
    assert packets["new"] > 0
    if system == "atp" and slots < 16:
        assert packets["collided"] > 0
    jobs = metrics["jobs"].values()
    servers = [server for job in jobs for server in job["servers"].values()]
    shares = [server["whole"] / server["summed_ever"] for server in servers]
    assert [job["switch_share"] for job in jobs] == shares
    assert metrics["switch_share"] == pytest.approx(sum(shares) / 2)
    to_servers = [ways(metrics)[f"s1->p{number}"] for number in (1, 2)]
    if loss == "0%":
        arrived = sum(way["bytes"] for way in to_servers)
        assert metrics["totals"]["server_bytes"] == arrived > 0


@pytest.mark.long(but=["atp"])
@pytest.mark.parametrize("system", BOTH)
def test_the_same_slot_at_the_same_time_is_not_predicted(tried: Run, system: str) -> None:
    text = scenario(system, "kind: rack, workers: 4, servers: 2", slots=8) + TWO
    _, metrics = tried(text)
    assert metrics["links_as_predicted"] is None
    assert "want the same slot" in metrics["links_unclear"]


@pytest.mark.long
def test_a_higher_priority_takes_slots_over(tried: Run) -> None:
    shape = "kind: rack, workers: 4, servers: 2"
    jobs = TWO.replace("h2]}", "h2], workload: {rounds: 4}}")
    slow = "{match: h2-s1, rate: 10mbit}"
    found = {}
    for priorities in ("0, 0", "0, 9"):
        text = scenario("esa", shape, slots=4, own=f"priorities: [{priorities}]") + jobs
        text = text.replace("loss: 0%}", f"loss: 0%, overrides: [{slow}]}}")
        _, metrics = tried(text)
        assert metrics["exact"] is True
        assert metrics["accounts"]["balanced"] is True
        found[priorities] = metrics
    evicted = {
        key: metrics["switches"]["s1"]["packets"]["evicted"] for key, metrics in found.items()
    }
    assert evicted["0, 0"] == 0 < evicted["0, 9"]
    urgent = {key: m["jobs"]["b"]["elements_per_s"] for key, m in found.items()}
    assert urgent["0, 9"] > urgent["0, 0"]


@pytest.mark.long
def test_windows_shrink_where_the_servers_link_is_busy(tried: Run) -> None:
    shape = "kind: rack, workers: 4, servers: 2"
    found = {}
    for control in ("true", "false"):
        own = f"congestion_control: {control}, mark_after: 300us"
        _, metrics = tried(scenario("atp", shape, slots=4, own=own) + TWO)
        assert metrics["exact"] is True
        workers = [w for job in metrics["jobs"].values() for w in job["workers"].values()]
        found[control] = sum(worker["halved"] for worker in workers)
        assert sum(worker["marked"] for worker in workers) > 0
    assert found["true"] > 0 == found["false"]


# What is wrong is found.


@pytest.mark.long(but=["1-h1->s1", "1-s1->p1"])
@pytest.mark.parametrize("direction", ["h1->s1", "s1->h1", "s1->p1", "p1->s1"])
@pytest.mark.parametrize("sign", [1, -1])
def test_another_prediction_does_not_hold(
    tried: Run, monkeypatch: pytest.MonkeyPatch, direction: str, sign: int
) -> None:
    text = scenario(shape=RACKS[1]).replace("exact:", "links_as_predicted: true, exact:")
    assert tried(text)[0] == 0
    predict_otherwise(monkeypatch, Pooling, direction, sign)
    code, metrics = tried(text)
    assert (code, metrics["links_as_predicted"], metrics["exact"]) == (1, False, True)


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_another_truth_is_missed(tried: Run, monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:

    def off_by_one(start: int, truth: Truth) -> Truth:
        sums = np.array(truth.values if truth.sums is None else truth.sums, np.int32)
        sums[-1] += 1
        return Truth(sums) if truth.sums is None else Truth(truth.values, truth.allowed, sums)

    judge_otherwise(monkeypatch, Pooling, off_by_one)
    code, metrics = tried(scenario(dtype=dtype))
    assert (code, metrics["exact"]) == (1, False) and metrics["wrong_sums"] > 0


# Truth and keys.


def test_a_chunk_fits_if_everybodys_values_do() -> None:
    limit = limit_of(4)
    assert limit == 2**29 - 1
    largest = np.float32(2**29 - 32)  # the largest float32 within
    inputs = [np.zeros(7, np.float32) for _ in range(4)]
    inputs[1][3], inputs[2][6] = -largest, np.inf
    assert unfit(inputs, 2, 0).tolist() == [False, False, False, True]
    assert unfit(inputs, 2, 1).tolist() == [False, True, False, True]


def test_the_truth_of_chunks_that_do_not_fit_is_added_by_rank() -> None:
    inputs = [np.array([big, 0.75], np.float32) for big in (1e9, 1.0, -1e9)]
    found = truth_of("float32", 1, 1)(0, inputs)
    assert found.allowed is not None and found.sums is not None
    assert found.values.tolist() == [0.0, 2.25]  # (1e9 + 1) - 1e9 in float32
    assert found.allowed[0] == 0 and found.allowed[1] >= 3 * 0.25
    assert found.sums.tolist() == [0, 6]  # 1.5 rounds to even, 2


MISTAKES = {
    "priorities: [1, 2, 3]": "3 priorities for 1 jobs",
    "pool: divided, priorities: [256]": "256",
    "scale_log2: 65": "64",
    "mark_after: 0s": "mark_after",
}


@pytest.mark.parametrize("own", MISTAKES)
def test_mistakes_are_told_by_key(tmp_path: Path, own: str) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(scenario("esa", own=own))
    with pytest.raises(Exception, match=MISTAKES[own]):
        load(path)


def test_more_workers_than_bits_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "many.yaml"
    path.write_text(scenario(shape="kind: rack, workers: 33, servers: 1"))
    with pytest.raises(Exception, match="33 workers: a packet has bits for 32"):
        load(path)
