"""The keys of a scenario that are NetRPC's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agglab.hosts.workloads import Calls
from agglab.hosts.workloads.calls import APPLICATIONS
from agglab.systems.netrpc.service import load
from agglab.testbed.schema.jobs import Finding, stated
from agglab.testbed.schema.key import key
from agglab.testbed.schema.kinds import Text, Whole
from agglab.testbed.schema.scenario import JobSection, Scenario

NAME = "netrpc"
ALL_REDUCE = "allreduce"
PROVIDED = (ALL_REDUCE, *APPLICATIONS)


@dataclass(frozen=True)
class NetRpcKeys:
    """The keys of the section `netrpc`."""

    service: str = key(
        "service",
        Text("a name, or path/to/file.py:Class", r"(|[a-z_]+|[^\x00\n:]+:[A-Za-z_]\w*)", 1000),
        "",
        "the service that is called: one that comes with Agglab (`allreduce`, `wordcount`, "
        "`lock`), your own, or the workload's if absent",
    )
    cells: int = key(
        "cells",
        Whole(16, 65520),
        1024,
        "number of entries of a map that a switch holds for each of a packet's 32 pairs, for "
        "16 jobs together",
    )


def own(scenario: Scenario) -> NetRpcKeys:
    """Returns the section `netrpc` of a scenario, or its defaults."""
    found = dict(scenario.options).get(NAME)
    return found if isinstance(found, NetRpcKeys) else NetRpcKeys()


def usual(job: JobSection) -> str:
    """Returns the service that implements the job's workload."""
    return job.workload.application if job.workload.kind == Calls.kind else ALL_REDUCE


def service(scenario: Scenario, job: JobSection) -> str:
    """Returns the service that the scenario names, or the one that implements the job's
    workload."""
    return own(scenario).service or usual(job)


def maps(scenario: Scenario, job: JobSection) -> bool:
    """Returns whether the job's service has keys that need entries; false for a service that cannot
    be loaded."""
    try:
        return load(service(scenario, job)).maps()
    except Exception:  # `services` tells
        return False


def services(scenario: Scenario) -> Iterator[Finding]:
    """Yields what is wrong with the service that a scenario names."""
    named = own(scenario).service
    if not named:
        return
    try:
        load(named)
    except Exception as error:  # whatever a user's module does when it is imported
        yield (
            "netrpc.service",
            f"{type(error).__name__}: {error}",
            "a service (systems/netrpc/README.md)",
        )
        return
    for job in stated(scenario):
        if named in PROVIDED and named != usual(job):
            what = f"{named} is not the service that the workload calls"
            yield "netrpc.service", what, f"{usual(job)}, or no `service`"
