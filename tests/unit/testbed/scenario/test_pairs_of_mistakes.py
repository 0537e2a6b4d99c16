"""Two mistakes in two sections are both told, whichever sections these are."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import pytest

from agglab.testbed.scenario import Problem, ScenarioError, Where, load
from agglab.testbed.scenario.sweep import together


@dataclass(frozen=True)
class Mistake:
    """text: of a whole section. path: what the line about it begins with. needs: whether the
    network's names decide that it is one. breaks: whether it leaves these names unknown."""

    section: str
    text: str
    path: str
    needs: bool = False
    breaks: bool = False


MISTAKES = (
    Mistake("jobs", "jobs: [{nmae: a}]", "jobs[0].nmae"),
    Mistake("jobs", "jobs: [{share: 0}, {slots: 3}]", "jobs[0].share"),
    Mistake("jobs", "jobs: [{start: 2s, end: 1s}]", "jobs[0].end"),
    Mistake("jobs", "jobs: [{workers: h1}, {workers: x*}]", "jobs[1].workers", needs=True),
    Mistake("jobs", "jobs: [{slots: 7, first_slot: 0}, {slots: 2, first_slot: 3}]", "jobs[1].f"),
    Mistake("jobs", "jobs: none", "jobs"),
    Mistake("links", "links: {overrides: [{math: h1-s1}]}", "links.overrides[0].math"),
    Mistake("links", "links: {overrides: [{rate: 3}]}", "links.overrides[0].rate"),
    Mistake("links", "links: {overrides: [{match: x9}]}", "links.overrides[0].match", needs=True),
    Mistake("links", "links: {overrides: [{queue: 2kB}], mtu: 4000}", "links.overrides[0].queue"),
    Mistake("links", "links: {loss: 3}", "links.loss"),
    Mistake("faults", "faults: [{kind: los}]", "faults[0].kind"),
    Mistake("faults", "faults: [{kind: worker_pause}]", "faults[0]"),
    Mistake("faults", "faults: [{kind: link_down, link: x9-s1}]", "faults[0].link", needs=True),
    Mistake("faults", "faults: [{kind: worker_crash, worker: x9}]", "faults[0].worker", needs=True),
    Mistake("faults", "faults: [{kind: rate, link: '*', rate: 1kbps}]", "faults[0].rate"),
    Mistake("faults", "faults: [{kind: jitter, link: '*', jitter: 1us, every: 3}]", "faults[0].ev"),
    Mistake(
        "faults",
        "faults: [{kind: rate, link: '*', rate: 1mbit}, {kind: rate, link: '*', rate: 2mbit}]",
        "faults[1].at",
        needs=True,
    ),
    Mistake("expect", "expect: {exakt: true}", "expect.exakt"),
    Mistake("expect", "expect: {exact: 3}", "expect.exact"),
    Mistake(
        "expect", "expect: {switches.s99.cpu_s: {max: 1}}", "expect.switches.s99.cpu_s", needs=True
    ),
    Mistake("expect", "expect: {failure: {worker: x9}}", "expect.failure.worker", needs=True),
    Mistake("sweep", "sweep: {sede: [1, 2]}", "sweep.sede"),
    Mistake("sweep", "sweep: {timeouts.start: [1s, 2]}", "timeouts.start"),
    Mistake("topology", "topology: {wrokers: 3}", "topology.wrokers", breaks=True),
    Mistake("topology", "topology: {workers: 0}", "topology.workers", breaks=True),
    Mistake("topology", "topology: {racks: 3}", "topology.racks", breaks=True),
    Mistake("topology", "topology: {kind: fat_tree, k: 3}", "topology", breaks=True),
    Mistake("switch", "switch: {slots: 0}", "switch.slots"),
    Mistake("switch", "switch: {lanes: 2000}", "switch.lanes"),
    Mistake("switch", "switch: {program: none.p4}", "switch.program"),
    Mistake("workload", "workload: {window: 999}", "workload.window"),
    Mistake("workload", "workload: {dtype: int}", "workload.dtype"),
    Mistake("ps", "ps: {servres: h1}", "ps.servres"),
    Mistake("system", "system: swichml", "system"),
)
DEPENDENT = {"switch.slots", "workload.window"}
"""How large a window may be depends on the slots."""
PAIRS = [
    (one, other)
    for one, other in combinations(MISTAKES, 2)
    if one.section != other.section and {one.path, other.path} != DEPENDENT
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda each: each.text)
def test_alone_each_is_one_line(tmp_path: Path, mistake: Mistake) -> None:
    (found,) = paths(tmp_path, mistake.text)
    assert found.startswith(mistake.path)


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=lambda each: each.text)
def test_in_pairs_both_are_told(tmp_path: Path, one: Mistake, other: Mistake) -> None:
    found = paths(tmp_path, f"{one.text}\n{other.text}")
    unknown = one.breaks or other.breaks
    told = [each for each in (one, other) if not (each.needs and unknown)]
    assert len(found) == len(told), found
    assert all(any(path.startswith(each.path) for path in found) for each in told), found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("topology: {kind: fat_tree, workers: 0, k: 5}", ["topology.workers", "topology"]),
        ("topology: {kind: fat_tree, racks: 3, k: 5}", ["topology.racks", "topology"]),
        ("topology: {kind: custom, switches: [s1], links: [h1-s1, 3]}", ["topology.links[1]"]),
        (
            "jobs: [{workers: x*}]\nfaults: [{kind: worker_pause, worker: h2}]\n"
            "expect: {workers.1.sent: {min: 1}}",
            ["jobs[0].workers"],
        ),
        (
            "jobs: [{workers: [h1, {a: 1}]}]\nfaults: [{kind: worker_pause, worker: h2}]",
            ["jobs[0].workers[1]"],
        ),
        (
            "jobs: [{workers: x*}, {workers: h1}]\n"
            "faults: [{kind: worker_crash, worker: h1}, {kind: worker_crash, worker: h1, at: 1s}]",
            ["jobs[0].workers", "faults[1].at"],
        ),
        (
            "switch: {slots: 0, partition: dynamic}\njobs: [{slots: 3}]",
            ["switch.slots", "jobs[0].slots"],
        ),
    ],
)
def test_what_follows_from_a_mistake_is_not_told_and_all_else_is(
    tmp_path: Path, text: str, expected: list[str]
) -> None:
    assert paths(tmp_path, text) == expected


