"""Members, shares, and what switches are filled with when they change."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_parts import Parts, resolved

from agglab.testbed.base.worker_id import WorkerId

TWO = "jobs: [{name: a, workers: [h1, h2]}, {name: b, workers: [h3, h4]}]"


def filled(parts: Parts) -> list[str]:
    """Switches that were filled since it was last asked."""
    return [asked[1] for asked in parts.backend.taken() if asked[0] == "write_entries"]


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    parts = Parts(resolved(tmp_path))
    parts.roster.fill_switches()
    assert filled(parts) == ["s1"]
    return parts


def test_switches_are_filled_again_only_for_something_else(parts: Parts) -> None:
    parts.roster.fill_switches()
    parts.roster.leave_out(parts.job, [])
    parts.roster.fill_switches()
    assert filled(parts) == []
    parts.roster.leave_out(parts.job, [2])
    parts.roster.fill_switches()
    assert filled(parts) == ["s1"]
    assert parts.roster.active(parts.job).members == (0, 1, 3)


def test_a_switch_that_forgot_gets_what_all_jobs_need_now(parts: Parts) -> None:
    parts.roster.leave_out(parts.job, [2])
    parts.roster.fill_switches()
    parts.table_writer.write_again("s1")
    first, again = [asked for asked in parts.backend.taken() if asked[0] == "write_entries"]
    assert first == again and first[2].tables


def test_an_agent_is_started_again_with_the_configuration_of_the_whole_job(parts: Parts) -> None:
    parts.roster.leave_out(parts.job, [2])
    assert [agent.rank for agent in parts.roster.agents(parts.job)] == [0, 1, 3]
    configuration = parts.roster.configuration(WorkerId(1, "h3"))
    assert (configuration["rank"], configuration["workers"]) == (2, 4)


def test_a_share_is_told_once_and_counts_from_the_next_session_on(tmp_path: Path) -> None:
    parts = Parts(resolved(tmp_path, TWO))
    roster, (first, second) = parts.roster, parts.resolved.jobs
    roster.join(first)
    share = roster.take_share(first)
    assert share is not None and roster.take_share(first) == share
    assert [told["of"] for told in parts.told] == ["a"]
    roster.begin_session(first, share)
    assert roster.active(first).share == share
    roster.join(second)
    assert roster.take_share(second) is not None
    assert [told["of"] for told in parts.told] == ["a", "b"]
    roster.leave(first)
    assert parts.told[-1] == {"event": "job_end", "of": "a"}


def test_a_job_that_leaves_takes_its_entries_with_it(tmp_path: Path) -> None:
    """Only its own: what the other job needs stays."""
    parts = Parts(resolved(tmp_path, TWO, switch="lanes: 16, slots: 16, partition: dynamic"))
    first, second = parts.resolved.jobs
    for job in (first, second):
        parts.roster.join(job)
    for job in (first, second):
        share = parts.roster.take_share(job)
        assert share is not None
        parts.roster.begin_session(job, share)
    alone, both = (len(asked[2].tables) for asked in parts.backend.taken())
    parts.roster.leave(second)
    ((_, switch, left),) = parts.backend.taken()
    assert (switch, len(left.tables)) == ("s1", alone) and 0 < alone < both
