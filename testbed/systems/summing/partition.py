"""Divides the slots among a scenario's jobs. In a static partition, finds which slots belong to
which job, and says what is wrong with a division that is impossible."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from agglab.testbed.schema.jobs import Finding, stated
from agglab.testbed.schema.network_sections import SLOTS_MAX
from agglab.testbed.schema.scenario import JobSection, Scenario

Range = tuple[int, int]
"""The first slot, and the number of slots."""


def ranges(scenario: Scenario) -> list[Range]:
    """Returns each job's slots in a checked scenario. In a dynamic partition, each job has all
    slots."""
    found, wrong = partition(scenario, stated(scenario))
    assert not wrong, wrong
    return [found[i] for i in range(len(found))]


def slot_problems(
    scenario: Scenario, sure: Collection[int], total_known: bool
) -> Iterator[Finding]:
    """Yields why the slots cannot be divided as the scenario states. sure: the jobs whose `slots`,
    `first_slot` and `share` were read without error. total_known: whether `switch.slots` was read
    without error. If one of these values is not known, only the values of the other jobs are
    checked."""
    jobs = stated(scenario)
    if total_known and len(sure) == len(jobs):
        yield from partition(scenario, jobs)[1]
    elif scenario.switch.partition == "dynamic":
        yield from _refused_places(jobs)
    else:
        total = scenario.switch.slots if total_known else SLOTS_MAX
        fixed = {i: jobs[i].slots or 0 for i in sure if jobs[i].first_slot is not None}
        counts = {i: slots for i, slots in fixed.items() if slots}
        yield from _placed(jobs, counts, total)[1]


def windows_too_large(scenario: Scenario) -> Iterator[Finding]:
    """Yields the problems of windows that are too large. Only jobs whose slots can be divided are
    checked."""
    ranges, wrong = partition(scenario, scenario.jobs)
    for i, job in enumerate(scenario.jobs if not wrong else ()):
        window, slots = job.workload.window or 0, ranges[i][1]
        if window > slots and window != scenario.workload.window:
            what = f"a window of {window} chunks is larger than the number of the job's slots"
            yield f"jobs[{i}].workload.window", what, f"at most {slots}"


def partition(
    scenario: Scenario, jobs: Sequence[JobSection]
) -> tuple[dict[int, Range], list[Finding]]:
    """Returns each job's first slot and number of slots, and what is wrong if the division is
    impossible."""
    total = scenario.switch.slots
    if len(jobs) > total:
        what = f"{len(jobs)} jobs need more slots than the switch has"
        return {}, [("jobs", what, f"at most switch.slots, {total}")]
    if scenario.switch.partition == "dynamic":
        return dict.fromkeys(range(len(jobs)), (0, total)), list(_refused_places(jobs))
    fixed = sum(job.slots or 0 for job in jobs)
    open_jobs = [i for i, job in enumerate(jobs) if job.slots is None]
    if fixed + len(open_jobs) > total:
        i = max(i for i, job in enumerate(jobs) if job.slots)
        what = f"the jobs' slots together, {fixed + len(open_jobs)}, are more than the switch has"
        return {}, [(f"jobs[{i}].slots", what, f"together at most switch.slots, {total}")]
    parts = divide(total - fixed, [jobs[i].share for i in open_jobs]) if open_jobs else []
    left = dict(zip(open_jobs, parts, strict=True))
    counts = {i: job.slots or left[i] for i, job in enumerate(jobs)}
    return _placed(jobs, counts, total)


def _refused_places(jobs: Sequence[JobSection]) -> Iterator[Finding]:
    for i, job in enumerate(jobs):
        for name in ("slots", "first_slot"):
            if getattr(job, name) is not None:
                what = "has no meaning where switch.partition is dynamic"
                yield f"jobs[{i}].{name}", what, "share"


def _placed(
    jobs: Sequence[JobSection], counts: Mapping[int, int], total: int
) -> tuple[dict[int, Range], list[Finding]]:
    """Returns the places of jobs, and what is wrong with them. Jobs that state their first slot are
    placed there. Each other job is placed in the first free gap that is large enough."""
    taken: list[tuple[int, int, int]] = []
    places: dict[int, Range] = {}
    wrong: list[Finding] = []
    for i in sorted(counts, key=lambda i: (jobs[i].first_slot is None, i)):
        first, count = jobs[i].first_slot, counts[i]
        if first is None:
            if wrong:
                break  # which gaps there are is not known
            first = _first_gap(taken, count)
            found = [_no_gap(i, count)] if first + count > total else []
        else:
            found = list(_place_problems(i, first, count, taken, total))
        if not found:
            taken.append((first, first + count, i))
        wrong += found
        places[i] = (first, count)
    return places, wrong


def _no_gap(i: int, count: int) -> Finding:
    what = f"there are not {count} consecutive free slots left"
    return f"jobs[{i}]", what, "another `first_slot` for the jobs that have one"


def _first_gap(taken: Sequence[tuple[int, int, int]], count: int) -> int:
    first = 0
    for start, end, _ in sorted(taken):
        if first + count <= start:
            break
        first = max(first, end)
    return first


def _place_problems(
    i: int, first: int, count: int, taken: Sequence[tuple[int, int, int]], total: int
) -> Iterator[Finding]:
    path = f"jobs[{i}].first_slot"
    if first + count > total:
        what = f"slots {first} to {first + count - 1} are beyond the switch's"
        yield path, what, f"slots from 0 to {total - 1}"
        return
    for start, end, other in taken:
        if first < end and start < first + count:
            what = f"slots {first} to {first + count - 1} overlap those of jobs[{other}]"
            yield path, what, f"slots outside {start} to {end - 1}"
            return


def divide(slots: int, shares: Sequence[int]) -> list[int]:
    """Returns how many of the slots each job has, in proportion to the shares but at least one. All
    slots are divided, and the remainder goes to the first jobs. There must be at least as many
    slots as shares."""
    assert len(shares) <= slots
    total = sum(shares)
    parts = [max(1, slots * share // total) for share in shares]
    while sum(parts) > slots:
        parts[parts.index(max(parts))] -= 1
    for i in range(slots - sum(parts)):
        parts[i % len(parts)] += 1
    return parts
