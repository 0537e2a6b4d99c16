"""Gloo's answers: bytes and bounds of its ring, the bound of any order of additions, what it cannot
do, and what a machine without PyTorch is told."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Callable
from dataclasses import replace
from math import inf
from pathlib import Path
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agglab.systems.gloo import system as gloo
from agglab.systems.gloo.truth import any_order
from agglab.testbed.base.traffic_counters import NetworkStatistics
from agglab.testbed.cli.main import main
from agglab.testbed.experiment import scenario_run as running
from agglab.testbed.scenario import ScenarioError, load
from agglab.testbed.systems.base import ResolvedScenario, Unpredictable

Resolve = Callable[..., ResolvedScenario]
ELEMENTS, MTU = 300_001, 1500
SEGMENT = MTU - 20 - 32
HOSTS = ("h1", "h2", "h3", "h4")


@pytest.fixture
def resolved(tmp_path: Path) -> Resolve:
    def resolve(text: str = "", *settings: str) -> ResolvedScenario:
        path = tmp_path / "gloo.yaml"
        path.write_text(
            "system: gloo\ntopology: {workers: 4}\nlinks: {rate: 100mbit}\n"
            f"workload: {{elements: {ELEMENTS}, dtype: float32}}\n{text}"
        )
        return load(path, settings).points[0].resolved

    return resolve


def job_of(resolved: ResolvedScenario):
    return resolved.whole(resolved.jobs[0])


def test_each_link_carries_the_tensor_twice_but_for_one_share(resolved) -> None:
    """2 (n - 1) / n of it each way, in full segments with their headers."""
    share = 2 * 3 * ELEMENTS * 4 // 4
    size = share + -(-share // SEGMENT) * (14 + 20 + 32)
    run = resolved()
    found = run.system.round_bytes(run, job_of(run), 0)
    assert found == {f"{a}->{b}": size for h in HOSTS for a, b in (("s1", h), (h, "s1"))}
    bounds = run.system.bounds(run, job_of(run))
    assert bounds.link_s == pytest.approx(size * 8 / 1e8)
    assert bounds.payload_s == pytest.approx(ELEMENTS * 32 / 1e8)
    assert bounds.window_share == 1


def test_data_goes_to_the_worker_before(resolved) -> None:
    run = resolved()
    ways = [(flow.source, flow.target) for flow in run.system.flows(run, job_of(run))]
    assert ways == [("h1", "h4"), ("h2", "h1"), ("h3", "h2"), ("h4", "h3")]


def test_chunks_are_the_segments_of_a_round(resolved) -> None:
    run = resolved()
    assert run.chunks(run.jobs[0]) == -(-6 * ELEMENTS // SEGMENT)
    assert run.system.chunk_bits(run) == 8 * (14 + MTU)
    jumbo = resolved("", "links.mtu=9000")
    assert jumbo.chunks(jumbo.jobs[0]) == -(-6 * ELEMENTS // (9000 - 52))


def test_a_worker_alone_sends_nothing(resolved) -> None:
    run = resolved("", "topology.workers=1")
    assert run.system.round_bytes(run, job_of(run), 0) == {}
    assert run.chunks(run.jobs[0]) == 1


def test_bytes_of_links_are_not_predicted(resolved) -> None:
    run = resolved()
    with pytest.raises(Unpredictable, match="TCP"):
        run.system.traffic(run, job_of(run))


def test_an_agent_knows_its_peers_and_how_to_send(resolved) -> None:
    run = resolved("gloo: {congestion_control: reno}\n")
    job = replace(job_of(run), members=(0, 2, 3))
    agents = run.system.agents(run, job)
    assert [agent.rank for agent in agents] == [0, 2, 3]
    settings = agents[0].configuration["settings"]
    assert (settings["congestion_control"], settings["chunk_bytes"]) == ("reno", SEGMENT)
    port = agents[0].configuration["bind"][1]
    assert settings["peers"] == [[f"10.0.0.{number}", port] for number in (1, 3, 4)]
    assert agents[1].session["peers"] == settings["peers"]
    assert agents[1].configuration["bind"] == settings["peers"][1]


# The truth.

Tensors = st.lists(
    st.lists(st.floats(-(2.0**99), 2.0**99, width=32), min_size=4, max_size=4),
    min_size=1,
    max_size=6,
)


@given(Tensors, st.randoms(use_true_random=False))
def test_no_order_of_additions_is_called_wrong(rows: list[list[float]], chance: Random) -> None:
    """Pairs are added at random until one is left: any tree."""
    inputs = [np.array(row, np.float32) for row in rows]
    truth, parts = any_order(inputs), list(inputs)
    while len(parts) > 1:
        chance.shuffle(parts)
        parts.append(parts.pop() + parts.pop())
    assert (np.abs(parts[0].astype(np.float64) - truth.values) <= truth.allowed).all()


def test_values_that_cancel_out_may_leave_what_was_rounded_off() -> None:
    """(1e8 + 1) - 1e8 is 0 in float32, and (1e8 - 1e8) + 1 is 1."""
    truth = any_order([np.array([value], np.float32) for value in (1e8, 1, -1e8)])
    assert truth.values.tolist() == [1]
    assert truth.allowed[0] >= 1


@given(Tensors)
def test_what_is_allowed_is_little(rows: list[list[float]]) -> None:
    inputs = [np.array(row, np.float32) for row in rows]
    magnitudes = sum(np.abs(each.astype(np.float64)) for each in inputs)
    assert (any_order(inputs).allowed <= len(inputs) * 2.0**-24 * magnitudes).all()


def test_a_sum_without_one_worker_is_wrong() -> None:
    inputs = [np.full(3, 1 + rank, np.float32) for rank in range(4)]
    truth = any_order(inputs)
    for left_out in range(4):
        got = sum(x for rank, x in enumerate(inputs) if rank != left_out)
        assert (np.abs(got - truth.values) > truth.allowed).all()


def test_one_worker_has_its_own_values_to_the_bit() -> None:
    assert any_order([np.array([1.5, -2.0], np.float32)]).allowed.tolist() == [0, 0]


def test_integers_are_summed_modulo_two_to_the_32(resolved) -> None:
    run = resolved("", "workload.dtype=int32")
    truth = run.system.right_results(run, job_of(run), None).truth
    inputs = [np.full(2, 2**31 - 1, np.int32) for _ in range(3)]
    found = truth(0, inputs)
    assert found.values.tolist() == [2**31 - 3] * 2
    assert found.allowed is None


def test_floats_are_judged_by_any_order(resolved) -> None:
    run = resolved()
    found = run.system.right_results(run, job_of(run), None).truth(0, [np.ones(2, np.float32)] * 3)
    assert found.values.tolist() == [3, 3]
    assert (found.allowed > 0).all()


# What it cannot do.


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("backend: virtual\n", "gloo does not support virtual; allowed: mininet"),
        ("switch: {lanes: 64}\n", "switch.lanes: has no meaning for gloo"),
        ("switch: {slots: 64}\n", "switch.slots: has no meaning for gloo"),
        (
            "faults: [{kind: worker_slow, worker: h1, at: 1s, for: 1s, delay: 1ms}]\n",
            "an agent cannot slow down",
        ),
        ("gloo: {congestion_control: CUBIC!}\n", "gloo.congestion_control"),
    ],
)
def test_what_has_no_meaning_is_refused(resolved, text: str, says: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        resolved(text)
    assert says in str(refused.value)


def test_a_machine_without_pytorch_is_told_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = importlib.util.find_spec
    hidden = SimpleNamespace(find_spec=lambda n: None if n == "torch" else found(n))
    monkeypatch.setattr(gloo.importlib, "util", hidden)
    assert main(["run", "gloo", "--results", str(tmp_path)]) == 3
    said = capsys.readouterr()
    assert said.err.startswith("this machine lacks PyTorch, which `system: gloo` runs: ")
    assert "pip install torch --index-url https://download.pytorch.org/whl/cpu" in said.err
    assert said.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_congestion_control_that_the_kernel_lacks_is_named(resolved) -> None:
    run = resolved("gloo: {congestion_control: carrierpigeon}\n")
    (what, remedy), *_ = [one for one in run.system.lacks(run) if "PyTorch" not in one[0]]
    assert "carrierpigeon" in what and "tcp_carrierpigeon" in remedy


def test_what_any_system_lacks_ends_a_run_before_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of each contender, too."""
    monkeypatch.setattr(running, "check_usable", lambda: None)
    monkeypatch.setattr(gloo.Gloo, "lacks", lambda *_: iter([("a thing", "get it")]))
    assert main(["run", "baselines-tcp", "--results", str(tmp_path)]) == 3
    assert capsys.readouterr().err == "this machine lacks a thing: get it\n"


