"""A scenario's keys: names, kinds, defaults and meaning. docs/scenarios.md follows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import Field, dataclass, field, fields
from typing import Any

from testbed.scenario.expectations import Expectation
from testbed.scenario.kinds import (
    AutoOr,
    Choice,
    Flag,
    Fraction,
    Kind,
    Pattern,
    Text,
    Whole,
    duration,
    rate,
    size,
)

WORKERS_MAX = 64  # switchml.p4's bitmap of workers is bit<64>
LANES_MAX = 2240  # a 9000-byte packet, and switchml.p4's widest
SLOTS_MAX = 32_768  # (slot, set) is an index of 16 bits
MTU_MAX = 9000


@dataclass(frozen=True)
class Key:
    """One key of one section."""

    name: str
    kind: Kind
    doc: str


def key(name: str, kind: Kind, default: Any, doc: str) -> Any:
    """A dataclass field that is read from the YAML key `name`; the default is a value, not text."""
    return field(default=default, metadata={"key": Key(name, kind, doc)})


@dataclass(frozen=True)
class Topology:
    kind: str = key(
        "kind", Choice(("rack",)), "rack", "the graph: `rack` is one switch, a link to each worker"
    )
    workers: int = key("workers", Whole(1, WORKERS_MAX), 4, "hosts, each with one worker agent")


@dataclass(frozen=True)
class LinkOverride:
    """Other values for the links whose name matches; later entries win over earlier ones."""

    match: str = key(
        "match", Pattern(), "*", "which links: a name such as `h1-s1`, or a shell pattern"
    )
    rate_bps: int | None = key("rate", rate(), None, "instead of `links.rate`")
    loss: float | None = key("loss", Fraction(), None, "instead of `links.loss`")
    delay_s: float | None = key("delay", duration(high="10s"), None, "instead of `links.delay`")


@dataclass(frozen=True)
class Links:
    rate_bps: int = key(
        "rate", rate(), 100_000_000, "bits per second in each direction, Ethernet headers counted"
    )
    delay_s: float = key(
        "delay", duration(high="10s"), 0.0, "one way; needs netem, which not every kernel has"
    )
    loss: float = key(
        "loss",
        Fraction(),
        0.0,
        "chance that a packet is dropped, in each direction; seeded by `seed`",
    )
    mtu_bytes: int = key("mtu", Whole(576, MTU_MAX), 1500, "largest IP packet in bytes")
    queue_bytes: int | None = key(
        "queue",
        AutoOr(size(low="2kB"), "1000 packets, or twice the window if that is more"),
        None,
        "bytes that wait in front of a link before the next packet is dropped",
    )
    overrides: tuple[LinkOverride, ...] = field(default=(), metadata={"items": LinkOverride})


@dataclass(frozen=True)
class Switch:
    target: str = key("target", Choice(("native",)), "native", "what runs the P4 program")
    compiler: str = key(
        "compiler",
        Choice(("agglab", "p4c")),
        "agglab",
        "`p4c` calls p4c-bm2-ss, where that is installed",
    )
    program: str = key(
        "program",
        Text("a name from p4/ or a path to a .p4 file", r"[^\x00\n]+", 1000),
        "switchml",
        "a name from p4/, or a path from the scenario's folder or from where you are",
    )
    lanes: int | None = key(
        "lanes",
        AutoOr(Whole(1, LANES_MAX), "as many as the MTU holds"),
        None,
        "32-bit values a packet carries",
    )
    slots: int = key("slots", Whole(1, SLOTS_MAX), 128, "chunks the switch sums at a time")
    pcap: bool = key("pcap", Flag(), False, "record every packet of every switch port")


@dataclass(frozen=True)
class Workload:
    kind: str = key("kind", Choice(("allreduce",)), "allreduce", "what the workers do")
    elements: int = key(
        "elements", Whole(1, 1_000_000_000), 1_000_000, "values in the tensor of each worker"
    )
    dtype: str = key(
        "dtype", Choice(("float32", "int32")), "float32", "their type; int32 is summed exactly"
    )
    rounds: int = key("rounds", Whole(1, 10_000), 3, "all-reduces, one after the other")
    window: int | None = key(
        "window",
        AutoOr(Whole(1, SLOTS_MAX), "10 ms of frames at the slowest link's rate, 16 to all slots"),
        None,
        "chunks a worker keeps in flight",
    )
    give_up_s: float = key(
        "give_up",
        duration("100ms"),
        10.0,
        "a worker that hears nothing for so long ends the run, naming what is missing",
    )


@dataclass(frozen=True)
class Timeouts:
    start_s: float = key("start", duration("1s"), 30.0, "for switches and agents to become ready")
    round_s: float | None = key(
        "round",
        AutoOr(duration("1s"), "60 s, 20 times the link bound and `workload.give_up`"),
        None,
        "for one round",
    )


@dataclass(frozen=True)
class Axis:
    """One swept key: its dotted path, and its values as written."""

    path: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Scenario:
    """Everything one run needs; passive data. Built by `testbed.scenario.load`."""

    name: str = key(
        "name",
        Text(
            "a name of letters, digits, '.', '_' and '-' that starts with a letter or digit",
            r"[A-Za-z0-9][A-Za-z0-9._-]*",
            64,
        ),
        "",
        "names the result folder; the file's name without ending if not given",
    )
    description: str = key(
        "description", Text(), "", "one line for `make scenarios` and the report"
    )
    seed: int = key(
        "seed", Whole(0, 2**63 - 1), 1, "every chance in the run derives from it by name"
    )
    topology: Topology = field(default=Topology(), metadata={"section": Topology})
    links: Links = field(default=Links(), metadata={"section": Links})
    switch: Switch = field(default=Switch(), metadata={"section": Switch})
    workload: Workload = field(default=Workload(), metadata={"section": Workload})
    timeouts: Timeouts = field(default=Timeouts(), metadata={"section": Timeouts})
    expect: tuple[Expectation, ...] = field(default=(), metadata={"special": "expect"})
    sweep: tuple[Axis, ...] = field(default=(), metadata={"special": "sweep"})


def key_of(item: Field[Any]) -> Key | None:
    found = item.metadata.get("key")
    assert found is None or isinstance(found, Key)
    return found


def yaml_name(item: Field[Any]) -> str:
    """The YAML key of a dataclass field."""
    found = key_of(item)
    return found.name if found else item.name


def keys(cls: type = Scenario, prefix: str = "") -> Iterator[tuple[str, Key, Any]]:
    """Every scalar key as (dotted path, key, default), in the file's order; list items as `[]`."""
    for item in fields(cls):
        path = prefix + yaml_name(item)
        found = key_of(item)
        if found:
            yield path, found, item.default
        elif "section" in item.metadata:
            yield from keys(item.metadata["section"], path + ".")
        elif "items" in item.metadata:
            yield from keys(item.metadata["items"], path + "[].")
