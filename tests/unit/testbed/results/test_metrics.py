"""The arithmetic of metrics.json, by cases computed by hand."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from agglab.hosts import histogram, recording
from agglab.hosts.part import WORKER
from agglab.hosts.workloads import Torch
from agglab.testbed import systems
from agglab.testbed.base.processor_time import Usage
from agglab.testbed.base.worker_id import WorkerId
from agglab.testbed.judge import fidelity
from agglab.testbed.judge.fairness import fairness
from agglab.testbed.judge.fidelity import Evidence
from agglab.testbed.real import DirectionStatistics, NetworkStatistics, SwitchStatistics
from agglab.testbed.results.metric_values import lookup
from agglab.testbed.results.metrics import compute
from agglab.testbed.results.shortcomings import failures, shortcomings
from agglab.testbed.run.measurements import Measurements
from agglab.testbed.run.outcome import Failure, JobResult, Outcome, Round, Span
from agglab.testbed.run.programs.program_state import ProgramState
from agglab.testbed.run.samples import Record
from agglab.testbed.scenario import ResolvedScenario, load, workloads
from agglab.testbed.scenario.metric_names import metric_of
from agglab.testbed.scenario.metric_names import metrics as metrics_of
from agglab.testbed.scenario.workloads.correctness import Verdict, WrongValue
from agglab.testbed.schema.expectations import Expectation
from agglab.testbed.schema.faults import AgentPause, AtTime, Fault, Impair
from agglab.testbed.schema.job_metrics import OF_HEADLINE
from agglab.testbed.systems.base import Bounds
from agglab.testbed.systems.summing.plan import PlacedJob, plan
from agglab.topologies import Drop, Jitter, Topology

SWITCHML = systems.find("switchml")
TEXT = """
name: hand
topology: {workers: 2}
links: {rate: 10mbit}
switch: {lanes: 100, slots: 4}
workload: {elements: 1050, dtype: DTYPE, rounds: 3, window: 4}
"""


def scenario(
    tmp_path: Path, dtype: str = "float32", extra: str = "", text: str = TEXT
) -> ResolvedScenario:
    path = tmp_path / "hand.yaml"
    path.write_text(text.replace("DTYPE", dtype) + extra)
    return load(path).points[0].resolved


def ended(rank: int, start_s: float, end_s: float, **stats: int) -> dict:
    return {
        "event": "round",
        "rank": rank,
        "start_ns": round(start_s * 1e9),
        "end_ns": round(end_s * 1e9),
        "cpu_s": 0.25,
        "stats": {"sent": 11, "bytes_sent": 0, "retransmitted": 0, "malformed": 0, **stats},
    }


PORTS = {"ports": {"1": {"tx_errors": 1, "tx_drops": 50}, "2": {"rx_truncated": 2}}}


def carried_in(times_s: list, directions: list[DirectionStatistics]) -> list[Span]:
    """All bytes in the first of these times."""
    bytes_of = [{way.direction: way.bytes for way in directions}, {}, {}]
    return [
        Span(round(start * 1e9), round(end * 1e9), carried)
        for (start, end), carried in zip(times_s, bytes_of, strict=False)
    ]


def limits(s: ResolvedScenario, graph: Topology | None = None) -> Bounds:
    s = replace(s, graph=graph or s.graph)
    return s.system.bounds(s, s.whole(s.jobs[0]))


def measurements(s: ResolvedScenario) -> Measurements:
    (job,) = s.jobs
    ended_rounds = [
        {0: ended(0, 1.0, 1.9), 1: ended(1, 1.1, 2.0, retransmitted=2)},  # 1.0 s
        {0: ended(0, 3.0, 3.5), 1: ended(1, 2.9, 3.4, malformed=1, network_errors=3)},  # 0.6 s
        {0: ended(0, 5.0, 5.8), 1: ended(1, 5.0, 5.7, kernel_drops=5)},  # 0.8 s
    ]
    directions = [
        DirectionStatistics("h1-s1", "h1->s1", 40, 600_000, 40, 3, 0),
        DirectionStatistics("h1-s1", "s1->h1", 40, 10_000, 40, 1, 2),
        DirectionStatistics("h2-s1", "h2->s1", 40, 20_000, 40, 0, 0),
        DirectionStatistics("h2-s1", "s1->h2", 40, 30_000, 40, 0, 0),
    ]
    rounds = [
        Round(n, (0, 1), e, 0, 1, rested_ns=500_000_000 if n else 0)
        for n, e in enumerate(ended_rounds)
    ]
    verdicts = [Verdict(max_abs=1e-9, bound=2e-9, compared=8)] * 3
    reports = [event for done in ended_rounds for event in done.values()]
    result = JobResult(job, rounds, verdicts, reports=reports, started_ns=900_000_000)
    used = Usage(2.4, {"s1": 0.5, "h1": 0.75}, {"s1": 0.0}, 1.5, 0.0)
    counts = {"new": 22, "refused": 4}
    return Measurements(
        outcome=Outcome([result], used, carried_in([(0.9, 2.1), (2.8, 3.6), (4.9, 6)], directions)),
        statistics=NetworkStatistics(
            tuple(directions), (SwitchStatistics("s1", 0.5, 7, PORTS),), {}
        ),
        counters={
            "s1": {
                **{kind: {0: (n, 10 * n), 16: (0, 0)} for kind, n in counts.items()},
                "malformed": {0: (5, 50)},
                "forged": {0: (6, 60)},
            }
        },
        register_bits={"s1": 4096},
        processors=2,
        record=Record(
            workers={WorkerId(1, "h1"): [samples(1)], WorkerId(1, "h2"): [samples(2)]},
            latencies={WorkerId(1, "h1"): np.eye(1, histogram.BUCKETS, 7, int)[0]},
            every_ns=100_000_000,
        ),
    )


def samples(times: int) -> np.ndarray:
    """Rows of a worker that is sampled 60 times, every 0.1 s, and sends 125 bytes times n squared
    times `times` before the n-th sample."""
    rows = np.zeros((61, len(recording.FIELDS)), np.int64)
    rows[:, 0] = np.arange(61) * 100_000_000
    rows[:, 1] = np.cumsum(125 * times * np.arange(61) ** 2)
    return rows


def test_the_rate_is_that_of_all_workers_within_rounds(tmp_path: Path) -> None:
    s = scenario(tmp_path)
    within = [*range(11, 21), *range(30, 36), *range(51, 59)]  # what rounds contain whole
    rates_bps = sorted(10 * 8 * 125 * 3 * n**2 for n in within)
    found = compute(s, measurements(s))["jobs"]["job1"]["send_rate_bps"]
    assert found["median"] == pytest.approx((rates_bps[11] + rates_bps[12]) / 2)
    assert found["p10"] == pytest.approx(rates_bps[2] * 0.7 + rates_bps[3] * 0.3)
    unrecorded = replace(measurements(s), record=Record())
    rates = compute(s, unrecorded)["jobs"]["job1"]["send_rate_bps"]
    assert rates == {"median": None, "p10": None}


def test_bounds_of_floats_count_an_opening_of_each_slot(tmp_path: Path) -> None:
    """11 chunks of 54 + 400 bytes, and 4 openings of 90 for the first window."""
    s = scenario(tmp_path)
    found = limits(s)
    assert 11 * 454 + 4 * 90 == 5354
    assert found.link_s == pytest.approx(5354 * 8 / 10e6)
    assert found.payload_s == pytest.approx(4200 * 8 / 10e6)


def test_bounds_of_integers_count_one_opening(tmp_path: Path) -> None:
    s = scenario(tmp_path, "int32")
    assert limits(s).link_s == pytest.approx((11 * 454 + 90) * 8 / 10e6)


def test_the_slowest_link_is_the_bound(tmp_path: Path) -> None:
    s = scenario(tmp_path)
    link = s.graph.link("h2-s1")
    graph = s.graph.with_link("h2-s1", b_to_a=replace(link.b_to_a, rate_bps=5_000_000))
    assert limits(s, graph).link_s == pytest.approx(5354 * 8 / 5e6)


def test_losses_stretch_what_a_link_takes_and_each_chunk_of_a_slot(tmp_path: Path) -> None:
    """Two workers, 10 % on each way of each link. A chunk waits for the larger of two sums of two
    geometric counts; a slot carries 3 chunks of 454 bytes after an opening of 90, over 2 links."""
    s = scenario(tmp_path)
    graph = s.graph
    for link in graph.links:
        ways = {
            "a_to_b": replace(link.a_to_b, impairments=(Drop(0.1),), delay_us=50_000),
            "b_to_a": replace(link.b_to_a, impairments=(Drop(0.1),), delay_us=50_000),
        }
        graph = graph.with_link(link.name, **ways)
    at_most, worst = 0.0, 0.0
    for count in range(200):
        at_most += (count + 1) * 0.1**count * 0.9**2
        worst += 1 - at_most**2
    trips_s = 4 * 0.1 + 2 * (3 * 454 + 90) * 8 / 10e6
    assert limits(s, graph).lossy_s == pytest.approx(trips_s * (1 + worst))
    for link in graph.links:
        ways = {way: replace(getattr(link, way), delay_us=0) for way in ("a_to_b", "b_to_a")}
        graph = graph.with_link(link.name, **ways)
    assert limits(s, graph).lossy_s == pytest.approx(5354 * 8 / 10e6 / 0.9)
    assert limits(s).lossy_s == limits(s).link_s


def test_losses_of_a_shared_link_count_once_and_those_below_by_the_worst(tmp_path: Path) -> None:
    """Only the racks' links lose: 40 % on the way up. E of the larger of two geometric counts."""
    path = tmp_path / "tiers.yaml"
    text = TEXT.replace("{workers: 2}", "{kind: two_tier, racks: 2, workers: 5}")
    path.write_text(text.replace("DTYPE", "int32"))
    s = load(path).points[0].resolved
    graph = s.graph
    (job,) = s.jobs
    tree = plan(graph, [PlacedJob(1, job.hosts, 0, 4)]).trees[1]
    for switch, parent in tree.uplinks():
        link = next(x for x in graph.links if {x.a.node, x.b.node} == {switch, parent})
        name = "a_to_b" if link.a.node == switch else "b_to_a"
        way = replace(getattr(link, name), impairments=(Drop(0.4),), delay_us=1_000_000)
        graph = graph.with_link(link.name, **{name: way})
    worst = sum(1 - (1 - 0.4**count) ** 2 for count in range(1, 200))
    trips_s = 4 * 1.0 + 4 * (3 * 454 + 90) * 8 / 10e6
    found = limits(s, graph).lossy_s
    assert found == pytest.approx(trips_s * (1 + worst))


