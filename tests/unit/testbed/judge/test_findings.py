"""Programs and workers that get every sum right and yet are broken: each is a finding, in virtual
time, and fails the run; and so does a counter that lies."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from own_program import AGGREGATION, own_program

from agglab.hosts.agent_core import AgentCore
from agglab.testbed.base.exit_codes import FAILED, PASSED
from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.judge.findings import slow_rounds, unexpected, unexplained_repeats
from agglab.testbed.results.side_by_side import runs_of
from agglab.testbed.scenario import Point, ScenarioError, find, load, names, resolve
from agglab.testbed.scenario.workloads import KINDS
from agglab.testbed.virtual import backend, links, switches

TEXT = """
name: small
backend: virtual
topology: {workers: 3}
links: {rate: 100mbit}
switch: {program: PROGRAM, lanes: 64, slots: 16}
workload: {elements: 20_000, dtype: int32, rounds: 2}
"""
MULTICAST = "        standard_metadata.mcast_grp = meta.group;\n"
COMPLETE = "                    chunk_complete.count(meta.job);\n"
ANSWER = "        hdr.aggregation.kind = hdr.aggregation.kind | RESULT;\n" + MULTICAST
NEW = "                contribution_new.count(meta.job);\n"
DUPLICATE = "                contribution_duplicate.count(meta.job);\n"

Run = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def ran(tmp_path: Path) -> Run:
    def make(*settings: str, program: str = "switchml", extra: str = "") -> Any:
        path = tmp_path / "small.yaml"
        path.write_text(TEXT.replace("PROGRAM", program) + extra)
        suite = load(path, settings)
        code = run(suite, tmp_path / "results", settings, io.StringIO())
        found = json.loads((tmp_path / "results/small/latest/metrics.json").read_text())
        return code, found

    return make


def changed(tmp_path: Path, old: str, new: str) -> str:
    """Our program with a fault, beside the scenario."""
    return str(own_program(tmp_path, (AGGREGATION, old, new)))


def kinds(metrics: dict[str, Any]) -> set[str]:
    return {finding["kind"] for finding in metrics["findings"]}


def test_a_program_without_faults_has_no_findings(ran: Run) -> None:
    code, metrics = ran()
    assert (code, metrics["findings"], metrics["accounts"]["balanced"]) == (PASSED, [], True)
    assert metrics["fidelity"]["verdict"] == "network-bound"


ONE_PERCENT = "        bit<7> chance;\n        random(chance, 0, 99);\n"
PROGRAMS = {
    "results that nobody is sent": ((MULTICAST, ""), {"lost-in-switch", "sent-again", "slow"}),
    "one result of a hundred": (
        (MULTICAST, f"{ONE_PERCENT}        if (chance != 0) {{ {MULTICAST.strip()} }}\n"),
        {"lost-in-switch", "sent-again"},
    ),
    "every contribution to its sender too": (
        ("meta.after != meta.all_workers) {\n                    wait();",
         "meta.after != meta.all_workers) {\n                    "
         "standard_metadata.egress_spec = standard_metadata.ingress_port;"),
        {"sent-unasked", "refused"},
    ),
    "contributions counted twice": ((NEW, NEW + NEW), {"miscounted"}),
    "contributions never counted": ((NEW, ""), {"miscounted"}),
    "chunks never counted": ((COMPLETE, ""), {"sent-unasked"}),
}  # fmt: skip


@pytest.mark.long(but=["results that nobody is sent", "contributions counted twice"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_that_are_right_only_in_the_end(ran: Run, tmp_path: Path, name: str) -> None:
    change, wanted = PROGRAMS[name]
    code, metrics = ran(program=changed(tmp_path, *change))
    assert metrics["exact"] is True
    assert kinds(metrics) == wanted
    assert code == (FAILED if wanted else PASSED)


@pytest.mark.long
def test_an_answer_to_everybody_where_one_asks_is_more_than_was_owed(
    ran: Run, tmp_path: Path
) -> None:
    one = "meta.answered = true;\n                    answer_one();"
    everybody = one.replace("answer_one();", "result_repeated.count(meta.job); answer_all();")
    program = changed(tmp_path, one, everybody)
    lossy = "links.loss=1%"
    assert ran(lossy)[1]["findings"] == []
    code, metrics = ran(lossy, program=program)
    assert (code, kinds(metrics), metrics["exact"]) == (FAILED, {"sent-unasked"}, True)


def test_what_rounds_wait_for_is_said(ran: Run, tmp_path: Path) -> None:
    """Without results every chunk waits for a timer, at a fraction of the links' rate."""
    metrics = ran(program=changed(tmp_path, MULTICAST, ""))[1]
    assert (metrics["fidelity"]["verdict"], metrics["fidelity"]["waited_for"]) == (
        "waiting",
        "timers",
    )
    assert metrics["totals"]["retransmitted"] > 1000
    assert metrics["totals"]["injected_drops"] == metrics["totals"]["other_drops"] == 0


