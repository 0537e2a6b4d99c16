"""OmniReduce end to end in virtual time: sums, bytes of every link, accounts, faults, attacks; and
that what is wrong is found."""

from __future__ import annotations

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
    judge_otherwise,
    predict_otherwise,
    scenario_text,
    ways,
)

from agglab.hosts.tensors import Sparsity, make_tensor
from agglab.hosts.workloads.library_text import library_text
from agglab.systems.omnireduce.system import OmniReduce
from agglab.testbed import systems
from agglab.testbed.judge import findings
from agglab.testbed.scenario import load
from agglab.testbed.systems.base import ALL_REDUCES, Truth

WINDOW, BLOCKS = 16, 157
BARE, FULL, OPENING, ENTRY = 62, 62 + 4 * LANES, 98, 13
ALLREDUCE = "kind: allreduce"
EMBEDDING = "kind: embedding_allreduce, width: 16, tokens: 40, row_order: hashed"
SPARSE = "kind: sparse_allreduce, density: 20%, block: 64, overlap: random"


def scenario(
    workload: str = SPARSE,
    shape: str = "kind: rack, workers: 4",
    dtype: str = "float32",
    loss: str = "0%",
    more: str = "",
    system: str = "omnireduce",
) -> str:
    keys = f"{workload}, window: {WINDOW}{more}"
    return scenario_text(system, shape, keys, dtype, loss, "slots: 32", ["seed: 5"])


RACKS = ["kind: rack, workers: 4", "kind: two_tier, racks: 3, workers: 2"]
WORKLOADS = [
    ALLREDUCE,
    *[
        f"kind: sparse_allreduce, density: {density}, block: {block}, overlap: {overlap}"
        for density, block, overlap in (
            ("0%", 64, "random"),
            ("5%", 64, "random"),
            ("20%", 64, "none"),
            ("20%", 100, "full"),
            ("60%", 64, "random"),
            ("100%", 64, "full"),
        )
    ],
]


@pytest.mark.long(
    but=[
        "kind: allreduce-kind: rack, workers: 4-int32",
        "kind: allreduce-kind: rack, workers: 4-float32",
    ]
)
@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("shape", RACKS)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_links_without_loss_carry_what_was_predicted(
    tried: Run, workload: str, shape: str, dtype: str
) -> None:
    code, metrics = tried(scenario(workload, shape, dtype))
    assert is_clean(code, metrics)
    assert 1 <= metrics["link_bound_ratio"] < (1.4 if "density: 0%" in workload else 1.2)
    assert metrics["totals"]["retransmitted"] == 0
    more = {name: way["bytes"] - way["predicted_bytes"] for name, way in ways(metrics).items()}
    assert all(size == 0 for name, size in more.items() if not name.startswith("h"))
    assert all(
        0 <= size < 0.5 * ways(metrics)[name]["bytes"] and size % (BARE - ENTRY) == 0
        for name, size in more.items()
    )


def filled(rank: int, number: int, workers: int, density: float = 0.2) -> np.ndarray:
    """Of each block of SPARSE's tensor, whether it has a value."""
    shape = Sparsity(density, 64, "random", workers, ELEMENTS)
    tensor = make_tensor(5, 1, rank, number, ELEMENTS, "float32", sparsity=shape)
    padded = np.concatenate([tensor, np.zeros(-ELEMENTS % LANES)])
    return (padded.reshape(BLOCKS, LANES) != 0).any(axis=1)


def test_bytes_of_two_racks_by_hand(tried: Run) -> None:
    """A link up carries the values of the blocks that anybody below has, headers for the others
    that anybody has, and an opening for each column, where a worker sends most of the two as
    entries; a link down the values of all that anybody has."""
    _, metrics = tried(scenario(shape="kind: two_tier, racks: 2, workers: 2"))
    blocks = [np.array([filled(r, k, 4) for k in range(ROUNDS)]) for r in range(4)]
    union = np.any(blocks, axis=0).sum()
    openings = ROUNDS * WINDOW * OPENING

    def up(*ranks: int) -> int:
        own = np.any([blocks[rank] for rank in ranks], axis=0).sum()
        return openings + own * FULL + (union - own) * BARE

    def saved(rank: int) -> int:
        worker = metrics["workers"][str(rank)]
        openings, bare = worker["openings_fused"], worker["blocks_fused"]
        assert openings == ROUNDS * (WINDOW - 1) and bare > 0.7 * worker["blocks_bare"]
        return openings * (OPENING - ENTRY) + bare * (BARE - ENTRY)

    carried = {name: way["bytes"] for name, way in ways(metrics).items()}
    own = [carried[f"h{n + 1}->s{1 + n // 2}"] for n in range(4)]
    assert own == [up(n) - saved(n) for n in range(4)]
    assert [carried["s1->s3"], carried["s2->s3"]] == [up(0, 1), up(2, 3)]
    down = {carried[name] for name in ("s3->s1", "s3->s2", "s1->h1", "s2->h4")}
    assert down == {openings + union * FULL}
    assert blocks[0].sum(axis=1).tolist() == [31, 31] and 80 < union / ROUNDS < 110