def test_a_round_lasts_from_first_start_to_last_end() -> None:
    both = {0: ended(0, 1.0, 1.9), 1: ended(1, 1.1, 2.0)}
    assert Round(0, (0, 1), both, 500_000_000, 1).time_s == pytest.approx(1.0)
    again = Round(0, (0, 1), both, 500_000_000, 2)
    assert again.time_s == pytest.approx(1.5), "from the start of the attempt that was broken off"


def test_the_whole_of_it(tmp_path: Path) -> None:
    s = scenario(tmp_path)
    metrics = compute(s, measurements(s))
    assert metrics["exact"] is True
    assert metrics["error"] == {"max_abs": 1e-9, "bound": 2e-9, "within": True}
    assert metrics["allreduce"]["time_s"] == {
        "median": pytest.approx(0.8),
        "min": pytest.approx(0.6),
        "max": pytest.approx(1.0),
        "all": pytest.approx([1.0, 0.6, 0.8]),
    }
    assert metrics["allreduce"]["ate_per_s"] == pytest.approx(1050 / 0.8)
    assert metrics["link_bound_ratio"] == pytest.approx(0.8 / (5354 * 8 / 10e6))
    assert metrics["workers"]["1"]["retransmitted"] == 2
    assert metrics["workers"]["0"]["sent"] == 33
    assert metrics["workers"]["0"]["cpu_s"] == 0.75
    assert metrics["totals"] == {
        "sent": 66,
        "retransmitted": 2,
        "injected_drops": 4,
        "lost_down": 0,
        "other_drops": 2 + 7 + 3 + 5,  # queues, rings, ports, sockets
        "malformed": 1 + 4 + 5,
        "forged": 6,
        "network_errors": 3,
        "server_bytes": 0,
    }
    assert metrics["switches"]["s1"]["packets"]["new"] == 22
    assert metrics["switches"]["s1"]["register_bits"] == 4096
    assert metrics["links"]["h1-s1"]["s1->h1"]["dropped"] == 1
    assert metrics["switches"]["s1"]["jobs"] == {"job1": counts_of_job()}
    assert metrics["jobs"]["job1"]["workers"] == metrics["workers"]
    assert metrics["completion_s"] == pytest.approx(4.9 - 2 * 0.5)
    assert metrics["elements_per_s"] == pytest.approx(3 * 1050 / (4.9 - 2 * 0.5))
    assert metrics["switch_share"] == 1
    assert metrics["fairness"] == {"jain": pytest.approx(1), "shares": {"job1": 1.0}}
    assert metrics["failure"] is None
    # 600 kB in 2.4 s at 10 Mbit/s is a fifth of what the link carries.
    assert "carried 20% of its rate" in " ".join(metrics["fidelity"]["reasons"])