def test_timers_of_a_tenth_of_the_round_trip(ran: Run) -> None:
    """Four times 0.5 ms of delay. Before the first round trip is measured, workers ask again after
    0.2 ms, 0.6 and 1.4: each silence doubles the next."""
    slow, window = "links.delay=500us", "workload.window=128"
    assert ran(slow, window, "switch.slots=128")[1]["findings"] == []
    code, metrics = ran(slow, window, "switch.slots=128", "workload.first_timeout=200us")
    assert (code, metrics["exact"]) == (FAILED, True)
    assert kinds(metrics) >= {"sent-again"}
    (finding,) = (f for f in metrics["findings"] if f["kind"] == "sent-again")
    assert finding["numbers"]["unexplained"] >= 3 * 3  # three times by each worker
    assert "ms after its first transmission" in finding["text"]


def test_a_window_of_one_and_how_findings_are_expected(ran: Run) -> None:
    small = "workload.window=1"
    code, metrics = ran(small)
    assert (code, kinds(metrics)) == (FAILED, {"small-window"})
    assert metrics["reason"].startswith("small-window: the window of job1 fills only 50% of the")
    assert metrics["fidelity"]["waited_for"] == "window"
    expected = "expect: {findings: [small-window]}\n"
    assert ran(small, extra=expected)[0] == PASSED
    code, metrics = ran(extra=expected)
    assert (code, metrics["reason"]) == (
        FAILED,
        "expected a finding of kind 'small-window', but there was none",
    )
    allowed = "expect: {findings: {may: [small-window]}}\n"
    assert (ran(small, extra=allowed)[0], ran(extra=allowed)[0]) == (PASSED, PASSED)
    code, metrics = ran(small, extra="expect: {findings: {may: [refused]}}\n")
    assert code == FAILED and metrics["reason"].startswith("small-window: ")


@pytest.mark.parametrize(
    "findings", ["{might: [refused]}", "{may: refused}", "{may: []}", "{may: [refused], max: 3}"]
)
def test_what_is_no_list_of_findings_is_refused(tmp_path: Path, findings: str) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(f"expect: {{findings: {findings}}}\n")
    with pytest.raises(ScenarioError, match=r"expect\.findings: is not? (a )?list of words"):
        load(path)


def test_an_expected_finding_excuses_no_other() -> None:
    found = [{"kind": "slow", "text": "too long"}, {"kind": "refused", "text": "7 packets"}]
    assert unexpected(found, ["slow"]) == ["refused: 7 packets"]
    assert unexpected(found, ["slow", "refused"]) == []
    assert unexpected(found, [], ["slow"]) == ["refused: 7 packets"]
    assert unexpected(found, ["slow"], ["refused", "other"]) == []


def test_on_real_links_a_loss_explains_two_repetitions_of_each_worker() -> None:
    outcome, statistics = SimpleNamespace(begun=[]), SimpleNamespace(repeats=None)
    real: Any = SimpleNamespace(outcome=outcome, statistics=statistics)
    jobs = {"a": {"workers": {"0": {"retransmitted": 10}, "1": {"retransmitted": 5}}}}
    assert [unexplained_repeats(real, jobs, losses) for losses in (0, 1, 3, 4)] == [15, 11, 3, 0]


