"""Whole runs on virtual time: jobs, faults, recovery, and what is said of them."""

import io
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.scenario import load
from agglab.testbed.systems.summing.attack import KINDS

BASE = """
name: tiny
backend: virtual
topology: {workers: 4}
links: {rate: 10mbit}
switch: {lanes: 16, slots: 16}
"""
WORKLOAD = "elements: 8_000, dtype: int32, give_up: 500ms"


class Ran:
    """The exit code, output and files of one run."""

    def __init__(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "tiny.yaml"
        path.write_text(text)
        out = io.StringIO()
        self.code = run(load(path), tmp_path / "results", [], out)
        self.out = out.getvalue()
        self.folder = (tmp_path / "results/tiny/latest").resolve()

    def json(self, name: str) -> dict[str, Any]:
        return json.loads((self.folder / name).read_text())

    @property
    def metrics(self) -> dict[str, Any]:
        return self.json("metrics.json")

    def events(self, kind: str) -> list[dict[str, Any]]:
        lines = (self.folder / "events.jsonl").read_text().splitlines()
        return [event for event in map(json.loads, lines) if event["event"] == kind]


@pytest.fixture
def conduct(tmp_path: Path):
    def conduct(tail: str, workload: str = "", base: str = BASE, rounds: int = 3) -> Ran:
        more = f", {workload}" if workload else ""
        return Ran(tmp_path, f"{base}workload: {{{WORKLOAD}, rounds: {rounds}{more}}}\n{tail}")

    return conduct


MID = "at_chunk: {round: 1, chunk: 200}"


def test_a_dead_worker_fails_the_job_and_is_named_with_what_it_owes(conduct, capsys) -> None:
    ran = conduct(f"faults: [{{kind: worker_crash, worker: h3, {MID}}}]")
    assert ran.code == 1
    failure = ran.metrics["failure"]
    assert (failure["worker"], failure["job"], failure["after_s"]) == ("h3", "job1", 0)
    assert failure["reason"].startswith(
        "h3: worker 2 exited early with status -9 and never sent chunks 192, 203-"
    )
    assert "(faults: worker_crash h3 " in failure["reason"]
    assert (ran.metrics["rounds"], ran.metrics["exact"], ran.metrics["ok"]) == (1, True, False)
    assert capsys.readouterr().err.startswith("h3: worker 2 exited early")


@pytest.mark.parametrize(
    ("fault", "worker", "words"),
    [
        ("kind: link_down, link: h2-s1", "h2", "never delivered chunks"),
        ('kind: loss, link: "s1->h4", probability: 99.999%', "h4", "never heard the sum of chunks"),
        ("kind: worker_pause, worker: h1", "h1", "answers nothing and never sent chunks"),
    ],
)
def test_whoever_is_missing_is_named_in_time(conduct, fault: str, worker: str, words: str) -> None:
    expect = f"expect: {{failure: {{worker: {worker}, job: job1, within: 6s}}, rounds: 1}}"
    ran = conduct(f"faults: [{{{fault}, {MID}}}]\n{expect}")
    assert ran.code == 0, ran.out
    assert words in ran.metrics["failure"]["reason"]
    assert 0.4 < ran.metrics["failure"]["after_s"] < 6


def test_an_expected_failure_that_does_not_come_is_missed(conduct) -> None:
    ran = conduct("expect: {failure: {worker: h2}}")
    assert ran.code == 1
    assert ran.metrics["reason"] == "expected failure.worker = h2, got nothing"


def test_survivors_finish_without_the_dead_and_say_so(conduct) -> None:
    ran = conduct(
        f"faults: [{{kind: worker_crash, worker: h3, {MID}}}]\nexpect: {{exact: true, lost: 1}}",
        "on_failure: survivors",
    )
    assert ran.code == 0, ran.out
    assert ran.metrics["lost_workers"] == ["h3"]
    assert ran.metrics["workers"]["0"]["sent"] > ran.metrics["workers"]["2"]["sent"] > 0
    assert "1 round was aborted and run again, without h3" in ran.out
    assert ran.metrics["links_as_predicted"] is None


@pytest.mark.parametrize(
    ("fault", "restarts"),
    [
        ("kind: worker_restart, worker: h3, for: 100ms", 1),
        ("kind: switch_restart, switch: s1, for: 50ms", 1),
        ("kind: switch_reprogram, switch: s1", 1),
        ("kind: worker_pause, worker: h1, for: 700ms", 1),
        ("kind: link_down, link: h2-s1, for: 1200ms", 2),
    ],
)
def test_a_restarted_round_is_exact(conduct, fault: str, restarts: int) -> None:
    ran = conduct(f"faults: [{{{fault}, {MID}}}]", "on_failure: restart")
    assert ran.code == 0, ran.out
    metrics = ran.metrics
    assert (metrics["exact"], metrics["rounds"], metrics["lost"]) == (True, 3, 0)
    assert metrics["restarts"] == restarts
    assert len(ran.events("round_broken_off")) == restarts
    assert max(metrics["allreduce"]["time_s"]["all"]) == metrics["allreduce"]["time_s"]["all"][1]


def test_survivors_of_a_switch_that_forgot_are_all(conduct) -> None:
    ran = conduct(
        f"faults: [{{kind: switch_reprogram, switch: s1, {MID}}}]", "on_failure: survivors"
    )
    assert (ran.code, ran.metrics["lost"], ran.metrics["restarts"]) == (0, 0, 1)


def test_there_is_an_end_to_restarts(conduct) -> None:
    ran = conduct(
        f"faults: [{{kind: link_down, link: h2-s1, {MID}}}]", "on_failure: restart, restarts: 2"
    )
    assert ran.code == 1
    assert ran.metrics["failure"]["reason"].endswith("; the job gave up after 2 restarts")
    assert ran.metrics["failure"]["worker"] == "h2"


@pytest.mark.parametrize(("times", "code"), [(1, 0), (2, 1)])
def test_no_session_begins_where_a_switch_would_take_its_tags_for_old_ones(
    conduct, monkeypatch, times: int, code: int
) -> None:
    """Sessions 2^30 apart: the third would begin 2^31 ahead of what cells may hold."""
    monkeypatch.setattr("agglab.testbed.systems.summing.sessions.SESSION_BITS", 30)
    faults = [
        f"{{kind: switch_reprogram, switch: s1, at_chunk: {{round: {n}, chunk: 200}}}}"
        for n in range(times)
    ]
    ran = conduct(f"faults: [{', '.join(faults)}]", "on_failure: restart")
    assert ran.code == code, ran.out
    if code:
        assert "no tags are left for a new session" in ran.metrics["failure"]["reason"]


def test_a_worker_that_stays_dead_cannot_be_restarted(conduct) -> None:
    ran = conduct(f"faults: [{{kind: worker_crash, worker: h3, {MID}}}]", "on_failure: restart")
    assert ran.code == 1
    assert ran.metrics["failure"]["worker"] == "h3"


def test_what_passes_by_itself_needs_no_restart(conduct) -> None:
    ran = conduct(
        f"""
faults:
- {{kind: link_down, link: h2-s1, for: 100ms, {MID}}}
- {{kind: worker_pause, worker: h1, at: 50ms, for: 100ms}}
- {{kind: worker_slow, worker: h3, at: 100ms, for: 100ms, delay: 1ms}}
- {{kind: rate, link: "h1->s1", rate: 2mbit, at: 10ms, for: 50ms}}
- {{kind: corrupt, link: h4-s1, probability: 5%, at: 0s, for: 200ms}}
expect: {{exact: true, restarts: 0, rounds: 3, totals.malformed: {{min: 1}}}}
"""
    )
    assert ran.code == 0, ran.out
    began = [(event["fault"], event["target"]) for event in ran.events("fault")]
    assert sorted(began) == [
        ("corrupt", "h4-s1"),
        ("link_down", "h2-s1"),
        ("rate", "h1-s1"),
        ("worker_pause", "h1"),
        ("worker_slow", "h3"),
    ]
    assert len(ran.events("fault_end")) == 5
    assert "link_down h2-s1" in (ran.folder / "report.html").read_text()


def test_a_fault_that_never_begins_is_a_failure(conduct) -> None:
    ran = conduct("faults: [{kind: worker_pause, worker: h1, at: 59s, for: 1s}]")
    assert ran.code == 1
    assert (
        ran.metrics["reason"]
        == "worker_pause h1 at 59 s never began, because the run was already over"
    )


def test_the_same_seed_gives_the_same_events(conduct) -> None:
    text = "faults: [{kind: loss, link: h*, probability: 3%}]"
    first = conduct(text)
    hashes = [first.json("manifest.json")["events_sha256"], conduct(text).json("manifest.json")]
    assert hashes[0] == hashes[1]["events_sha256"] and len(hashes[0]) == 64
    other = conduct(text, base=BASE + "seed: 2\n")
    assert other.json("manifest.json")["events_sha256"] != hashes[0]


@pytest.mark.parametrize("ended", [0, 1])
def test_a_broken_job_leaves_the_other_alone(conduct, ended: int) -> None:
    place = MID.replace("round: 1", f"round: {ended}").replace("{", "{job: b, ")
    ran = conduct(
        f"""
jobs: [{{name: a, workers: "h[12]"}}, {{name: b, workers: "h[34]"}}]
faults: [{{kind: worker_crash, worker: h3, {place}}}]
expect: {{failure: {{job: b, worker: h3, within: 1s}}, jobs.a.rounds: 3, jobs.a.exact: true}}
"""
    )
    assert ran.code == 0, ran.out
    assert ran.metrics["jobs"]["b"]["rounds"] == ended
    assert ran.metrics["jobs"]["a"]["completion_s"] > 0
    assert (ran.metrics["completion_s"] is None) == (ended == 0), "without a round, no mean"
    assert re.search(r" of b; slot .* \(faults: ", ran.metrics["failure"]["reason"])


def test_jobs_come_and_go_and_divide_the_slots(conduct) -> None:
    ran = conduct(
        """
jobs:
- {name: long}
- {name: late, workers: [h2, h1], start: 60ms, workload: {rounds: 2, dtype: float32}}
- {name: brief, workers: h3, start: 60ms, end: 100ms, share: 2, workload: {rounds: 1000}}
expect: {exact: true, jobs.long.rounds: 8, jobs.late.rounds: 2, jobs.brief.rounds: {max: 999}}
""",
        base=BASE.replace("slots: 16", "slots: 16, partition: dynamic"),
        rounds=8,
    )
    assert ran.code == 0, ran.out
    ranges = [(event["of"], tuple(event["range"])) for event in ran.events("slots")]
    assert ranges[0] == ("long", (0, 16))
    assert ranges[-1] == ("long", (0, 16)), "it has all of them again in the end"
    assert ("long", (0, 4)) in ranges
    assert {name for name, _ in ranges} == {"long", "late", "brief"}
    ends = {event["of"]: event["t_ns"] for event in ran.events("job_end")}
    assert ends["brief"] < ends["late"] < ends["long"]
    (started,) = ran.events("started")
    late = [event["end_ns"] for event in ran.events("round") if event["job"] == 2]
    taken_s = (max(late) - started["at_ns"]) / 1e9 - 0.060
    jobs = ran.metrics["jobs"]
    assert jobs["late"]["completion_s"] == pytest.approx(taken_s), "the wait for slots included"
    assert jobs["late"]["completion_s"] > sum(jobs["late"]["allreduce"]["time_s"]["all"]) + 0.001
    assert ran.metrics["completion_s"] == pytest.approx(
        sum(job["completion_s"] for job in jobs.values()) / 3
    )


def test_two_equal_jobs_get_half_each(conduct) -> None:
    ran = conduct(
        """
jobs: [{name: a, workers: "h[12]"}, {name: b, workers: "h[34]"}]
expect: {exact: true, fairness.jain: {min: 0.99}, links_as_predicted: true}
""",
        base=BASE.replace("rate: 10mbit", "rate: 10mbit, loss: 1%"),
        rounds=12,
    )
    assert ran.code == 0, ran.out
    shares = ran.metrics["fairness"]["shares"]
    assert shares["a"] == pytest.approx(0.5, rel=0.1)
    packets = ran.metrics["switches"]["s1"]["jobs"]
    assert packets["a"]["complete"] == packets["b"]["complete"] == 12 * (1 + 500)


def test_fairness_is_relative_to_the_shares_that_jobs_were_promised(conduct) -> None:
    """Jain's index by hand, of jobs whose shares, sizes and rates all differ."""
    ran = conduct(
        """
jobs:
- {name: a, workers: "h[12]", share: 3}
- {name: b, workers: "h[34]", workload: {elements: 100}}
""",
        rounds=4,
    )
    rates = {name: job["elements_per_s"] for name, job in ran.metrics["jobs"].items()}
    assert rates["a"] > 1.2 * rates["b"], "equal rates would show nothing"
    fairness = ran.metrics["fairness"]
    a, b = rates["a"] / 3, rates["b"] / 1
    assert fairness["jain"] == pytest.approx((a + b) ** 2 / (2 * (a * a + b * b)))
    assert fairness["shares"]["a"] == pytest.approx(rates["a"] / (rates["a"] + rates["b"]))


FOREIGN = """
jobs: [{name: other, workers: h3}, {name: victim, workers: "h[12]"}]
faults:
- {kind: attack, host: h4, frames: 700, for: 100ms}
- {kind: attack, host: h3, frames: 700, for: 100ms}
expect: {exact: true}
"""


def test_no_foreign_frame_changes_a_sum_and_each_is_counted_by_kind(conduct) -> None:
    ran = conduct(FOREIGN)
    assert ran.code == 0, ran.out
    workers = ran.metrics["jobs"]["victim"]["workers"]
    assert sum(worker["malformed"] for worker in workers.values()) == 0
    assert all(worker["network_errors"] for worker in workers.values())
    assert set(ran.metrics["attack"]) == set(KINDS)
    refused: Counter[str] = Counter()
    for kind, count in ran.metrics["attack"].items():
        refused[KINDS[kind].counted] += count
    counted = ran.metrics["switches"]["s1"]["packets"]
    assert {kind: counted[kind] for kind in refused} == refused


def test_a_tree_with_loss_everywhere_carries_what_was_predicted(conduct) -> None:
    base = BASE.replace("{workers: 4}", "{kind: fat_tree, k: 2, workers: 2}")
    ran = conduct(
        "expect: {exact: true, links_as_predicted: true}",
        "",
        base.replace("rate: 10mbit", "rate: 10mbit, loss: 3%"),
    )
    assert ran.code == 0, ran.out
    links = ran.metrics["links"]
    assert links["s1-s3"]["s1->s3"]["predicted_bytes"] == 3 * (90 + 500 * (54 + 64))


def test_a_worker_that_dies_while_others_recover_is_recovered_too(conduct) -> None:
    ran = conduct(
        f"""
faults:
- {{kind: worker_restart, worker: h3, {MID}, for: 200ms}}
- {{kind: worker_restart, worker: h2, {MID}, for: 100ms}}
- {{kind: switch_reprogram, switch: s1, {MID}}}
""",
        "on_failure: restart",
    )
    assert ran.code == 0, ran.out
    assert (ran.metrics["exact"], ran.metrics["rounds"], ran.metrics["lost"]) == (True, 3, 0)
