"""Finds sums that switches owed a job's servers and did not make. A server that lacks a sum asks
the workers for their values, so that every result is right all the same."""

from __future__ import annotations

from collections.abc import Iterator

from agglab.testbed.judge.link_bytes import as_far_as_it_came, counts_of_servers
from agglab.testbed.run.measurements import Measurements
from agglab.testbed.scenario import ResolvedScenario
from agglab.testbed.systems.base import ActiveJob

COMPLETE = "complete"
"""The key in `System.counters` of the counter of complete sums."""


def missing_sums(
    resolved: ResolvedScenario, measured: Measurements, losses: int
) -> Iterator[tuple[str, dict[str, float]]]:
    """Yields a sentence and numbers for each job of which switches made fewer sums than they owed.
    losses: the frames lost in transit. Each of them can have cost one sum."""
    sums_owed = resolved.system.switch_work(resolved).sums_owed
    if sums_owed is None:
        return
    for result in measured.outcome.jobs:
        job = as_far_as_it_came(resolved, result)
        histories = [verdict.history for verdict in result.verdicts]
        owed = sums_owed(job, histories, counts_of_servers(result))
        made = _made(measured, job)
        if made is None or owed - made <= losses:
            continue
        text = (
            f"switches made only {made} of the {owed} sums that they owed the servers of "
            f"{result.job.name}, although {losses} frames were lost"
        )
        yield text, {"owed_sums": owed, "made_sums": made, "lost": losses}


def _made(measured: Measurements, job: ActiveJob) -> int | None:
    """Returns how many sums of the job all switches made, by their own counters; None if a program
    does not count them."""
    if any(COMPLETE not in kinds for kinds in measured.counters.values()):
        return None
    cells = (kinds[COMPLETE].get(job.index, (0, 0)) for kinds in measured.counters.values())
    return sum(packets for packets, _ in cells)