@pytest.mark.parametrize(("ratio", "expected"), [(12.0, ["slow"]), (None, [])])
def test_only_what_links_bound_can_be_slow(ratio: float | None, expected: list[str]) -> None:
    """A training script computes for as long as it likes: its jobs have no such ratio."""
    times = {"time_s": {"median": 12.0}}
    bound = {"lossy_bound_s": 1.0, "lossy_bound_ratio": ratio, "window_share": 1.0}
    job: dict[str, Any] = {"allreduce": times, **bound}
    outcome, statistics = SimpleNamespace(begun=[]), SimpleNamespace(repeats=None)
    case: Any = SimpleNamespace(
        measured=SimpleNamespace(outcome=outcome, statistics=statistics),
        resolved=SimpleNamespace(graph=SimpleNamespace(links=[]), jobs=[]),
        jobs={"job1": job},
        losses=0,
        short="",
        virtual=False,
    )
    assert [finding.kind for finding in slow_rounds(case)] == expected
    job["window_share"] = 0.25  # the window alone makes a round take 4 s
    assert list(slow_rounds(case)) == []


def lie_of_a_link(**more: int) -> Callable[..., Any]:
    honest = links.LinkDirection.statistics

    def statistics(way: links.LinkDirection) -> Any:
        found = honest(way)
        return replace(found, **{name: getattr(found, name) + n for name, n in more.items()})

    return statistics


def lie_of_a_node(kind: type, **more: int) -> Callable[..., Any]:
    honest = kind.account  # type: ignore[attr-defined]

    def account(node: Any) -> Any:
        found = honest(node)
        return replace(found, **{name: getattr(found, name) + n for name, n in more.items()})

    return account


def lie_of_a_worker(name: str) -> property:
    honest = AgentCore.unreported.fget
    assert honest is not None

    def unreported(core: AgentCore) -> dict[str, int]:
        found = honest(core)
        return {**found, name: found[name] + 1}

    return property(unreported)


LIES: dict[str, tuple[Any, str, Any]] = {
    **{
        f"a link's {name}": (links.LinkDirection, "statistics", lie_of_a_link(**{name: 1}))
        for name in ("packets", "seen", "in_flight", "held", "handed_over", "dropped_injected",
                     "dropped_by_queue", "lost_link_down", "duplicated")
    },
    "a link's in_flight, the other way": (
        links.LinkDirection,
        "statistics",
        lie_of_a_link(in_flight=-1),
    ),
    **{
        f"a host's {name}": (backend.HostNode, "account", lie_of_a_node(backend.HostNode, **more))
        for name, more in {
            "received": {"received": 1},
            "used": {"used": 1, "ignored": -1},
            "ignored": {"ignored": 1},
            "unread": {"unread": 1},
        }.items()
    },
    "a switch's received": (
        switches.SwitchNode, "account", lie_of_a_node(switches.SwitchNode, received=1, used=1)),
    "a switch's ignored": (
        switches.SwitchNode, "account", lie_of_a_node(switches.SwitchNode, ignored=1)),
    "a worker's sent": (AgentCore, "unreported", lie_of_a_worker("sent")),
    "a worker's received": (AgentCore, "unreported", lie_of_a_worker("received")),
}  # fmt: skip


@pytest.mark.long(
    but=["a link's packets", "a host's used", "a switch's received", "a worker's sent"]
)
@pytest.mark.parametrize("lie", LIES)
def test_a_counter_that_lies_is_found(ran: Run, monkeypatch: pytest.MonkeyPatch, lie: str) -> None:
    monkeypatch.setattr(*LIES[lie])
    code, metrics = ran("workload.elements=2_000")
    assert code == FAILED
    assert metrics["accounts"]["balanced"] is False
    assert "accounts" in kinds(metrics)


