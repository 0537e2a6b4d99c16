"""Libra end to end in virtual time: sums, bytes, what falls to the servers, faults, attacks; and
that what is wrong is found."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from system_runs import predict_otherwise

from agglab.systems.libra import load as arithmetic
from agglab.systems.libra.attack import KINDS
from agglab.systems.libra.system import Libra
from agglab.systems.libra.worker import LibraWorker
from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.scenario import ScenarioError, load
from agglab.testbed.scenario.workloads.push_pull import pushes
from agglab.testbed.systems.base import ResolvedScenario

Run = Callable[..., tuple[int, dict[str, Any]]]
RACK = "topology: {workers: 4, servers: 2}"
TWO_TIER = "topology: {kind: two_tier, racks: 2, workers: 2, servers: 1}"
FABRIC = "topology: {kind: leaf_spine, racks: 3, spines: 2, workers: 2, servers: 1}"
DEDICATED, BESIDE = 'servers: "p*"', "servers: []"
CLEAN = "expect: {exact: true, links_as_predicted: true, totals.retransmitted: 0}"


def text(
    topology: str = RACK,
    servers: str = DEDICATED,
    hot: int = 100,
    workload: str = "dtype: int32",
    loss: str = "0%",
    more: str = "expect: {exact: true}",
) -> str:
    return "\n".join(
        [
            "name: tried",
            "system: libra",
            "backend: virtual",
            topology,
            f"links: {{rate: 50mbit, loss: {loss}}}",
            "switch: {lanes: 16}",
            f"libra: {{{servers}, hot: {hot}, sample_every: 3}}",
            "workload: {kind: push_pull, elements: 3_000, vocabulary: 600, rounds: 5, "
            f"{workload}}}",
            more,
        ]
    )


@pytest.fixture
def tried(tmp_path: Path) -> Run:
    def tried(content: str, *settings: str) -> tuple[int, dict[str, Any]]:
        path = tmp_path / "tried.yaml"
        path.write_text(content)
        code = run(load(path, settings), tmp_path / "results", settings, io.StringIO())
        return code, json.loads((tmp_path / "results/tried/latest/metrics.json").read_text())

    return tried


def resolved_of(tmp_path: Path, content: str) -> ResolvedScenario:
    path = tmp_path / "resolved.yaml"
    path.write_text(content)
    return load(path).points[0].resolved


@pytest.mark.long(but=['topology: {workers: 4, servers: 2}-servers: "p*"-0-int32'])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("hot", [0, 100])
@pytest.mark.parametrize("servers", [DEDICATED, BESIDE])
@pytest.mark.parametrize("topology", [RACK, TWO_TIER, FABRIC])
def test_links_without_loss_carry_what_was_predicted(
    tried: Run, topology: str, servers: str, hot: int, dtype: str
) -> None:
    workload = f"dtype: {dtype}, drift: 2"
    code, metrics = tried(text(topology, servers, hot, workload, more=CLEAN))
    assert (code, metrics["reason"]) == (0, "")
    assert metrics["exact"] and metrics["wrong_results"] == 0 and metrics["rounds"] == 5


@pytest.mark.parametrize("direction", ["h1->s1", "s1->p1", "p1->s1", "s1->h2"])
def test_a_prediction_that_is_off_by_a_byte_is_found(
    tried: Run, monkeypatch: pytest.MonkeyPatch, direction: str
) -> None:
    predict_otherwise(monkeypatch, Libra, direction, 1)
    code, metrics = tried(text(more=CLEAN))
    assert code == 1 and metrics["links_as_predicted"] is False


def test_bytes_at_the_server_fall_by_the_mass_of_hot_keys_but_for_one_nth(tmp_path: Path) -> None:
    """Within 5 %, of what comes to the server and of what it sends."""
    scenario = (
        "system: libra\nbackend: virtual\ntopology: {workers: 8, servers: 1}\n"
        "switch: {lanes: 86}\nlibra: {servers: p1, hot: %d, sample_every: 100}\n"
        "workload: {kind: push_pull, elements: 100_000, vocabulary: 8192, rounds: 2}\n"
    )
    sizes, resolved, job = {}, None, None
    for hot in (0, 256, 1024, 4096):
        resolved = resolved_of(tmp_path, scenario % hot)
        job = resolved.whole(resolved.jobs[0])
        sizes[hot] = resolved.system.round_bytes(resolved, job, 1)
    assert resolved and job
    every = np.concatenate([pushes(resolved, job, rank, 0)["key"] for rank in range(8)])
    keys, counts = np.unique(every, return_counts=True)
    for hot in (256, 1024, 4096):
        hottest = keys[np.lexsort((keys, -counts))[:hot]]
        pushed = [pushes(resolved, job, rank, 1)["key"] for rank in range(8)]
        mass = sum(np.isin(own, hottest).sum() for own in pushed) / sum(map(len, pushed))
        for direction in ("s1->p1", "p1->s1"):
            fall = 1 - sizes[hot][direction] / sizes[0][direction]
            assert fall == pytest.approx(mass * (1 - 1 / 8), rel=0.05)


def test_the_load_of_a_round_is_not_computed_for_every_other_round(tried: Run) -> None:
    """Whatever the testbed asks, it asks a few times for each round."""
    rounds = 40
    small = text(more=CLEAN).replace("elements: 3_000", "elements: 60")
    arithmetic.load.cache_clear()
    code, metrics = tried(small, f"workload.rounds={rounds}")
    assert (code, metrics["rounds"]) == (0, rounds)
    asked = arithmetic.load.cache_info()
    assert asked.hits + asked.misses < 8 * rounds
    assert asked.misses < 2 * rounds


def test_the_bound_is_that_of_rounds_that_were_run(tried: Run) -> None:
    """The first round is a sample, in which no key is summed on the way. The others need less."""
    crash = "faults: [{kind: worker_crash, worker: h2, at_chunk: {round: 1, chunk: 9}}]"
    code, failed = tried(text(more=f"{crash}\nexpect: {{exact: true}}"))
    assert (code, failed["rounds"]) == (1, 1)
    _, sample = tried(text(), "workload.rounds=1")
    _, whole = tried(text())
    assert failed["link_bound_s"] == sample["link_bound_s"] > whole["link_bound_s"]


def test_what_is_hot_in_a_round_is_what_the_testbed_says(
    tried: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which keys a worker pushes to the switch, round by round."""
    found: dict[int, set[int]] = {}
    begin = LibraWorker.begin

    def watched(self: LibraWorker, *given: Any) -> None:
        begin(self, *given)
        found.setdefault(self._rounds - 1, set()).update(self.hot.tolist())

    monkeypatch.setattr(LibraWorker, "begin", watched)
    hot: dict[int, set[int]] = {}
    predicted = arithmetic._hot

    def noted(setting: Any, number: int) -> Any:
        hot[number] = {int(key) for keys in predicted(setting, number) for key in keys}
        return predicted(setting, number)

    arithmetic.load.cache_clear()
    monkeypatch.setattr(arithmetic, "_hot", noted)
    code, _ = tried(text(workload="dtype: int32, drift: 3"))
    assert code == 0 and found == hot
    assert [len(hot[number]) for number in range(5)] == [0, 100, 100, 0, 100]
    assert not hot[1] & hot[4]


