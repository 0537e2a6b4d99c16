"""Declares a scenario's keys: names, kinds, defaults and meaning. The table in docs/scenarios.md is
written from it."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from agglab.testbed.schema import system_names
from agglab.testbed.schema.expectations import Expectation
from agglab.testbed.schema.fault_kinds import ChunkMark, FaultEntry
from agglab.testbed.schema.figure import Figure
from agglab.testbed.schema.key import JOB_NAME, Key, default_of, key, key_of, keys_list, yaml_name
from agglab.testbed.schema.kinds import (
    AutoOr,
    Choice,
    Flag,
    Pattern,
    Text,
    Whole,
    duration,
)
from agglab.testbed.schema.network_sections import SLOTS_MAX, Links, Switch, Topology
from agglab.testbed.schema.workload_section import Workload

NAME_MAX = 64
UNSWEPT = ("name", "description", "pause_at.job", "pause_at.round", "pause_at.chunk")


NAME = Text(
    "a name of letters, digits, '.', '_' and '-' that starts with a letter or digit",
    r"[A-Za-z0-9][A-Za-z0-9._-]*",
    NAME_MAX,
)


@dataclass(frozen=True)
class JobSection:
    """The section of one job in a scenario that has several."""

    name: str = key("name", JOB_NAME, "", "`job1`, `job2` ... if absent")
    workers: tuple[str, ...] = keys_list(
        "workers",
        Pattern(),
        "the workers' hosts, by name or pattern, in order of rank; all hosts if absent",
        ("*",),
    )
    slots: int | None = key(
        "slots",
        AutoOr(Whole(1, SLOTS_MAX), "what the other jobs leave, by `share`"),
        None,
        "number of its slots in a static partition",
    )
    first_slot: int | None = key(
        "first_slot",
        AutoOr(Whole(0, SLOTS_MAX - 1), "the first slot that is free"),
        None,
        "its first slot in a static partition",
    )
    share: int = key("share", Whole(1, 1000), 1, "its weight when slots are divided")
    start_s: float = key(
        "start",
        duration(),
        0.0,
        "when its first round starts, counted from the start of the first job's",
    )
    end_s: float | None = key(
        "end",
        AutoOr(duration(), "when all its rounds are done"),
        None,
        "when it stops: no round starts later",
    )
    workload: Workload = field(default=Workload(), metadata={"section": Workload})


@dataclass(frozen=True)
class Timeouts:
    start_s: float = key(
        "start",
        duration("1s"),
        30.0,
        "the longest wait until switches and agents are ready, without compiling",
    )
    round_s: float | None = key(
        "round",
        AutoOr(
            duration("1s"),
            "60 s, 20 times the link bound and `workload.give_up`; an hour for a training script",
        ),
        None,
        "the longest time of a round",
    )


@dataclass(frozen=True)
class Series:
    record: bool = key(
        "record",
        Flag(),
        True,
        "record over time what workers, links and switches do, and the latencies",
    )
    every_s: float | None = key(
        "every",
        AutoOr(duration("10us", "60s"), "10 ms"),
        None,
        "time between two samples; in a long run it grows",
    )


@dataclass(frozen=True)
class Axis:
    """One swept key of a sweep: the key's dotted path, and its values as written."""

    path: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Contender:
    """One contender: its name, and the keys in which it differs from the scenario, as a tree of
    `document`."""

    name: str
    own: Any


@dataclass(frozen=True)
class Scenario:
    """Everything that one run needs, as values only. `agglab.testbed.scenario.load` builds it."""

    name: str = key(
        "name",
        NAME,
        "",
        "name of the result folder; made from the file's name if absent",
    )
    description: str = key("description", Text(), "", "one line for lists and the report")
    seed: int = key("seed", Whole(0, 2**63 - 1), 1, "seed of all random choices of the run")
    system: str = key(
        "system",
        Text("the name of a system, or path/to/mine.py:Mine", r"[^\x00\n]+", 1000),
        system_names.default,
        "the way of aggregating; the path of a class of your own is relative to the scenario's "
        "folder or to the current folder",
    )
    backend: str = key(
        "backend",
        Choice(("mininet", "virtual")),
        "mininet",
        "real packets in network namespaces (`mininet`), or virtual time in one process "
        "(`virtual`: no root, exactly repeatable)",
    )
    conformance: bool = key(
        "conformance",
        Flag(),
        False,
        "`make conformance` runs the scenario with every compiler and target",
    )
    topology: Topology = field(default=Topology(), metadata={"section": Topology})
    links: Links = field(default=Links(), metadata={"section": Links})
    switch: Switch = field(default=Switch(), metadata={"section": Switch})
    workload: Workload = field(default=Workload(), metadata={"section": Workload})
    jobs: tuple[JobSection, ...] = field(default=(), metadata={"items": JobSection})
    faults: tuple[FaultEntry, ...] = field(default=(), metadata={"items": FaultEntry})
    pause_at: ChunkMark | None = field(default=None, metadata={"section": ChunkMark})
    """The point at which `agglab shell` opens its prompt."""
    timeouts: Timeouts = field(default=Timeouts(), metadata={"section": Timeouts})
    series: Series = field(default=Series(), metadata={"section": Series})
    expect: tuple[Expectation, ...] = field(default=(), metadata={"special": "expect"})
    sweep: tuple[Axis, ...] = field(default=(), metadata={"special": "sweep"})
    compare: tuple[Contender, ...] = field(default=(), metadata={"special": "compare"})
    figure: Figure | None = field(default=None, metadata={"section": Figure})
    options: tuple[tuple[str, Any], ...] = field(default=(), metadata={"special": "options"})
    """The sections of the systems: the name of each system, and an object of its class
    `options`."""


def swept_keys(sections: Mapping[str, type]) -> dict[str, Key]:
    """Returns the keys that a sweep may have, by dotted path. sections: the classes of systems'
    sections, by name."""
    whole = [(path, key) for path, key, _ in keys() if "[" not in path and path not in UNSWEPT]
    of_systems = (each for name, cls in sections.items() for each in keys(cls, f"{name}."))
    return {**dict(whole), **{path: key for path, key, _ in of_systems}}


@functools.cache
def keys(cls: type = Scenario, prefix: str = "") -> tuple[tuple[str, Key, Any], ...]:
    """Returns every scalar key as (dotted path, key, default), in the order of the file. `[]`
    stands for the items of a list."""
    return tuple(_keys(cls, prefix))


def _keys(cls: type, prefix: str) -> Iterator[tuple[str, Key, Any]]:
    for item in fields(cls):
        path = prefix + yaml_name(item)
        found = key_of(item)
        if found:
            yield path, found, default_of(item)
        elif "section" in item.metadata:
            yield from keys(item.metadata["section"], path + ".")
        elif "items" in item.metadata:
            yield from keys(item.metadata["items"], path + "[].")