def test_blocks_are_counted(tried: Run) -> None:
    _, metrics = tried(scenario())
    blocks = np.array([[filled(r, k, 4) for k in range(ROUNDS)] for r in range(4)])
    union = np.any(blocks, axis=0).sum()
    for rank in range(4):
        worker = metrics["workers"][str(rank)]
        own = blocks[rank].sum()
        assert worker["blocks_sent"] == own
        assert worker["blocks_bare"] == union - own
        assert worker["blocks_skipped"] == ROUNDS * BLOCKS - union
    assert metrics["switches"]["s1"]["packets"]["complete"] == union + ROUNDS * WINDOW


@pytest.mark.long
def test_tensors_that_are_dense_cost_a_longer_header(tried: Run) -> None:
    """8 bytes more than 54 and 256 for each block; of the openings, one has any."""
    dense = "kind: sparse_allreduce, density: 100%, block: 64"
    sizes = {}
    for system in ("switchml", "omnireduce"):
        code, metrics = tried(scenario(dense, system=system))
        assert is_clean(code, metrics)
        sizes[system] = ways(metrics)["h1->s1"]["bytes"]
    openings = 8 - (WINDOW - 1) * (OPENING - 8 - ENTRY)
    assert sizes["omnireduce"] - sizes["switchml"] == ROUNDS * (8 * BLOCKS + openings)


@pytest.mark.long(but=["switchml"])
@pytest.mark.parametrize("system", ["switchml", "ring", "ps"])
def test_systems_that_know_no_sparsity_send_all_of_it(tried: Run, system: str) -> None:
    text = scenario(ALLREDUCE, system=system)
    if system != "switchml":
        text = text.replace(f"lanes: {LANES}, slots: 32", f"lanes: {LANES}")
    sizes = []
    for workload in (ALLREDUCE, SPARSE):
        code, metrics = tried(text.replace(ALLREDUCE, workload))
        assert is_clean(code, metrics)
        sizes.append({name: way["bytes"] for name, way in ways(metrics).items()})
    assert sizes[0] == sizes[1]


@pytest.mark.long(but=["switchml-int32", "ps-float32", "ring-int32"])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("system", ["switchml", "omnireduce", "ring", "ps"])
def test_every_system_sums_gradients_of_an_embedding(
    tried: Run, tmp_path: Path, system: str, dtype: str
) -> None:
    """The hash of the text, which depends on Python's version, identifies them."""
    text = scenario(EMBEDDING, dtype=dtype, system=system)
    if system in ("ring", "ps"):
        text = text.replace(f"lanes: {LANES}, slots: 32", f"lanes: {LANES}")
    code, metrics = tried(text)
    assert is_clean(code, metrics)
    manifests = [path.read_text() for path in tmp_path.rglob("manifest.json")]
    assert manifests and all(library_text().sha256 in text for text in manifests)
    if system == "omnireduce":
        sent = sum(worker["blocks_sent"] for worker in metrics["workers"].values())
        assert 0 < sent < 0.5 * 4 * ROUNDS * BLOCKS


@pytest.mark.parametrize("key", ["width: 32", "tokens: 5", "row_order: hashed"])
def test_keys_of_an_embedding_have_no_meaning_for_other_tensors(tmp_path: Path, key: str) -> None:
    path = tmp_path / "sparse.yaml"
    path.write_text(scenario(f"{SPARSE}, {key}"))
    with pytest.raises(Exception, match="has no meaning for sparse_allreduce"):
        load(path)


@pytest.mark.long(
    but=[
        "kind: allreduce-kind: rack, workers: 4-int32",
        "kind: allreduce-kind: two_tier, racks: 3, workers: 2-int32",
        "kind: allreduce-kind: rack, workers: 4-float32",
    ]
)
@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("shape", RACKS)
@pytest.mark.parametrize("workload", [ALLREDUCE, SPARSE])
def test_losses_change_no_sum(tried: Run, workload: str, shape: str, dtype: str) -> None:
    code, metrics = tried(scenario(workload, shape, dtype, loss="1%"))
    assert is_clean(code, metrics)
    assert metrics["totals"]["injected_drops"] > 0 < metrics["totals"]["retransmitted"]