def test_each_direction_has_what_the_scenario_asks_of_it(tmp_path: Path) -> None:
    own = "{match: h2->s1, rate: 5mbit, loss: 0%, delay: 3ms, queue: 20kB}"
    text = TEXT.replace("10mbit}", f"10mbit, loss: 1%, overrides: [{own}]}}")
    s = scenario(tmp_path, text=text)
    measured = measurements(s)
    jitter = Impair("h1-s1", ("h1->s1",), Jitter(50))
    measured.outcome.begun.append(Fault(1, "jitter", jitter, AtTime(0.2)))
    links = compute(s, measured)["links"]
    names = ("rate_bps", "delay_s", "queue_bytes", "queue_packets", "impairments")
    loss, late = {"kind": "loss", "probability": 0.01}, {"kind": "jitter", "max_us": 50}
    for link, way, values in (
        ("h1-s1", "h1->s1", (10_000_000, 0.0, None, 1000, [loss, late])),
        ("h1-s1", "s1->h1", (10_000_000, 0.0, None, 1000, [loss])),
        ("h2-s1", "h2->s1", (5_000_000, 0.003, 20_000, None, [])),
    ):
        assert tuple(links[link][way][name] for name in names) == values, way


def evidence(s: ResolvedScenario, measured: Measurements) -> Evidence:
    """From what the fidelity of a run is judged."""
    judged: list[Evidence] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fidelity, "judge", lambda given: judged.append(given) or {})
        compute(s, measured)
    return judged[0]