@pytest.mark.parametrize("kind", ["switch_reprogram", "switch_restart"])
@pytest.mark.parametrize("topology", [RACK, TWO_TIER])
def test_a_switch_that_loses_its_tables_costs_time_and_no_sum(
    tried: Run, topology: str, kind: str
) -> None:
    lasts = ", for: 40ms" if kind == "switch_restart" else ""
    faults = f"faults: [{{kind: {kind}, switch: s1, at: 7ms{lasts}}}]"
    more = f"{faults}\nexpect: {{exact: true, restarts: 0}}"
    code, metrics = tried(text(topology, loss="2%", more=more))
    assert (code, metrics["reason"]) == (0, "")


DISORDER = """faults:
- {kind: duplicate, link: "*", probability: 5%}
- {kind: reorder, link: "*", probability: 5%, delay: 4ms}
- {kind: corrupt, link: "h*", probability: 2%}
expect: {exact: true}"""


@pytest.mark.parametrize("servers", [DEDICATED, BESIDE])
def test_disorder_and_loss_change_no_sum(tried: Run, servers: str) -> None:
    code, metrics = tried(text(TWO_TIER, servers, loss="3%", more=DISORDER))
    assert (code, metrics["reason"]) == (0, "") and metrics["totals"]["retransmitted"] > 0


