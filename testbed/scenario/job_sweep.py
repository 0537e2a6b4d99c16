"""Sweeps the number of jobs: a point of the sweep has the first jobs of the section `jobs`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from agglab.testbed.base.problems import Problem
from agglab.testbed.schema.document import Items, Mapping, Node, Scalar, with_value
from agglab.testbed.schema.kinds import InvalidText, Whole
from agglab.testbed.schema.scenario import Axis

JOBS = "jobs"
"""The swept key whose values are numbers of jobs."""


def with_setting(root: Node, path: str, value: Scalar) -> Node:
    """Returns the document at a point of a sweep. path, value: a swept key and its value. If the
    value is not a possible number of jobs, which `problems` reports, all jobs remain."""
    if path != JOBS:
        return with_value(root, path, value)
    jobs = _jobs(root)
    try:
        count = Whole(1, len(jobs.items)).read(value)
    except InvalidText:
        return root
    # A problem of this number of jobs has the place of the swept value.
    return with_value(root, JOBS, replace(jobs, items=jobs.items[:count], where=value.where))


def problems(axes: Sequence[Axis], root: Node) -> Iterator[Problem]:
    """Yields the problems of swept numbers of jobs. root: the document, with all its jobs."""
    path, values = f"sweep.{JOBS}", [v for axis in axes if axis.path == JOBS for v in axis.values]
    jobs = _jobs(root)
    if values and not jobs.items:
        what = "there are no jobs, of which a point of the sweep could have the first ones"
        yield Problem(values[0].where, path, what, "a list of jobs in the section `jobs`")
        return
    kind = Whole(1, len(jobs.items))
    for value in values:
        try:
            kind.read(value)
        except InvalidText as error:
            yield Problem(value.where, path, str(error), f"{kind.allowed}, the jobs in `jobs`")


def _jobs(root: Node) -> Items:
    """Returns the section `jobs`; an empty list if there is none or if it is not a list."""
    jobs = root.get(JOBS) if isinstance(root, Mapping) else None
    return jobs if isinstance(jobs, Items) else Items((), root.where)
