"""Declares a scenario's keys: names, kinds, defaults and meaning. The table in docs/scenarios.md is
written from it."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from agglab.hosts.workloads import KINDS as WORKLOADS
from agglab.hosts.workloads.calls import APPLICATIONS
from agglab.hosts.workloads.embedding import ROW_ORDERS
from agglab.hosts.workloads.push_pull import SOURCES
from agglab.testbed.schema import system_names
from agglab.testbed.schema.expectations import Expectation
from agglab.testbed.schema.fault_kinds import ChunkMark, FaultEntry
from agglab.testbed.schema.figure import Figure
from agglab.testbed.schema.key import JOB_NAME, Key, default_of, key, key_of, keys_list, yaml_name
from agglab.testbed.schema.kinds import (
    AutoOr,
    Choice,
    Flag,
    Fraction,
    Number,
    Pattern,
    Share,
    Text,
    Whole,
    duration,
    rate,
    size,
)
from agglab.testbed.schema.models import PEAK_FLOPS
from agglab.testbed.schema.target_names import TARGETS
from agglab.topologies.kinds import KINDS, parameters

WORKERS_MAX = 64  # a program that sums in switches has a bit for each
RACKS_MAX = 254  # each has a byte of its hosts' addresses
PODS_MAX = 64
NAME_MAX = 64
NODE_MAX = 9  # a Linux interface name, `<node>-eth<port>`, has at most 15 bytes
LANES_MAX = 2240  # a 9000-byte packet
SLOTS_MAX = 32_768  # (slot, set) is an index of 16 bits
MTU_MAX = 9000
UNSWEPT = ("name", "description", "pause_at.job", "pause_at.round", "pause_at.chunk")


NAME = Text(
    "a name of letters, digits, '.', '_' and '-' that starts with a letter or digit",
    r"[A-Za-z0-9][A-Za-z0-9._-]*",
    NAME_MAX,
)
NODE = Text(
    "a name of letters and digits that starts with a letter", r"[A-Za-z][A-Za-z0-9]*", NODE_MAX
)
CABLE = Text("two names with a '-' between them", r"[A-Za-z][A-Za-z0-9]*-[A-Za-z][A-Za-z0-9]*", 32)
OF_KIND = {kind: tuple(parameters(kind)) for kind in KINDS} | {
    "custom": ("switches", "links", "file")
}
"""The keys of each kind of topology."""


def _if_absent(name: str) -> str:
    """Returns the kinds of topology that have this key, and the default of each."""
    having = (kind for kind in KINDS if name in parameters(kind))
    return ", ".join(f"`{kind}` {parameters(kind)[name]}" for kind in having)


@dataclass(frozen=True)
class Topology:
    kind: str = key(
        "kind",
        Choice(tuple(OF_KIND)),
        "rack",
        "kind of graph: `rack` is one switch with a link to each worker; see Topologies",
    )
    workers: int = key(
        "workers",
        Whole(1, WORKERS_MAX),
        4,
        "hosts of each rack (in a `fat_tree`, of each edge switch); each has a worker of each job",
    )
    servers: int = key(
        "servers",
        Whole(0, WORKERS_MAX),
        0,
        "additional hosts of each rack, p1, p2 ..., without workers; see Topologies",
    )
    racks: int | None = key(
        "racks",
        Whole(1, RACKS_MAX),
        None,
        "number of racks (in a `three_tier`, of each pod); if absent: " + _if_absent("racks"),
    )
    pods: int | None = key(
        "pods",
        Whole(1, PODS_MAX),
        None,
        f"number of groups of racks, each under a switch; if absent: {_if_absent('pods')}",
    )
    spines: int | None = key(
        "spines",
        Whole(1, 16),
        None,
        f"number of switches above the racks; if absent: {_if_absent('spines')}",
    )
    k: int | None = key(
        "k",
        Whole(2, 20),
        None,
        f"number of ports of each switch, which must be even; if absent: {_if_absent('k')}",
    )
    switches: tuple[str, ...] = keys_list("switches", NODE, "`custom`: the nodes that are switches")
    links: tuple[str, ...] = keys_list(
        "links", CABLE, "`custom`: links such as `h1-s1`; a node that is not a switch is a host"
    )
    file: str = key(
        "file",
        Text("the path of a .yaml file", r"[^\x00\n]*", 1000),
        "",
        "`custom`: a file with `switches` and `links`, in place of these two keys; relative to "
        "the scenario's folder",
    )


@dataclass(frozen=True)
class Graph:
    """A file that holds the graph of a `custom` topology."""

    switches: tuple[str, ...] = keys_list("switches", NODE, "the nodes that are switches")
    links: tuple[str, ...] = keys_list("links", CABLE, "cables")


@dataclass(frozen=True)
class LinkOverride:
    """Other values for the links whose name matches a pattern. If several overrides match, the
    later ones take precedence."""

    match: str = key(
        "match",
        Pattern(),
        "*",
        "the links: a name such as `h1-s1`, one direction such as `h1->s1`, or a shell pattern",
    )
    rate_bps: int | None = key("rate", rate(), None, "overrides `links.rate`")
    loss: float | None = key("loss", Fraction(), None, "overrides `links.loss`")
    delay_s: float | None = key("delay", duration(high="10s"), None, "overrides `links.delay`")
    queue_bytes: int | None = key("queue", size(low="2kB"), None, "overrides `links.queue`")


@dataclass(frozen=True)
class Links:
    rate_bps: int = key(
        "rate", rate(), 100_000_000, "bits per second in each direction, Ethernet headers included"
    )
    delay_s: float = key(
        "delay",
        duration(high="10s"),
        0.0,
        "one-way delay; real links need netem for it, which not every kernel has",
    )
    loss: float = key(
        "loss",
        Fraction(),
        0.0,
        "probability that a packet is dropped, in each direction; derived from `seed`",
    )
    mtu_bytes: int = key("mtu", Whole(576, MTU_MAX), 1500, "size of the largest IP packet in bytes")
    queue_bytes: int | None = key(
        "queue",
        AutoOr(size(low="2kB"), "1000 packets, or twice the window if that is more"),
        None,
        "size of the queue in front of a link in bytes; a packet that finds it full is dropped",
    )
    overrides: tuple[LinkOverride, ...] = field(default=(), metadata={"items": LinkOverride})


@dataclass(frozen=True)
class Switch:
    target: str = key(
        "target",
        Choice(TARGETS),
        "native",
        "what runs the P4 program: Agglab's switch, or BMv2 if it is installed; `bridge` is a "
        "bridge of the kernel, which runs no program, for systems whose switches only forward",
    )
    compiler: str = key(
        "compiler",
        Choice(("agglab", "p4c")),
        "agglab",
        "the P4 compiler; `p4c` calls p4c-bm2-ss, which must be installed",
    )
    program: str | None = key(
        "program",
        AutoOr(
            Text("a name from p4/, or the path of a .p4 file", r"[^\x00\n]+", 1000),
            "the system's own program",
        ),
        None,
        "the P4 program: a name from p4/, or a path relative to the scenario's folder or to "
        "the current folder",
    )
    entries: str = key(
        "entries",
        Text("a path", r"[^\x00\n]*", 1000),
        "",
        "additional table entries: a file for all switches, or a folder with `s1-runtime.json` ...",
    )
    lanes: int | None = key(
        "lanes",
        AutoOr(Whole(1, LANES_MAX), "as many as fit into the MTU"),
        None,
        "number of 32-bit values in a packet",
    )
    slots: int = key(
        "slots",
        Whole(1, SLOTS_MAX),
        128,
        "number of chunks that a switch can sum at the same time, for all jobs together",
    )
    partition: str = key(
        "partition",
        Choice(("static", "dynamic")),
        "static",
        "how jobs share the slots: `static` divides them once for the whole run, `dynamic` "
        "among the jobs that are running",
    )
    log: str = key(
        "log",
        Choice(("off", "error", "warn", "info", "debug", "trace")),
        "off",
        "log level of the switches; `debug` has what programs say with `log_msg`. Any level but "
        "`off` makes BMv2 several times slower",
    )
    pcap: bool = key("pcap", Flag(), False, "write pcap files of every switch port")
    registers: tuple[str, ...] = keys_list(
        "registers",
        Text("a name", r"[A-Za-z_][A-Za-z0-9_.]*", 200),
        "registers of the P4 program whose contents at the end of the run are written to "
        "`program.json`: full names, or the last parts of them",
    )


@dataclass(frozen=True)
class Workload:
    kind: str = key(
        "kind",
        Choice(tuple(WORKLOADS)),
        "allreduce",
        "what the workers do. sparse: an all-reduce in which most blocks of the tensors are zero; "
        "embedding: one in which most rows of a gradient are zero, because a batch has few words; "
        "push_pull: pushes and pulls of values under keys, of which each worker has others; calls: "
        "what an application calls; sgd, async_sgd: training of a small model; torch: a PyTorch "
        "script of your own (training.md)",
    )
    script: str = key(
        "script",
        Text("the path of a .py file", r"(|[^\x00\n]+\.py)", 1000),
        "",
        "`torch`: a training script, relative to the scenario's folder or to the current "
        "folder; each worker runs it once in each round",
    )
    arguments: tuple[str, ...] = keys_list(
        "arguments", Text("one argument", r"[^\x00\n]*", 1000), "`torch`: arguments for the script"
    )
    model: str = key(
        "model",
        Text("a name, or path/to/model.yaml", r"[^\x00\n]+", 1000),
        "resnet50",
        "`layers`: the table of layers: one that comes with Agglab, or your own file",
    )
    accelerator: str = key(
        "accelerator",
        Choice(tuple(PEAK_FLOPS)),
        "v100",
        "`layers`: the processor that computes at each worker; its peak in float32 determines "
        "the times",
    )
    stands_for_bps: int | None = key(
        "stands_for",
        AutoOr(rate(), "the slowest link's own rate"),
        None,
        "`layers`: the rate that the slowest link represents; computing is slowed down by the "
        "ratio of this rate to the link's own",
    )
    scale: float = key(
        "scale",
        Number(1, 1e9),
        1.0,
        "`layers`: the sizes of layers and buckets, and the times, are divided by this",
    )
    bucket_bytes: int = key(
        "bucket",
        size(low="4B"),
        25 * 2**20,
        "`layers`: gradients are summed in buckets of this size in bytes, before `scale` "
        "divides it",
    )
    priorities: bool = key(
        "priorities",
        Flag(),
        False,
        "`layers`: whether, of the buckets that are ready, the one nearest to the input is "
        "summed first; layers that are larger than a bucket are then cut",
    )
    application: str = key(
        "application",
        Choice(APPLICATIONS),
        "wordcount",
        "`calls`: the application: `wordcount` counts the words of Python's standard library, "
        "`lock` runs critical sections under locks",
    )
    density: float = key(
        "density", Share(), 0.1, "`sparse`: the share of a tensor's blocks that are not zero"
    )
    block: int = key("block", Whole(1, 1_000_000), 256, "`sparse`: number of values in a block")
    overlap: str = key(
        "overlap",
        Choice(("none", "random", "full")),
        "random",
        "`sparse`: which blocks are not zero: different ones at each worker as far as possible "
        "(`none`), independently chosen ones (`random`), or the same at all workers (`full`)",
    )
    width: int = key("width", Whole(1, 65_536), 64, "`embedding`: number of values in a row")
    tokens: int = key(
        "tokens",
        Whole(1, 1_000_000),
        512,
        "`embedding`: number of words in a worker's batch, which come from the source text of "
        "Python's own standard library; each word has a row",
    )
    row_order: str = key(
        "row_order",
        Choice(ROW_ORDERS),
        "rank",
        "`embedding`: which row a word has: `rank` gives the commonest word the first row, "
        "`hashed` uses the hash of the word",
    )
    source: str = key(
        "source",
        Choice(SOURCES),
        "zipf",
        "`push_pull`: where keys come from: a Zipf distribution, or the identifiers in the "
        "source text of Python's own standard library",
    )
    exponent: float = key(
        "exponent",
        Number(0, 10),
        1.1,
        "`zipf`: the key of rank r is drawn with a probability in proportion to 1/r to the "
        "power of this number",
    )
    vocabulary: int = key(
        "vocabulary", Whole(1, 100_000_000), 16_384, "`zipf`: number of different keys"
    )
    drift: int = key(
        "drift",
        Whole(0, 10_000),
        0,
        "`zipf`: number of rounds after which every rank stands for another key; 0: never",
    )
    features: int = key(
        "features",
        Whole(1, 1_000_000),
        1024,
        "`async_sgd`: number of words in the vocabulary; `sgd`: number of values in an example",
    )
    classes: int = key(
        "classes",
        Whole(2, 1000),
        8,
        "`async_sgd`, `sgd`: number of classes of documents or examples",
    )
    samples: int = key(
        "samples", Whole(1, 1_000_000), 512, "`async_sgd`: number of documents at each worker"
    )
    batch: int = key(
        "batch",
        Whole(1, 10_000),
        4,
        "`async_sgd`, `sgd`: number of documents or examples that a worker uses in a step",
    )
    learning_rate: float = key(
        "learning_rate",
        Number(0.0001, 100.0),
        0.05,
        "learning rate. `async_sgd`: how far a word of a short document moves a weight; `sgd`: the "
        "factor of the mean gradient",
    )
    compute_s: float = key(
        "compute",
        duration("1us", "60s"),
        0.02,
        "computing time of a step. `async_sgd`: its mean; each step takes between half and one and "
        "a half times as long; `sgd`: the time before its gradient is ready",
    )
    steps: int = key(
        "steps", Whole(1, 100_000), 50, "`sgd`: number of steps in a training, which is one round"
    )
    goal: float = key(
        "goal",
        Fraction(),
        0.9,
        "`sgd`: the accuracy for which the time to reach it is measured",
    )
    hidden: int = key("hidden", Whole(1, 100_000), 64, "`sgd`: number of units in the hidden layer")
    updates: int = key(
        "updates",
        Whole(1, 100_000),
        200,
        "`async_sgd`: number of committed updates after which a round ends",
    )
    time_s: float | None = key(
        "time",
        AutoOr(duration("1ms"), "when all updates are committed"),
        None,
        "`async_sgd`: a round ends after this time at the latest, counted from its first request",
    )
    elements: int = key(
        "elements",
        Whole(1, 1_000_000_000),
        1_000_000,
        "number of values in each worker's tensor; for `push_pull`, number of keys that each "
        "worker draws in a round, and pushes once each; for `torch`, the largest all-reduce, "
        "into which larger ones are cut",
    )
    dtype: str = key(
        "dtype",
        Choice(("float32", "int32", "float16", "bfloat16")),
        "float32",
        "type of the values; sums of int32 are exact, those of float16 and bfloat16 are exact and "
        "then rounded",
    )
    rounds: int = key("rounds", Whole(1, 10_000), 3, "number of rounds, one after the other")
    warmup: int = key(
        "warmup",
        Whole(0, 1000),
        0,
        "how many of the first rounds are run and verified but not counted in any time",
    )
    worker: str = key(
        "worker",
        Text("module:Class, or path/to/file.py:Class", r"(|[^\x00\n:]+:[A-Za-z_]\w*)", 1000),
        "",
        "a worker class of your own (own-systems.md), relative to the scenario's folder or to "
        "the current folder",
    )
    window: int | None = key(
        "window",
        AutoOr(
            Whole(1, SLOTS_MAX),
            "10 ms of frames at the slowest link's rate, more if delays make a round trip longer "
            "than 5 ms, from 16 to all slots; on BMv2 at most 48",
        ),
        None,
        "number of chunks that a worker keeps in flight",
    )
    give_up_s: float = key(
        "give_up",
        duration("100ms"),
        10.0,
        "time without any received packet after which a worker ends the round and reports "
        "what is missing",
    )
    first_timeout_s: float | None = key(
        "first_timeout",
        AutoOr(
            duration("10us", "1s"),
            "20 times as long as a window takes on the link, from 20 to 100 ms, but at least twice "
            "the round trip that the links' delays cause",
        ),
        None,
        "time without any answer after which a worker sends packets again, as long as it has not "
        "measured a round trip. A short time repairs early losses sooner; if it is shorter than a "
        "round trip, or than workers start apart, packets are sent again for nothing",
    )
    on_failure: str = key(
        "on_failure",
        Choice(("fail", "restart", "survivors")),
        "fail",
        "what happens to a round that cannot end: `fail` ends the job; `restart` runs the "
        "round again; `survivors` runs it again without the workers that have died",
    )
    restarts_max: int = key(
        "restarts", Whole(0, 1000), 10, "how many times a job may run rounds again before it fails"
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