def test_from_what_fidelity_is_judged(tmp_path: Path) -> None:
    s = scenario(tmp_path)
    measured = measurements(s)
    ways = [
        replace(way, corrupted=number, lost_link_down=10 * number)
        for number, way in enumerate(measured.statistics.directions)
    ]
    statistics = replace(measured.statistics, directions=tuple(ways))
    begun = [
        Fault(1, "worker_paused", AgentPause(1, "h1", WORKER), AtTime(0.1)),
        Fault(2, "jitter", Impair("h1-s1", ("h1->s1",), Jitter(50)), AtTime(0.2)),
    ]
    measured = replace(measured, statistics=statistics)
    assert evidence(s, measured) == Evidence(
        rate_share=pytest.approx(600_000 / (2.4 * 10e6 / 8), rel=0.01),
        usage=measured.outcome.usage,
        processors=2,
        injected_drops=3 + 1,
        other_drops=2 + 7 + 3 + 5,  # of a queue, of a ring, of ports, of a kernel
        sent=6 * 11,
        retransmitted=2,
        unexplained=0,
        losses=4 + 17 + (1 + 2 + 3) + (10 + 20 + 30),
        faults=(),
        window_share=1.0,
        delayed=False,
        brief=True,
    )
    measured.outcome.begun += begun
    with_faults = evidence(s, measured)
    assert with_faults.delayed and with_faults.faults == ("worker_paused",)


@pytest.mark.parametrize(("chunks", "brief"), [(16, True), (17, False)])
def test_a_round_of_four_windows_is_brief(tmp_path: Path, chunks: int, brief: bool) -> None:
    text = TEXT.replace("1050", str(100 * chunks))
    s = scenario(tmp_path, text=text)
    assert evidence(s, measurements(s)).brief is brief


def carried(s: ResolvedScenario, measured: Measurements, size: int) -> str:
    """The share of the busiest link's rate, when so many bytes crossed it."""
    ways = [replace(way, bytes=size) for way in measured.statistics.directions]
    times_s = [(span.begin_ns / 1e9, span.end_ns / 1e9) for span in measured.outcome.spans]
    measured.outcome.spans = carried_in(times_s, ways)
    statistics = replace(measured.statistics, directions=tuple(ways))
    metrics = compute(s, replace(measured, statistics=statistics))
    found = re.search(r"carried (\d+%) of its rate", " ".join(metrics["fidelity"]["reasons"]))
    assert found
    return found[1]