def test_a_sweep_tells_each_mistake_once(tmp_path: Path) -> None:
    """What no swept key decides as ever; of the others the first, with the points that have it."""
    file = tmp_path / "s.yaml"
    file.write_text(
        "sweep: {links.mtu: [1500, 1000, 9000], topology.workers: [3, 2, 0]}\n"
        "switch: {lanes: 366}\njobs: [{workers: h3}, {workers: x*}]\nseed: x"
    )
    with pytest.raises(ScenarioError) as caught:
        load(file)
    assert [(problem.path, problem.what) for problem in caught.value.problems] == [
        ("seed", "'x' is not a whole number"),
        (
            "switch.lanes",
            "366 lanes do not fit an MTU of 1500 bytes "
            "(with mtu 1500, workers 3, and also at 5 more points)",
        ),
        ("jobs[1].workers", "match no host (with mtu 1500, workers 3, and also at 5 more points)"),
        ("jobs[0].workers", "match no host (with mtu 1500, workers 2, and also at 2 more points)"),
        ("topology.workers", "'0' is too small"),
    ]


def test_two_mistakes_of_one_point_are_not_taken_for_one() -> None:
    first, second, third = (Problem(Where("s.yaml", 3), "faults[0]", what) for what in "abc")
    found = [((("seed", "1"),), [first]), ((("seed", "2"),), [second, third])]
    told = [problem.what for problem in together(found)]
    assert told == ["a (with seed 1, and also with seed 2)", "c (with seed 2)"]


def paths(folder: Path, text: str) -> list[str]:
    file = folder / "s.yaml"
    file.write_text(text)
    with pytest.raises(ScenarioError) as caught:
        load(file)
    return [problem.path for problem in caught.value.problems]