SMALLER = {
    "baselines": ("workload.elements=100_000", "workload.rounds=1"),
    "one-gigabit": ("workload.elements=400_000", "workload.rounds=1"),
    "scaling": ("workload.elements=100_000", "workload.rounds=1"),
    "mtu9000": ("workload.elements=200_000", "workload.rounds=1"),
    "thousand-workers": ("topology.racks=4", "workload.elements=20_000"),
    "ten-thousand-workers": ("topology.pods=2", "topology.racks=3"),
    "million-values": ("topology.pods=2", "topology.racks=3", "workload.elements=100_000"),
}
"""Those that would take long; the rest run as they are."""


def in_virtual_time(point: Point) -> Point:
    scenario = replace(point.resolved.scenario, backend="virtual")
    return replace(point, resolved=resolve(scenario, point.resolved.programs["s1"].path))


REAL_ONLY = {"baselines-tcp", "gloo", "gloo-loss", "train-by-layer", "train-digits"} | {
    f"train-{name}" for name in ("images", "sharded", "stragglers", "survivors", "words")
}
"""The shipped scenarios with a system or workload that does not run in virtual time."""


@pytest.mark.long
def test_all_other_scenarios_can_run_in_virtual_time() -> None:
    both = {name for name in names() if all(map(runs_in_virtual_time, load(find(name)).points))}
    assert both == {*names()} - REAL_ONLY


def runs_in_virtual_time(point: Point) -> bool:
    kinds = [KINDS[job.work.kind].clocks for job in point.resolved.jobs]
    return all("virtual" in clocks for clocks in [point.resolved.system.abilities.clocks, *kinds])


def declared(point: Point) -> set[str]:
    """The kinds of findings that a run expects."""
    expected = point.resolved.scenario.expect
    return {kind for each in expected if each.metric == "findings" for kind in each.listed}


@pytest.mark.long(but=["quickstart", "two-racks", "sparse-small", "survivors"])
@pytest.mark.parametrize("name", [name for name in names() if name not in REAL_ONLY])
def test_every_frame_of_every_shipped_scenario_is_accounted_for(name: str, tmp_path: Path) -> None:
    """In virtual time, and nothing is found that nobody expected. Where there is a verdict of the
    network's to expect, it is part of `ok`."""
    settings = SMALLER.get(name, ())
    suite = load(find(name), settings)
    virtual = tuple(in_virtual_time(point) for point in suite.points)
    run(replace(suite, points=virtual), tmp_path, settings, io.StringIO())
    metrics = json.loads((tmp_path / name / "latest/metrics.json").read_text())
    assert metrics["exact"] is True
    for point, one in zip(suite.points, runs_of(metrics), strict=True):
        each = one.metrics
        assert each["accounts"]["balanced"] is True
        found = {finding["kind"] for finding in each["findings"]}
        assert found == declared(point), each["findings"]
        assert each["ok"] or name in SMALLER, each["reason"]


def test_what_a_round_sends_that_is_broken_off_counts(tmp_path: Path) -> None:
    """A worker dies in mid-round: what the others sent again until they left it is theirs."""
    metrics = shipped("worker-killed", tmp_path)
    again = sum(w["retransmitted"] for w in metrics["workers"].values())
    seen = metrics["switches"]["s1"]["packets"]["duplicate"]
    assert again == seen
    lone = metrics["jobs"]["job1"]["rounds"] * metrics["links"]["h1-s1"]["h1->s1"]["packets"]
    assert metrics["workers"]["0"]["sent"] == lone  # one round ended, the second was broken off


def test_a_pulled_link_counts_what_it_lost_and_workers_what_they_sent_again(
    tmp_path: Path,
) -> None:
    metrics = shipped("link-pulled", tmp_path)
    assert metrics["totals"]["lost_down"] == sum(
        way["lost_down"] for way in metrics["links"]["h2-s1"].values()
    )
    assert metrics["totals"]["lost_down"] > 0
    assert (
        metrics["totals"]["retransmitted"] > metrics["switches"]["s1"]["packets"]["duplicate"] > 0
    )


def shipped(name: str, tmp_path: Path) -> dict[str, Any]:
    run(load(find(name), ["backend=virtual"]), tmp_path, [], io.StringIO())
    found = json.loads((tmp_path / name / "latest/metrics.json").read_text())
    assert found["ok"] is True, found["reason"]
    return dict(found)
