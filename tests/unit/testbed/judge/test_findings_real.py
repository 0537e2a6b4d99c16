"""Findings on real links, where counts decide: by cases made by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agglab.testbed import systems
from agglab.testbed.base.traffic_counters import DirectionStatistics
from agglab.testbed.judge import findings
from agglab.testbed.judge.findings import Case, find, slow_rounds, unexplained_repeats
from agglab.testbed.judge.unexplained_counts import Doubt, doubts
from agglab.testbed.real.link_counters import carried_bytes
from agglab.testbed.scenario import resolve
from agglab.testbed.schema.faults import AgentPause, Attack, AtTime, Fault, SwitchRestart
from agglab.testbed.schema.network_sections import Topology
from agglab.testbed.schema.scenario import Scenario
from agglab.topologies import rack

SENT = 10_000
SWITCHML = systems.find("switchml")


def case(
    again: int = 0,
    losses: int = 0,
    short: str = "",
    begun: tuple[Any, ...] = (),
    malformed: int = 0,
    injected: int = 0,
    median_s: float = 1.0,
    went: int = 2000,
    target: str = "native",
    extra: int = 0,
    program: Path | None = None,
    system: str = "switchml",
) -> Case:
    """Two workers; the switch has completed 1000 chunks and sent 2000 frames."""
    resolved = resolve(Scenario(topology=Topology(workers=2), system=system), program)
    job = SimpleNamespace(
        restarts=0, failure=None, lost=[], started_ns=0, ended_ns=10**9, job=resolved.jobs[0]
    )
    frames = dict.fromkeys(SWITCHML.counters, 0) | {"new": 2000, "complete": 1000}
    ways = (
        DirectionStatistics("h1-s1", "h1->s1", 2000, 0, 2000, 0, 0),
        DirectionStatistics("h1-s1", "s1->h1", went, 0, went, 0, 0),
    )
    measured: Any = SimpleNamespace(
        outcome=SimpleNamespace(
            jobs=[job], begun=begun, injected={"h9": injected} if injected else {}, attacked={}
        ),
        counters={"s1": {kind: {0: (n, 0)} for kind, n in frames.items()}},
        statistics=SimpleNamespace(
            directions=ways,
            switches=(SimpleNamespace(name="s1", details={}),),
            nodes=(),
            repeats=None,
        ),
    )
    counts = {"sent": SENT // 2, "retransmitted": again // 2, "duplicates": extra, "late": 0}
    workers = {str(n): counts for n in (0, 1)}
    bounds = {
        "link_bound_s": 0.9,
        "lossy_bound_s": 0.9,
        "window_share": 1.0,
        "lossy_bound_ratio": median_s and median_s / 0.9,
    }
    times = {"allreduce": {"time_s": {"median": median_s}}, **bounds}
    jobs = {"job1": {"workers": workers, "window_share": 1.0, **times}}
    totals = {"retransmitted": again, "malformed": malformed, "forged": 0}
    return Case(measured, resolved, jobs, totals, losses, target, short)


PAUSE = Fault(0, "worker_pause", AgentPause(1, "h1", "worker"), AtTime(0.1), 0.5)
ATTACK = Fault(0, "attack", Attack("h9", 20, 1.0), AtTime(0.1))


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({}, []),
        ({"again": 100}, []),
        ({"again": 102}, ["sent-again"]),
        ({"again": 102, "losses": 1}, []),
        ({"again": 400, "losses": 50}, ["sent-again"]),
        ({"again": 4000, "short": "h1 waited 20% of the time"}, []),
        ({"again": 4000, "begun": (PAUSE,)}, []),
        ({"again": 4000, "begun": (ATTACK,)}, ["sent-again"]),
        ({"malformed": 1}, ["refused"]),
        ({"malformed": 20, "injected": 20}, []),
        ({"malformed": 21, "injected": 20}, ["refused"]),
        ({"median_s": 2.6}, []),
        ({"median_s": 2.8}, ["slow"]),
        ({"median_s": 2.8, "short": "h1 waited 20% of the time"}, []),
        ({"median_s": 2.8, "begun": (PAUSE,)}, []),
        ({"median_s": 2.8, "losses": 1}, []),
        ({"went": 1872}, []),
        ({"went": 1871}, ["lost-in-switch"]),
        ({"went": 1871, "short": "h1 waited 20% of the time"}, ["lost-in-switch"]),
        ({"went": 1871, "target": "bmv2"}, []),
        ({"went": 2128}, []),
        ({"went": 2129}, ["sent-unasked"]),
        ({"went": 2129, "injected": 20}, []),
    ],
)
def test_counts_decide(changes: dict[str, Any], kinds: list[str]) -> None:
    assert [finding.kind for finding in find(case(**changes))] == kinds


RESTART = Fault(0, "switch_restart", SwitchRestart("s1", 0.1), AtTime(0.1))
PORTS = {"1": {"tx_errors": 3, "tx_oversize": 4}, "2": {"tx_errors": 10}}


@pytest.mark.parametrize(("went", "kinds"), [(1872 - 17, []), (1871 - 17, ["lost-in-switch"])])
def test_what_ports_could_not_send_is_not_lost_inside(went: int, kinds: list[str]) -> None:
    of_ports = case(went=went)
    of_ports.measured.statistics.switches[0].details["ports"] = PORTS
    assert [finding.kind for finding in find(of_ports)] == kinds


@pytest.mark.parametrize(("repeats", "judged"), [(None, False), (SimpleNamespace(), True)])
def test_a_switch_that_was_restarted_is_judged_in_virtual_time_only(
    repeats: Any, judged: bool
) -> None:
    restarted = case(went=1800, begun=(RESTART,))
    restarted.measured.statistics.repeats = repeats
    kinds = [finding.kind for finding in findings._in_switches(restarted)]
    assert ("lost-in-switch" in kinds) == judged


@pytest.mark.parametrize(
    ("corrupted", "duplicated", "malformed", "kinds"),
    [
        (0, 5, 1, ["refused"]),
        (2, 0, 2, []),
        (2, 5, 7, []),
        (2, 5, 8, ["refused"]),
    ],
)
def test_copies_explain_refused_packets_only_where_some_were_corrupted(
    corrupted: int, duplicated: int, malformed: int, kinds: list[str]
) -> None:
    copied = case(malformed=malformed)
    first, second = copied.measured.statistics.directions
    changed = replace(first, corrupted=corrupted, duplicated=duplicated)
    copied.measured.statistics.directions = (changed, second)
    assert [finding.kind for finding in find(copied)] == kinds


def with_second_job(changed: Case) -> Case:
    """Adds a job with one more worker."""
    (job,) = changed.jobs.values()
    workers = {**job["workers"], "2": {"sent": 0, "retransmitted": 0}}
    return replace(changed, jobs={**changed.jobs, "job2": {**job, "workers": workers}})


@pytest.mark.parametrize(("again", "unexplained"), [(6, 0), (7, 1)])
def test_a_loss_explains_what_the_workers_of_the_largest_job_sent_again(
    again: int, unexplained: int
) -> None:
    counts = {"small": [0], "large": [0, again, 0]}
    jobs = {
        name: {"workers": {str(rank): {"retransmitted": n} for rank, n in enumerate(ranks)}}
        for name, ranks in counts.items()
    }
    assert unexplained_repeats(case().measured, jobs, losses=1) == unexplained


@pytest.mark.parametrize(("median_s", "slow"), [(5.3, []), (5.5, ["slow", "slow"])])
def test_jobs_that_share_links_may_take_so_much_longer(median_s: float, slow: list[str]) -> None:
    two = with_second_job(case(median_s=median_s))
    assert [finding.kind for finding in slow_rounds(two)] == slow


SHORT = "h1 waited 20% of the time"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"again": 102}, [("sent-again", False)]),  # which is a finding as well
        ({"again": 102, "short": SHORT}, [("sent-again", True)]),
        ({"again": 100, "short": SHORT}, [("sent-again", False)]),
        ({"again": 2, "losses": 50}, [("sent-again", False)]),
        ({"again": 2, "begun": (PAUSE,)}, [("sent-again", False)]),
        ({"extra": 1}, [("sent-unasked", False)]),
        ({"median_s": 2.8, "short": SHORT}, [("slow", True)]),
        ({"again": 4000, "median_s": 2.8, "short": SHORT}, [("sent-again", True), ("slow", True)]),
        ({"again": 2, "system": "ring"}, []),
        (
            {"again": 2, "system": "ring", "program": Path("/own/forwarding.p4")},
            [("sent-again", False)],
        ),
        ({"again": 4000, "short": SHORT, "system": "ring"}, [("sent-again", True)]),
        ({"again": 4000, "short": SHORT, "system": "gloo"}, []),
    ],
)
def test_what_a_late_process_explains_is_a_doubt(
    changes: dict[str, Any], expected: list[tuple[str, bool]]
) -> None:
    found = doubts(case(**changes))
    assert [(doubt.kind, doubt.firm) for doubt in found] == expected
    assert all(SHORT in doubt.text for doubt in found if doubt.firm)


def test_in_virtual_time_nothing_is_in_doubt() -> None:
    measured: Any = SimpleNamespace(statistics=SimpleNamespace(repeats=object()))
    virtual = replace(case(again=4000, short=SHORT), measured=measured)
    assert doubts(virtual) == []


def test_a_doubt_in_metrics() -> None:
    assert Doubt("slow", "a round took 2 s", True).to_json() == {
        "kind": "slow",
        "text": "a round took 2 s",
        "firm": True,
    }


def test_bytes_sent_are_read_without_a_program(tmp_path: Any) -> None:
    """/proc/PID/net/dev of each node: two lines of headings, then one for each interface."""
    graph = rack(1)
    (link,) = graph.links
    ends = {link.a.node: (link.a.interface, 7), link.b.node: (link.b.interface, 9)}
    for pid, (interface, sent) in enumerate(ends.values()):
        (tmp_path / str(pid) / "net").mkdir(parents=True)
        lines = ["heading", "heading", f"  {interface}: 1 2 0 0 0 0 0 0 {sent} 5 0 0 0 0 0 0"]
        (tmp_path / str(pid) / "net/dev").write_text("\n".join(lines) + "\n")
    pids = {node: pid for pid, node in enumerate(ends)}
    found = carried_bytes(graph, pids, tmp_path)
    assert found == {name: ends[end.node][1] for name, end, _, _ in link.directions()}