def test_the_rate_of_attempts_that_were_broken_off_is_that_of_their_own_time(
    tmp_path: Path,
) -> None:
    """Rounds took 2.4 s; with what was broken off links had 8 s, and carried 8 MB. Where a queue
    was not empty when rounds ended, the time until the testbed heard of it counts as well."""
    s = scenario(tmp_path)
    measured = measurements(s)
    measured.outcome.jobs[0].restarts = 2
    times_s = [(0, 5), (6, 9)]
    measured.outcome.spans = carried_in(times_s, [])
    assert carried(s, measured, 8_000_000) == "80%"
    measured.outcome.jobs[0].restarts = 0
    measured.outcome.jobs[0].failure = Failure("job1", "h2: worker 1 is dead", "h2", 1.5)
    assert carried(s, measured, 8_000_000) == "80%"


def test_what_fits_into_the_token_bucket_is_not_more_than_the_rate(tmp_path: Path) -> None:
    """A round of 1 ms at 10 Mbit/s: 1250 bytes, and two frames of 1514 that may leave at once."""
    s = scenario(tmp_path)
    measured = measurements(s)
    result = measured.outcome.jobs[0]
    result.rounds[:] = [Round(0, (0, 1), {r: ended(r, 1, 1.001) for r in (0, 1)}, 0, 1)]
    assert carried(s, measured, 1250 + 2 * 1514) == "100%"
    assert carried(s, measured, 1250) == "29%"
    measured.outcome.spans = carried_in([(1, 1.002)], [])
    assert carried(s, measured, 2500 + 2 * 1514) == "100%"
    with pytest.raises(AssertionError, match="more than its rate"):
        carried(s, measured, 2500 + 2 * 1514 + 1)


def counts_of_job() -> dict[str, int]:
    return {"new": 22, "refused": 4}


def leaves(value: object, path: str = "") -> list[str]:
    if isinstance(value, dict):
        return [leaf for k, v in value.items() for leaf in leaves(v, f"{path}.{k}" if path else k)]
    return [path]


def test_every_metric_is_documented_and_every_documented_one_exists(tmp_path: Path) -> None:
    s = scenario(tmp_path)
    measured = measurements(s)
    job = measured.outcome.jobs[0]
    job.failure = Failure("job1", "h2: worker 1 is dead", "h2", 1.5)
    job.verdicts[1] = Verdict(0, 1, WrongValue("result", 1, 17, 0.5, 0.75, 1e-9), 1e-9, 2e-9)
    kinds = "new duplicate stale complete refused repeated partial_repeated final_new"
    kinds += " final_unneeded late closed_early held"
    full = {kind: {0: (1, 60), 16: (0, 0)} for kind in kinds.split()}
    of_no_job = ("malformed", "host_errors", "forged", "forwarded", "unroutable")
    full |= {kind: {0: (0, 0)} for kind in of_no_job}
    own = ProgramState({"dropped": {0: (2, 120), 1: (1, 60)}})
    measured = replace(measured, counters={"s1": full}, programs={"s1": own})
    measured.outcome.attacked = {"result": 3}
    opinion = {"findings": [], "lacking": ""}
    metrics = {"ok": True, "verdict": "passed", "reason": "", "second_opinion": opinion}
    metrics |= compute(s, measured)
    assert lookup(metrics, "switches.s1.program.dropped") == 3
    found = leaves(metrics)
    kinds = [kind for name, kind in workloads.KINDS.items() if name != "allreduce"]
    others = {metric.path for kind in kinds for metric in (*kind.metrics, *OF_HEADLINE)}
    others |= {"gain_limits"}
    others |= {f"jobs.*.{path}" for path in others}
    declared = {path: metric_of(path, SWITCHML) for path in found}
    assert {each and each.path for each in declared.values()} == set(metrics_of(SWITCHML)) - others
    missing = {"links_as_predicted", "accounts.balanced", "fidelity.waited_for"}
    missing |= {p for p in found if p.endswith(("predicted_bytes", "queue_bytes"))}
    for path in set(found) - missing:
        types = {"flag": bool, "text": str, "list": list, "number": (int, float)}
        assert isinstance(lookup(metrics, path), types[declared[path].kind]), path