# Who is missing.


@pytest.mark.parametrize(
    ("waiting", "named"),
    [
        ({"h1": [[3, 2, 1]], "h2": [[3, 2, 1]], "h3": [[3, 0, 1], [3, 1, 1]]}, "h3"),
        ({"h1": [[5, 1, 0]], "h2": [[5, 2, 0]], "h4": [[5, 0, 1], [5, 2, 1]]}, "h4"),
        ({"h1": [[9, 1, 0]]}, "h2"),
    ],
)
def test_who_is_in_most_pairs_is_named(resolved, waiting, named: str) -> None:
    run = resolved()
    no_switch = SimpleNamespace(statistics=lambda: NetworkStatistics((), (), {}))
    owing = run.system.diagnose(no_switch, run.graph, job_of(run), waiting, {})
    assert next(iter(owing)) == named


# Attacks.


def test_forged_segments_go_to_the_store(resolved) -> None:
    """h5 is a stranger; the only port that it can know is the first worker's store."""
    run = resolved("jobs: [{workers: 'h[1-4]'}]\n", "topology.workers=5")
    frames = list(itertools.islice(run.system.attack("key", run, "h5"), 200))
    plain = [frame for kind, frame in frames if kind in ("peer", "unspoofed")]
    assert plain
    for frame in plain:
        assert frame[23] == 6, "TCP"
        assert (
            int.from_bytes(frame[36:38], "big")
            == run.system.agents(run, job_of(run))[0].configuration["bind"][1]
        )


def test_what_tcp_may_have_in_flight_is_no_bound(resolved) -> None:
    run = resolved()
    assert run.system.in_flight_bytes(run, job_of(run)) == inf