@pytest.mark.long(
    but=[
        "kind: rack, workers: 4-0",
        "kind: two_tier, racks: 3, workers: 2-3",
        "kind: two_tier, racks: 3, workers: 2-0",
    ]
)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", RACKS)
def test_many_losses_are_accounted_for(tried: Run, shape: str, seed: int) -> None:
    """A packet of headers alone may be answered with values."""
    code, metrics = tried(scenario(SPARSE, shape, loss="5%"), f"seed={seed}")
    assert is_clean(code, metrics)
    assert sum(s["packets"]["repeated"] for s in metrics["switches"].values()) > 0


@pytest.mark.parametrize("loss", ["0%", "1%"])
def test_disorder_changes_no_sum(tried: Run, loss: str) -> None:
    code, metrics = tried(scenario(loss=loss) + DISORDER)
    assert (code, metrics["reason"], metrics["findings"]) == (0, "", [])
    assert metrics["exact"] is metrics["accounts"]["balanced"] is True
    assert sum(worker["duplicates"] for worker in metrics["workers"].values()) > 0


RESTARTS = {
    "worker": "{kind: worker_restart, worker: h2, at_chunk: {round: 1, chunk: 60}, for: 50ms}",
    "switch": "{kind: switch_restart, switch: s1, at_chunk: {round: 1, chunk: 60}, for: 50ms}",
    "emptied": "{kind: switch_reprogram, switch: s1, at_chunk: {round: 1, chunk: 60}}",
}


@pytest.mark.parametrize("shape", RACKS)
@pytest.mark.parametrize("what", RESTARTS)
def test_what_starts_again_changes_no_sum(tried: Run, what: str, shape: str) -> None:
    more = ", on_failure: restart, give_up: 300ms"
    code, metrics = tried(scenario(shape=shape, more=more) + f"\nfaults: [{RESTARTS[what]}]")
    assert (code, metrics["reason"], metrics["exact"]) == (0, "", True)
    assert metrics["rounds"] == ROUNDS and metrics["restarts"] > 0


def test_who_is_gone_is_named(tried: Run) -> None:
    fault = "\nfaults: [{kind: worker_crash, worker: h3, at_chunk: {round: 0, chunk: 40}}]"
    code, metrics = tried(scenario(more=", give_up: 300ms") + fault)
    assert code == 1 and metrics["exact"] is None
    assert "h3" in metrics["reason"] and "worker 2" in metrics["reason"]
    assert not any(f"h{n}: " in metrics["reason"] for n in (1, 2, 4))


def test_survivors_go_on_with_their_own_blocks(tried: Run) -> None:
    fault = "\nfaults: [{kind: worker_crash, worker: h3, at_chunk: {round: 1, chunk: 40}}]"
    text = scenario(more=", give_up: 300ms, on_failure: survivors") + fault
    code, metrics = tried(text)
    assert (code, metrics["exact"], metrics["rounds"]) == (0, True, ROUNDS)
    assert metrics["lost_workers"] == ["h3"]


def test_attacks_change_no_sum(tried: Run) -> None:
    shape = "kind: rack, workers: 5"
    text = scenario(shape=shape) + (
        "\njobs: [{workers: [h1, h2, h3, h4]}]"
        "\nfaults: [{kind: attack, host: h5, frames: 350, for: 20ms}]"
    )
    code, metrics = tried(text)
    assert (code, metrics["reason"], metrics["exact"]) == (0, "", True)
    assert set(metrics["attack"]) == set(OmniReduce.attack_kinds)
    packets = metrics["switches"]["s1"]["packets"]
    assert min(packets[kind] for kind in ("refused", "forged", "malformed")) > 10


