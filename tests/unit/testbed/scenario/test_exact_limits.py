"""Each limit that depends on other keys: its last value is accepted, and the next one is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from agglab.testbed.scenario import ScenarioError, load

JOB = "{{name: j{n}, workers: [h1, h2]}}"
JOBS_WITH_ENDS = (
    "jobs: [{name: a, workers: [h1], end: 2s}, {name: b, workers: [h2], end: 3s}]\n"
    "workload: {rounds: 100}\n"
)
LINK_DOWN = "faults: [{{kind: link_down, link: h1-s1, {key}}}]\n"
PERIODIC = "faults: [{{kind: periodic, link: h1-s1, every: 3, count: {n}}}]"


def jobs(count: int) -> str:
    return "jobs: [" + ", ".join(JOB.format(n=n) for n in range(count)) + "]"


def contenders(count: int) -> str:
    each = [f"c{n}: {{workload: {{window: {n + 1}}}}}" for n in range(count)]
    return f"compare: {{{', '.join(each)}}}"


LIMITS = {
    "queue": ("links: {mtu: 9000, queue: 9014B}", "links: {mtu: 9000, queue: 9013B}"),
    "queue of an override": (
        "links: {mtu: 9000, overrides: [{match: h1-s1, queue: 9014B}]}",
        "links: {mtu: 9000, overrides: [{match: h1-s1, queue: 9013B}]}",
    ),
    "hosts": (
        "topology: {kind: two_tier, racks: 64, workers: 16}\nworkload: {elements: 10}",
        "topology: {kind: two_tier, racks: 32, workers: 33}\nworkload: {elements: 10}",
    ),
    "jobs": (jobs(16), jobs(17)),
    "frames of a period": (PERIODIC.format(n=3), PERIODIC.format(n=4)),
    "chunk": (
        LINK_DOWN.format(key="at_chunk: {chunk: 2739}"),
        LINK_DOWN.format(key="at_chunk: {chunk: 2740}"),
    ),
    "round": (
        LINK_DOWN.format(key="at_chunk: {chunk: 1, round: 4}") + "workload: {rounds: 5}",
        LINK_DOWN.format(key="at_chunk: {chunk: 1, round: 5}") + "workload: {rounds: 5}",
    ),
    "end of every job": (
        JOBS_WITH_ENDS + LINK_DOWN.format(key="at: 3s"),
        JOBS_WITH_ENDS + LINK_DOWN.format(key="at: 3001ms"),
    ),
    "end of the run": (
        LINK_DOWN.format(key="at: 20s") + "timeouts: {round: 4s}\nworkload: {rounds: 5}",
        LINK_DOWN.format(key="at: 20001ms") + "timeouts: {round: 4s}\nworkload: {rounds: 5}",
    ),
    "end of a fault": (
        LINK_DOWN.format(key="at: 100ms, until: 101ms"),
        LINK_DOWN.format(key="at: 100ms, until: 100ms"),
    ),
    "rounds to warm up": (
        "workload: {rounds: 5, warmup: 4}",
        "workload: {rounds: 5, warmup: 5}",
    ),
    "first timeout": (
        "workload: {give_up: 1s, first_timeout: 999ms}",
        "workload: {give_up: 1s, first_timeout: 1s}",
    ),
    "range of an expectation": (
        "expect: {link_bound_ratio: {min: 2, max: 2}}",
        "expect: {link_bound_ratio: {min: 2, max: 1.999}}",
    ),
    "most contenders": (contenders(16), contenders(17)),
    "fewest contenders": (contenders(2), contenders(1)),
    "range of a sweep": (
        "sweep: {seed: {from: 1, to: 2, step: 1}}",
        "sweep: {seed: {from: 1, to: 1, step: 1}}",
    ),
    "end of a job": (
        "jobs: [{name: a, workers: [h1, h2], start: 1s, end: 1001ms}]",
        "jobs: [{name: a, workers: [h1, h2], start: 1s, end: 1s}]",
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_the_last_value_is_accepted_and_the_next_is_not(name: str, tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    last, next_one = (f"name: s\n{text}\n" for text in LIMITS[name])
    path.write_text(last)
    assert load(path).points
    path.write_text(next_one)
    with pytest.raises(ScenarioError) as refused:
        load(path)
    assert len(refused.value.problems) == 1, "nothing else is wrong"


def test_a_job_without_an_end_lets_faults_begin_after_the_ends_of_others(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    endless = JOBS_WITH_ENDS.replace(", end: 3s", "")
    path.write_text(f"name: s\n{endless}{LINK_DOWN.format(key='at: 9s')}")
    assert load(path).points