@pytest.mark.parametrize(
    "fault",
    ["worker_restart, worker: h2", "server_restart, server: p1", "worker_crash, worker: h2"],
)
def test_an_agent_that_dies_is_started_again_or_left_out(tried: Run, fault: str) -> None:
    dies = "crash" in fault
    workload = f"dtype: int32, on_failure: {'survivors' if dies else 'restart'}"
    faults = f"faults: [{{kind: {fault}, at: 6ms{'' if dies else ', for: 20ms'}}}]"
    code, metrics = tried(text(workload=workload, more=f"{faults}\nexpect: {{exact: true}}"))
    assert (code, metrics["reason"]) == (0, "") and metrics["restarts"] == 1


@pytest.mark.parametrize("host", ["h2", "p1"])
def test_who_is_cut_off_is_named(tried: Run, host: str) -> None:
    faults = f"faults: [{{kind: link_down, link: {host}-s1, at: 6ms}}]"
    workload = "dtype: int32, give_up: 300ms"
    code, metrics = tried(text(workload=workload, more=f"{faults}\nexpect: {{exact: true}}"))
    assert code == 1 and f"{host}: " in metrics["reason"]


def test_foreign_frames_change_nothing_and_are_counted_by_kind(tried: Run) -> None:
    jobs = 'jobs: [{workers: "h[123]", workload: {kind: push_pull, elements: 2_000, rounds: 40}}]'
    faults = "faults: [{kind: attack, host: h4, frames: 276, for: 40ms, at: 1ms}]"
    more = f"{jobs}\n{faults}\nexpect: {{exact: true, totals.retransmitted: 0}}"
    code, metrics = tried(text(more=more))
    assert (code, metrics["reason"]) == (0, "")
    assert set(metrics["attack"]) == set(KINDS)
    counted = metrics["switches"]["s1"]["packets"]
    for name in ("refused", "forged", "malformed"):
        sent = sum(n for kind, n in metrics["attack"].items() if KINDS[kind].counted == name)
        assert counted[name] == sent


def test_a_wrong_sum_is_found_and_its_place_named(
    tried: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = LibraWorker.finish

    def wrong(self: LibraWorker) -> None:
        finish(self)
        if self.state.rank == 2 and self._rounds == 2:
            self._round._out[17] += 1  # type: ignore[union-attr]

    monkeypatch.setattr(LibraWorker, "finish", wrong)
    code, metrics = tried(text())
    assert code == 1 and metrics["wrong_results"] == 1
    assert "h3 (worker 2 of job1), round 1: result[17]" in metrics["reason"]


MISTAKES = {
    "switch: {lanes: 120}": "at most 119",
    "libra: {hot: 200_000}": "libra.hot",
    "workload: {kind: allreduce}": "libra does not support allreduce",
    "workload: {kind: push_pull, exponent: 11}": "a number from 0 to 10",
    "workload: {kind: push_pull, source: pyhton}": "python",
    "workload: {kind: push_pull, density: 5%}": "has no meaning for push_pull",
    "faults: [{kind: attack, host: p1, at: 1s}]": "is a server of every job",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_mistakes_are_one_line_that_names_the_key(tmp_path: Path, line: str) -> None:
    path = tmp_path / "wrong.yaml"
    parts = {
        "topology": "topology: {workers: 2, servers: 1}",
        "workload": "workload: {kind: push_pull}",
        "libra": 'libra: {servers: "p*"}',
        "faults": "",
        "switch": "",
        line.partition(":")[0]: line,
    }
    path.write_text("\n".join(["system: libra", "backend: virtual", *parts.values()]))
    with pytest.raises(ScenarioError) as error:
        load(path)
    assert MISTAKES[line] in str(error.value)
