"""A scenario is resolved once, into numbers; what is resolved already stays as it is."""

from __future__ import annotations

import functools
import io
from collections import Counter
from pathlib import Path

import pytest

from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.scenario import find, graph, load, names, resolve, to_yaml
from agglab.topologies import kinds

JOBS = """
topology: {kind: two_tier, racks: 2, workers: 2}
links: {rate: 10mbit, overrides: [{match: h1-*, rate: 2mbit, queue: 3kB}]}
switch: {slots: 40, lanes: 100}
workload: {elements: 1000, dtype: int32, rounds: 1}
jobs: [{workers: "h[12]", slots: 7}, {name: other, workers: "h[34]", workload: {window: 3}}]
faults: [{kind: link_down, link: h1-*, at: 1ms, for: 1ms}]
"""


@pytest.mark.long(only=["million-values", "ten-thousand-workers"])
@pytest.mark.parametrize("name", names())
def test_what_is_resolved_resolves_to_itself(name: str) -> None:
    for point in load(find(name)).points:
        again = resolve(point.resolved.scenario, point.resolved.programs["s1"].path)
        assert again == point.resolved


def test_every_auto_is_a_number(tmp_path: Path) -> None:
    """At 2 Mbit/s 10 ms are 5 frames; 16 is the least window, and 7 slots hold 7."""
    resolved = loaded(tmp_path, JOBS)
    assert (resolved.lanes, resolved.slots, resolved.window) == (100, 40, 16)
    first, other = resolved.jobs
    assert (first.name, first.window, first.first_slot, first.slots) == ("job1", 7, 0, 7)
    assert (other.name, other.window, other.first_slot, other.slots) == ("other", 3, 7, 33)
    assert resolved.programs["s1"].parameters == {"LANES": 100, "SLOTS": 40}
    assert [fault.number for fault in resolved.faults] == [0]
    assert resolved.graph.link("h1-s1").a_to_b.rate_bps == 2_000_000


def test_a_number_that_the_system_does_not_have_is_0_and_not_written(tmp_path: Path) -> None:
    resolved = loaded(tmp_path, "system: ring\njobs: [{workers: 'h[12]'}]")
    (job,) = resolved.jobs
    assert (job.first_slot, job.slots) == (0, 0)
    assert job.window == resolved.window > 0
    assert "slot" not in to_yaml(resolved)


@pytest.mark.long
def test_a_run_builds_its_network_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: Counter[str] = Counter()

    def counted(kind: str):
        build = kinds.KINDS[kind]

        @functools.wraps(build)
        def count_and_build(**numbers):
            built.update([kind])
            return build(**numbers)

        return count_and_build

    for kind in kinds.KINDS:
        monkeypatch.setitem(kinds.KINDS, kind, counted(kind))
    graph.bare.cache_clear()  # other tests may have built the same network
    path = tmp_path / "once.yaml"
    path.write_text("backend: virtual\n" + JOBS)
    assert run(load(path), tmp_path, [], io.StringIO()) == 0
    assert built == {"two_tier": 1}


def loaded(tmp_path: Path, text: str):
    path = tmp_path / "s.yaml"
    path.write_text(text)
    return load(path).points[0].resolved