def test_what_was_taken_apart_is_one_frame(tried: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    balance = findings.balances

    def balances(*asked: Any) -> Any:
        found.update(balance(*asked))
        return balance(*asked)

    monkeypatch.setattr(findings, "balances", balances)
    code, metrics = tried(scenario(shape=RACKS[1], loss="1%"))
    assert is_clean(code, metrics)
    assert all(each.came == each.counted and each.expected == each.went for each in found.values())
    apart = [switch["packets"]["taken_apart"] for switch in metrics["switches"].values()]
    assert len(found) == 4 and min(apart[:3]) > 50 and apart[3] == 0


# What is wrong is found.


@pytest.mark.long(but=["1-h1->s1"])
@pytest.mark.parametrize("direction", ["h1->s1", "s1->h1", "s3->s4"])
@pytest.mark.parametrize("sign", [1, -1])
def test_another_prediction_does_not_hold(
    tried: Run, monkeypatch: pytest.MonkeyPatch, direction: str, sign: int
) -> None:
    text = scenario(shape=RACKS[1]).replace("exact:", "links_as_predicted: true, exact:")
    assert tried(text)[0] == 0
    predict_otherwise(monkeypatch, OmniReduce, direction, sign)
    code, metrics = tried(text)
    assert (code, metrics["links_as_predicted"], metrics["exact"]) == (1, False, True)


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_another_truth_is_missed(tried: Run, monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    """By one in a block that nobody has anything in."""

    def off_by_one(start: int, truth: Truth) -> Truth:
        sums = np.array(truth.values if truth.sums is None else truth.sums, np.int32)
        sums[np.flatnonzero(sums == 0)[-1]] += 1
        return Truth(sums) if truth.sums is None else Truth(truth.values, truth.allowed, sums)

    judge_otherwise(monkeypatch, OmniReduce, off_by_one)
    code, metrics = tried(scenario(dtype=dtype))
    assert (code, metrics["exact"], metrics["wrong_sums"]) == (1, False, ROUNDS * 4)


@pytest.mark.parametrize("key", ["density: 5%", "block: 64", "overlap: none"])
def test_keys_of_sparse_tensors_have_no_meaning_for_dense_ones(tmp_path: Path, key: str) -> None:
    path = tmp_path / "dense.yaml"
    path.write_text(scenario(f"{ALLREDUCE}, {key}"))
    with pytest.raises(Exception, match="has no meaning for allreduce"):
        load(path)


def test_a_worker_class_of_ones_own_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(scenario(more=", worker: 'mine:Worker'"))
    with pytest.raises(Exception, match="has no meaning for omnireduce"):
        load(path)


def test_every_system_that_sums_tensors_does_sparse_ones() -> None:
    for name in systems.built_in():
        kinds = set(systems.find(name).abilities.workloads)
        assert "allreduce" not in kinds or set(ALL_REDUCES) <= kinds


def resolved_lanes(folder: Path, workload: str, shape: str = RACKS[0], *settings: str) -> int:
    (folder / "auto.yaml").write_text(scenario(workload, shape))
    suite = load(folder / "auto.yaml", ["switch.lanes=auto", *settings])
    return suite.points[0].resolved.lanes


@pytest.mark.parametrize(
    ("workload", "lanes"),
    [
        (ALLREDUCE, 363),  # no blocks: as many as fit
        ("kind: sparse_allreduce, density: 10%, block: 256", 256),
        ("kind: sparse_allreduce, density: 10%, block: 1000", 250),  # four packets to a block
        ("kind: sparse_allreduce, density: 10%, block: 3", 363),  # every packet is filled anyway
        ("kind: sparse_allreduce, density: 0.1%, block: 64", 64),
        ("kind: sparse_allreduce, density: 50%, block: 256, overlap: none", 363),
        ("kind: sparse_allreduce, density: 50%, block: 256, overlap: full", 256),
        ("kind: embedding_allreduce, width: 64, tokens: 5", 64),
    ],
)
def test_packets_match_blocks_where_that_sends_fewer_bytes(
    tmp_path: Path, workload: str, lanes: int
) -> None:
    assert resolved_lanes(tmp_path, workload) == lanes


def test_lanes_of_many_workers_and_of_bmv2(tmp_path: Path) -> None:
    """With 64 workers, nearly every block is filled at some worker. BMv2 allows 128 lanes."""
    workload = "kind: sparse_allreduce, density: 10%, block: 256"
    assert resolved_lanes(tmp_path, workload, "kind: rack, workers: 64") == 363
    bmv2 = ("switch.target=bmv2", "backend=mininet")
    assert resolved_lanes(tmp_path, workload, RACKS[0], *bmv2) == 128


@pytest.mark.long
def test_a_run_says_what_limits_the_gain(tried: Run) -> None:
    workload = "kind: sparse_allreduce, density: 10%, block: 64"
    _, metrics = tried(scenario(workload))
    (shared,) = metrics["jobs"]["job1"]["gain_limits"]
    blocks = np.array([filled(rank, 0, 4, 0.1) for rank in range(4)])
    anywhere, alone = np.any(blocks, axis=0).mean(), blocks.mean()
    assert shared.startswith(f"{anywhere:.0%} of the packets are sent to every worker")
    assert shared.endswith(f"a single worker fills {alone:.0%}")
    _, metrics = tried(scenario(workload).replace(f"lanes: {LANES}", "lanes: 100"))
    _, zeros = metrics["jobs"]["job1"]["gain_limits"]
    assert "packets of 100 values do not match blocks of 64; `switch.lanes: 64`" in zeros
    assert "gain_limits" not in tried(scenario(ALLREDUCE))[1]["jobs"]["job1"]