@pytest.mark.parametrize("kind", ["layers, model: alexnet, scale: 1e5", "sgd"])
def test_rounds_of_several_sums_have_the_metrics_that_are_declared(
    tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "several.yaml"
    path.write_text(f"name: several\nworkload: {{kind: {kind}}}\n")
    work = load(path).points[0].resolved.jobs[0].work
    found = leaves(workloads.KINDS[work.kind].summary(work, [0.25], []))
    assert set(found) == {metric.path for metric in workloads.KINDS[work.kind].metrics}


def test_a_failed_job_and_a_fault_that_never_began_are_shortcomings_unless_expected(
    tmp_path: Path,
) -> None:
    s = scenario(tmp_path)
    outcome = measurements(s).outcome
    assert shortcomings(outcome, [], s.scenario.expect) == []
    outcome.jobs[0].failure = Failure("job1", "h2: worker 1 is dead", "h2", 1.5)
    outcome.never_begun.append("link_down h1-s1 at 9 s")
    never = "link_down h1-s1 at 9 s never began, because the run was already over"
    assert shortcomings(outcome, [], s.scenario.expect) == [never, "h2: worker 1 is dead"]
    expected = [Expectation("failure.worker", equals="h2")]
    assert shortcomings(outcome, [], expected) == [never]
    slow = [{"kind": "slow", "text": "too long"}]
    assert shortcomings(outcome, slow, expected) == [never, "slow: too long"]
    also = [*expected, Expectation("findings", listed=("slow",))]
    assert shortcomings(outcome, slow, also) == [never]
    metrics = compute(s, replace(measurements(s), outcome=outcome))
    assert failures(metrics, expected) == []


def test_a_job_that_ended_no_round_is_not_exact_and_has_no_times(
    tmp_path: Path,
) -> None:
    s = scenario(tmp_path)
    measured = measurements(s)
    for whole in (result := measured.outcome.jobs[0]).rounds, result.verdicts, result.reports:
        whole.clear()
    metrics = compute(s, measured)
    assert metrics["exact"] is None
    assert metrics["completion_s"] is metrics["switch_share"] is None
    assert metrics["elements_per_s"] == 0


def test_rounds_in_which_nothing_was_compared_are_not_exact(tmp_path: Path) -> None:
    s = scenario(tmp_path)
    measured = measurements(s)
    measured.outcome.jobs[0].verdicts[:] = [Verdict()] * 3
    metrics = compute(s, measured)
    assert metrics["exact"] is metrics["jobs"]["job1"]["exact"] is None
    (missed,) = failures(metrics, [Expectation("exact", equals=True)])
    assert missed == "expected exact = true, got nothing: no sum was compared with a right one"
    measured.outcome.jobs[0].verdicts[1] = Verdict(compared=1)
    assert compute(s, measured)["exact"] is True


def test_wrong_results_are_a_shortcoming_that_says_where(tmp_path: Path) -> None:
    s = scenario(tmp_path)
    outcome = measurements(s).outcome
    bad = Verdict(0, 2, WrongValue("result", 1, 17, 0.5, float("nan"), 1e-9), float("inf"), 2e-9)
    outcome.jobs[0].verdicts[1] = bad
    text = (
        "h2 (worker 1 of job1), round 1: result[17] is nan, but 0.5 was expected within 1e-09; "
        "0 sums and 2 results are wrong"
    )
    assert shortcomings(outcome, [], [Expectation("exact", equals=True)]) == [text]
    metrics = compute(s, replace(measurements(s), outcome=outcome))
    assert (metrics["exact"], metrics["wrong_sums"], metrics["wrong_results"]) == (True, 0, 2)
    assert metrics["error"] == {"max_abs": None, "bound": 2e-9, "within": False}
    assert metrics["first_wrong"] == {
        "job": "job1",
        "worker": "h2",
        "rank": 1,
        "round": 1,
        "what": "result",
        "index": 17,
        "expected": 0.5,
        "allowed": 1e-9,
        "got": "nan",
    }
    json.dumps(metrics, allow_nan=False)


WRONG = WrongValue("out", 0, None, "float32 of 3", "nothing")
RESULTS, SUMS, BOTH = Verdict(0, 2, WRONG), Verdict(2, 0, WRONG), Verdict(2, 2, WRONG)


@pytest.mark.parametrize(
    ("expected", "excused"),
    [
        (Expectation("exact", equals=False), [SUMS, BOTH]),
        (Expectation("jobs.job1.exact", equals=False), [SUMS, BOTH]),
        (Expectation("wrong_sums", equals=0), [SUMS, BOTH]),
        (Expectation("error.within", equals=False), [RESULTS]),
        (Expectation("wrong_results", equals=2), [RESULTS]),
        (Expectation("jobs.job1.wrong_results", equals=2), [RESULTS]),
        (Expectation("jobs.other.exact", equals=False), []),
        (Expectation("error.within", equals=True), []),
        (Expectation("rounds", equals=3), []),
    ],
    ids=lambda value: str(value) if isinstance(value, Expectation) else "excuses",
)
def test_what_is_wrong_is_excused_by_who_expects_just_that(
    tmp_path: Path, expected: Expectation, excused: list[Verdict]
) -> None:
    """A count that is stated is judged as an expectation; it says nothing of the other one."""
    outcome = measurements(scenario(tmp_path)).outcome
    for wrong in (RESULTS, SUMS, BOTH):
        outcome.jobs[0].verdicts[1] = wrong
        found = shortcomings(outcome, [], [expected])
        assert bool(found) is (wrong not in excused)
        assert all("out is nothing, but float32 of 3 was expected; " in line for line in found)


@pytest.mark.parametrize("metric", ["exact", "error.within", "wrong_sums", "wrong_results"])
def test_an_integer_result_is_the_sum(tmp_path: Path, metric: str) -> None:
    outcome = measurements(scenario(tmp_path, "int32")).outcome
    outcome.jobs[0].verdicts[1] = BOTH
    assert shortcomings(outcome, [], [Expectation(metric, equals=False)]) == []


def test_what_was_received_in_a_round_that_was_broken_off_counts(tmp_path: Path) -> None:
    s = scenario(tmp_path)
    outcome = measurements(s).outcome
    outcome.jobs[0].broken_off.append((1, Verdict(3, 0, WrongValue("sum", 0, 5, 7, 8))))
    metrics = compute(s, replace(measurements(s), outcome=outcome))
    assert (metrics["exact"], metrics["wrong_sums"]) == (False, 3)
    assert (
        "h1 (worker 0 of job1), round 1: sum[5] is 8, but 7 was expected"
        in shortcomings(outcome, [], [])[0]
    )


def test_the_first_wrong_value_is_that_of_the_earliest_round(tmp_path: Path) -> None:
    s = scenario(tmp_path)
    outcome = measurements(s).outcome
    outcome.jobs[0].verdicts[1] = Verdict(1, 0, WrongValue("sum", 1, 6, 3, 4))
    outcome.jobs[0].broken_off.append((2, Verdict(3, 0, WrongValue("sum", 0, 5, 7, 8))))
    first = compute(s, replace(measurements(s), outcome=outcome))["first_wrong"]
    assert (first["round"], first["worker"], first["index"]) == (1, "h2", 6)


def test_shares_of_the_throughput_are_those_of_what_was_reduced(tmp_path: Path) -> None:
    """Job b, which has three times the share of a, reduces four times as much."""
    jobs = "jobs: [{name: a, workers: [h1]}, {name: b, workers: [h2], share: 3}]\n"
    s = scenario(tmp_path, extra=jobs)
    results = []
    for job, end_s in zip(s.jobs, (8.0, 2.0), strict=True):
        done = Round(0, (0,), {0: ended(0, 0.0, end_s)}, 0, 1)
        results.append(JobResult(job, [done], started_ns=0))
    found = fairness(results)
    assert found["shares"] == {"a": pytest.approx(0.2), "b": pytest.approx(0.8)}
    assert found["jain"] == pytest.approx((1 + 4 / 3) ** 2 / (2 * (1 + 16 / 9)))


def test_bytes_are_predicted_and_compared(tmp_path: Path) -> None:
    """3 rounds of 5354 bytes over each link, up and down; worker 1 has sent two frames again."""
    s = scenario(tmp_path)
    measured = measurements(s)
    for rank, again in ((0, 0), (1, 2 * 454)):
        for done in measured.outcome.jobs[0].rounds:
            done.ended[rank]["stats"] |= {"bytes_sent": 5354, "retransmitted": 0}
        first = measured.outcome.jobs[0].rounds[0].ended[rank]["stats"]
        first |= {"bytes_sent": 5354 + again, "retransmitted": again // 454}
    sent = {"h1->s1": 16062, "s1->h1": 16062, "h2->s1": 16062 + 908, "s1->h2": 16062 + 454}
    counters = {"s1": {"repeated": {0: (1, 454)}}}

    def compared(copies: int = 0, **changes: int) -> object:
        ways = tuple(
            replace(
                way,
                bytes=sent[way.direction] + changes.get(way.direction[:2], 0),
                dropped_by_queue=0,
                duplicated=copies,
            )
            for way in measured.statistics.directions
        )
        statistics = replace(measured.statistics, directions=ways)
        changed = replace(measured, statistics=statistics, counters=counters)
        metrics = compute(s, changed)
        assert metrics["links"]["h2-s1"]["h2->s1"]["predicted_bytes"] == 16062
        return metrics["links_as_predicted"]

    assert compared() is True
    assert compared(h1=1) is False
    assert compared(h2=-454) is False
    assert compared(s1=454) is False
    assert compared(copies=1) is True
    assert compared(copies=1, s1=454) is None
    assert compared(copies=1, s1=454, h1=-1) is False
    measured.outcome.attacked["forged"] = 7
    assert compared(s1=454) is None
    assert compared(s1=-454) is False
    measured.outcome.jobs[0].restarts = 1
    metrics = compute(s, measured)
    assert metrics["links_as_predicted"] is None
    expected = [Expectation("links_as_predicted", equals=True)]
    assert failures(metrics, expected) == [
        "expected links_as_predicted = true, got nothing: "
        "job1 repeated rounds, so part of their bytes was sent twice"
    ]
    measured.outcome.jobs[0].restarts = 0
    metrics = compute(s, measured)
    assert metrics["links_unclear"] == (
        "the queue of s1->h1 was full and dropped frames that were counted as sent"
    )


def test_the_documentation_lists_every_metric() -> None:
    text = (Path(__file__).parents[4] / "docs/results.md").read_text()
    cells = re.findall(r"^\| `([^`]+)` \| ([^|]*) \| (.*) \|$", text, re.MULTILINE)
    rows = {name: (unit, meaning) for name, unit, meaning in cells}
    stated = {name: each for name, each in metrics_of(SWITCHML).items() if each.meaning}
    assert stated.keys() <= rows.keys()
    for name, each in stated.items():
        unit, meaning = rows[name]
        assert (each.unit or each.kind) in unit.split(", "), name
        own = [part for part in meaning.split("; ") if "`switchml`" in part.partition(": ")[0]]
        assert meaning == each.meaning or [t.partition(": ")[2] for t in own] == [each.meaning], (
            name
        )


def test_failures_name_what_was_expected_and_what_was_found() -> None:
    metrics = {"exact": False, "link_bound_ratio": 1.30001, "totals": {"other_drops": 3}}
    expected = [
        Expectation("exact", equals=True),
        Expectation("link_bound_ratio", maximum=1.3),
        Expectation("totals.other_drops", maximum=3),
        Expectation("workers.9.sent", minimum=1),
    ]
    assert failures(metrics, expected) == [
        "expected exact = true, got false",
        "expected link_bound_ratio <= 1.3, got 1.30001",
        "expected workers.9.sent >= 1, got nothing",
    ]


@pytest.mark.parametrize("scripted", [False, True])
def test_a_job_whose_script_decides_what_it_reduces_has_no_rates_of_default_sizes(
    tmp_path: Path, scripted: bool
) -> None:
    s = scenario(tmp_path)
    measured = measurements(s)
    (result,) = measured.outcome.jobs
    if scripted:
        result.job = replace(result.job, work=Torch(result.job.elements, "train.py", (), "float32"))
    computed = compute(s, measured)
    rates = ("allreduce.ate_per_s", "elements_per_s", "payload_bound_s", "fairness.jain")
    known = [lookup(computed, path) is not None for path in (*rates, "fairness.shares.job1")]
    assert known == [not scripted] * 5
    assert (lookup(computed, "link_bound_ratio") is None) == scripted
    assert lookup(computed, "headline.metric") == ("training.step_s.median" if scripted else None)
