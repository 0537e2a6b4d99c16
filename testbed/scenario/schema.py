"""A scenario's keys: names, kinds, defaults and meaning. docs/scenarios.md follows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from agglab.hosts.workloads.calls import APPLICATIONS
from agglab.hosts.workloads.embedding import ROW_ORDERS
from agglab.hosts.workloads.push_pull import SOURCES
from agglab.testbed import systems, workloads
from agglab.testbed.scenario.expectations import Expectation
from agglab.testbed.scenario.fault_kinds import FaultEntry
from agglab.testbed.scenario.figure import Figure
from agglab.testbed.scenario.key import JOB_NAME, Key, default_of, key, key_of, keys_list, yaml_name
from agglab.testbed.scenario.kinds import (
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
from agglab.testbed.systems.base import TARGETS
from agglab.testbed.workloads.models import PEAK_FLOPS
from agglab.topologies.kinds import KINDS, parameters

WORKERS_MAX = 64  # a program that sums in switches has a bit for each
RACKS_MAX = 64
NAME_MAX = 64
NODE_MAX = 9  # a Linux interface name, `<node>-eth<port>`, has at most 15 bytes
LANES_MAX = 2240  # a 9000-byte packet
SLOTS_MAX = 32_768  # (slot, set) is an index of 16 bits
MTU_MAX = 9000


NAME = Text(
    "a name of letters, digits, '.', '_' and '-' that starts with a letter or digit",
    r"[A-Za-z0-9][A-Za-z0-9._-]*",
    NAME_MAX,
)
NODE = Text(
    "a name of letters and digits that starts with a letter", r"[A-Za-z][A-Za-z0-9]*", NODE_MAX
)
CABLE = Text("two names with a '-' between", r"[A-Za-z][A-Za-z0-9]*-[A-Za-z][A-Za-z0-9]*", 32)
OF_KIND = {kind: tuple(parameters(kind)) for kind in KINDS} | {
    "custom": ("switches", "links", "file")
}
"""Which keys each kind of topology has."""


def _if_absent(name: str) -> str:
    """The kinds of topology that have this key, and what stands for an absent one in each."""
    having = (kind for kind in KINDS if name in parameters(kind))
    return ", ".join(f"`{kind}` {parameters(kind)[name]}" for kind in having)


@dataclass(frozen=True)
class Topology:
    kind: str = key(
        "kind",
        Choice(tuple(OF_KIND)),
        "rack",
        "the graph: `rack` is one switch, a link to each worker; see Topologies",
    )
    workers: int = key(
        "workers",
        Whole(1, WORKERS_MAX),
        4,
        "hosts of each rack (of each edge switch in a `fat_tree`), each with a worker of each job",
    )
    servers: int = key(
        "servers",
        Whole(0, WORKERS_MAX),
        0,
        "further hosts of each rack, p1, p2 ..., without workers; see Topologies",
    )
    racks: int | None = key(
        "racks",
        Whole(1, RACKS_MAX),
        None,
        f"how many racks; if absent: {_if_absent('racks')}",
    )
    spines: int | None = key(
        "spines",
        Whole(1, 16),
        None,
        f"switches above the racks; if absent: {_if_absent('spines')}",
    )
    k: int | None = key(
        "k", Whole(2, 8), None, f"ports of a switch, even; if absent: {_if_absent('k')}"
    )
    switches: tuple[str, ...] = keys_list("switches", NODE, "`custom`: the nodes that are switches")
    links: tuple[str, ...] = keys_list(
        "links", CABLE, "`custom`: cables such as `h1-s1`; what is no switch is a host"
    )
    file: str = key(
        "file",
        Text("the path of a .yaml file", r"[^\x00\n]*", 1000),
        "",
        "`custom`: a file with `switches` and `links` instead, from the scenario's folder",
    )


@dataclass(frozen=True)
class Graph:
    """A file that holds the graph of a `custom` topology."""

    switches: tuple[str, ...] = keys_list("switches", NODE, "the nodes that are switches")
    links: tuple[str, ...] = keys_list("links", CABLE, "cables")


@dataclass(frozen=True)
class LinkOverride:
    """Other values for the links whose name matches; later entries win over earlier ones."""

    match: str = key(
        "match",
        Pattern(),
        "*",
        "which links: a name such as `h1-s1`, one direction such as `h1->s1`, or a shell pattern",
    )
    rate_bps: int | None = key("rate", rate(), None, "instead of `links.rate`")
    loss: float | None = key("loss", Fraction(), None, "instead of `links.loss`")
    delay_s: float | None = key("delay", duration(high="10s"), None, "instead of `links.delay`")
    queue_bytes: int | None = key("queue", size(low="2kB"), None, "instead of `links.queue`")


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
    target: str = key(
        "target",
        Choice(TARGETS),
        "native",
        "what runs the P4 program: our switch, or BMv2's where that is installed; or a bridge of "
        "the kernel, which runs none, for systems whose switches only forward",
    )
    compiler: str = key(
        "compiler",
        Choice(("agglab", "p4c")),
        "agglab",
        "`p4c` calls p4c-bm2-ss, where that is installed",
    )
    program: str | None = key(
        "program",
        AutoOr(
            Text("a name from p4/ or a path to a .p4 file", r"[^\x00\n]+", 1000),
            "the system's own",
        ),
        None,
        "a name from p4/, or a path from the scenario's folder or from where you are",
    )
    entries: str = key(
        "entries",
        Text("a path", r"[^\x00\n]*", 1000),
        "",
        "table entries of your own: a file for all switches, or a folder of `s1-runtime.json` ...",
    )
    lanes: int | None = key(
        "lanes",
        AutoOr(Whole(1, LANES_MAX), "as many as the MTU holds"),
        None,
        "32-bit values a packet carries",
    )
    slots: int = key("slots", Whole(1, SLOTS_MAX), 128, "chunks a switch sums at a time, all jobs")
    partition: str = key(
        "partition",
        Choice(("static", "dynamic")),
        "static",
        "how jobs share the slots: for the whole run, or anew among those that are running",
    )
    log: str = key(
        "log",
        Choice(("off", "error", "warn", "info", "debug", "trace")),
        "off",
        "what switches write to their logs; anything but `off` makes BMv2 several times slower",
    )
    pcap: bool = key("pcap", Flag(), False, "record every packet of every switch port")


@dataclass(frozen=True)
class Workload:
    kind: str = key(
        "kind",
        Choice(tuple(workloads.KINDS)),
        "allreduce",
        "what the workers do; sparse: most blocks of their tensors are zero; embedding: most rows "
        "of a gradient are, as few words are in a batch; push_pull: values under keys, of which "
        "each worker has others; calls: what an application does; sgd, async_sgd: training of a "
        "small model; torch: a PyTorch script of your own (training.md)",
    )
    script: str = key(
        "script",
        Text("the path of a .py file", r"(|[^\x00\n]+\.py)", 1000),
        "",
        "of `torch`: a training script, from the scenario's folder or where you are; each worker "
        "runs it once a round",
    )
    arguments: tuple[str, ...] = keys_list(
        "arguments", Text("one argument", r"[^\x00\n]*", 1000), "of `torch`: the script's own"
    )
    model: str = key(
        "model",
        Text("a name, or path/to/model.yaml", r"[^\x00\n]+", 1000),
        "resnet50",
        "of `layers`: a table of layers that comes with the laboratory, or your own",
    )
    accelerator: str = key(
        "accelerator",
        Choice(tuple(PEAK_FLOPS)),
        "v100",
        "of `layers`: what computes at each worker; its peak in float32 scales the times",
    )
    stands_for_bps: int | None = key(
        "stands_for",
        AutoOr(rate(), "the rate that it has"),
        None,
        "of `layers`: the rate that the slowest link stands for; computing takes as much longer as "
        "that is faster",
    )
    scale: float = key(
        "scale",
        Number(1, 1e9),
        1.0,
        "of `layers`: by which the values of layers and buckets, and the times, are divided",
    )
    bucket_bytes: int = key(
        "bucket",
        size(low="4B"),
        25 * 2**20,
        "of `layers`: gradients are summed in buckets of so many bytes, before `scale`",
    )
    priorities: bool = key(
        "priorities",
        Flag(),
        False,
        "of `layers`: of the buckets that are ready, the one nearest to the input is summed first, "
        "and layers that are larger than a bucket are cut",
    )
    application: str = key(
        "application",
        Choice(APPLICATIONS),
        "wordcount",
        "of calls: counts of the words of Python's standard library, or critical sections under "
        "locks",
    )
    density: float = key(
        "density", Share(), 0.1, "of a sparse tensor: the share of its blocks that are not zero"
    )
    block: int = key("block", Whole(1, 1_000_000), 256, "of a sparse tensor: values of one block")
    overlap: str = key(
        "overlap",
        Choice(("none", "random", "full")),
        "random",
        "which blocks of a sparse tensor are not zero: others at each worker as far as possible; "
        "chosen independently; the same at all",
    )
    width: int = key("width", Whole(1, 65_536), 64, "of an embedding: values of one row")
    tokens: int = key(
        "tokens",
        Whole(1, 1_000_000),
        512,
        "of an embedding: words of a worker's batch, from the source text of Python's own standard "
        "library; each word has a row",
    )
    row_order: str = key(
        "row_order",
        Choice(ROW_ORDERS),
        "rank",
        "of an embedding: which row a word has: the commonest word the first; or by its hash",
    )
    source: str = key(
        "source",
        Choice(SOURCES),
        "zipf",
        "of `push_pull`: where keys are drawn from: by rank, or the identifiers in the source text "
        "of Python's own standard library",
    )
    exponent: float = key(
        "exponent",
        Number(0, 10),
        1.1,
        "of `zipf`: the key of rank r is drawn with a chance in proportion to r to the power of "
        "minus this",
    )
    vocabulary: int = key(
        "vocabulary", Whole(1, 100_000_000), 16_384, "of `zipf`: how many different keys there are"
    )
    drift: int = key(
        "drift",
        Whole(0, 10_000),
        0,
        "of `zipf`: after so many rounds every rank has another key; 0 for never",
    )
    features: int = key(
        "features",
        Whole(1, 1_000_000),
        1024,
        "of `async_sgd`: words of the vocabulary; of `sgd`: values of an example",
    )
    classes: int = key(
        "classes", Whole(2, 1000), 8, "of training: classes of documents or examples"
    )
    samples: int = key(
        "samples", Whole(1, 1_000_000), 512, "of `async_sgd`: documents of each worker"
    )
    batch: int = key(
        "batch", Whole(1, 10_000), 4, "of training: documents or examples of one step of a worker"
    )
    learning_rate: float = key(
        "learning_rate",
        Number(0.0001, 100.0),
        0.05,
        "of `async_sgd`: by how much a word of a short document moves a weight; of `sgd`: by which "
        "the mean gradient moves the model",
    )
    compute_s: float = key(
        "compute",
        duration("1us", "60s"),
        0.02,
        "of `async_sgd`: the mean time of a step, which takes half to one and a half; of `sgd`: "
        "what each step takes before its gradient is there",
    )
    steps: int = key(
        "steps", Whole(1, 100_000), 50, "of `sgd`: so many are a training, and a round"
    )
    goal: float = key(
        "goal",
        Fraction(),
        0.9,
        "of `sgd`: the accuracy whose time is measured",
    )
    hidden: int = key("hidden", Whole(1, 100_000), 64, "of `sgd`: units of the hidden layer")
    updates: int = key(
        "updates",
        Whole(1, 100_000),
        200,
        "of `async_sgd`: a run ends when so many are committed",
    )
    time_s: float | None = key(
        "time",
        AutoOr(duration("1ms"), "when all updates are committed"),
        None,
        "of `async_sgd`: a run ends no later than this, counted from its first request",
    )
    elements: int = key(
        "elements",
        Whole(1, 1_000_000_000),
        1_000_000,
        "values in the tensor of each worker; of `push_pull`: keys that each worker draws in a "
        "round, and pushes once each; of `torch`: of one all-reduce at most, larger ones are cut",
    )
    dtype: str = key(
        "dtype",
        Choice(("float32", "int32", "float16")),
        "float32",
        "their type; int32 is summed exactly, float16 exactly and then rounded",
    )
    rounds: int = key("rounds", Whole(1, 10_000), 3, "all-reduces, one after the other")
    warmup: int = key(
        "warmup",
        Whole(0, 1000),
        0,
        "of these, so many at the beginning are run and judged, and no time of a round is theirs",
    )
    worker: str = key(
        "worker",
        Text("module:Class, or path/to/file.py:Class", r"(|[^\x00\n:]+:[A-Za-z_]\w*)", 1000),
        "",
        "a worker class of your own (own-systems.md), from the scenario's folder or where you are",
    )
    window: int | None = key(
        "window",
        AutoOr(
            Whole(1, SLOTS_MAX),
            "10 ms of frames at the slowest link's rate, 16 to all slots; on BMv2 at most 48",
        ),
        None,
        "chunks a worker keeps in flight",
    )
    give_up_s: float = key(
        "give_up",
        duration("100ms"),
        10.0,
        "a worker that hears nothing for so long ends the round, naming what is missing",
    )
    on_failure: str = key(
        "on_failure",
        Choice(("fail", "restart", "survivors")),
        "fail",
        "a round that cannot end: the job fails; runs it again; runs it again without the dead",
    )
    restarts_max: int = key(
        "restarts", Whole(0, 1000), 10, "how often a job runs a round again before it fails"
    )


@dataclass(frozen=True)
class JobSection:
    """One job of several."""

    name: str = key("name", JOB_NAME, "", "`job1`, `job2` ... if not given")
    workers: tuple[str, ...] = keys_list(
        "workers",
        Pattern(),
        "hosts, by name or pattern, in order of rank; all if not given",
        ("*",),
    )
    slots: int | None = key(
        "slots",
        AutoOr(Whole(1, SLOTS_MAX), "what the others leave, by `share`"),
        None,
        "its slots in a static partition",
    )
    first_slot: int | None = key(
        "first_slot",
        AutoOr(Whole(0, SLOTS_MAX - 1), "the first that is free"),
        None,
        "where its slots begin in a static partition",
    )
    share: int = key("share", Whole(1, 1000), 1, "its weight where slots are divided")
    start_s: float = key("start", duration(), 0.0, "when its first round starts, from the first's")
    end_s: float | None = key(
        "end",
        AutoOr(duration(), "when its rounds are over"),
        None,
        "no round of it starts later than this",
    )
    workload: Workload = field(default=Workload(), metadata={"section": Workload})


@dataclass(frozen=True)
class Timeouts:
    start_s: float = key(
        "start",
        duration("1s"),
        30.0,
        "for switches and agents to become ready, compiling not counted",
    )
    round_s: float | None = key(
        "round",
        AutoOr(
            duration("1s"),
            "60 s, 20 times the link bound and `workload.give_up`; an hour for a training script",
        ),
        None,
        "for one round",
    )


@dataclass(frozen=True)
class Series:
    record: bool = key(
        "record", Flag(), True, "keep what workers, links and switches do over time, and latencies"
    )
    every_s: float | None = key(
        "every",
        AutoOr(duration("10us", "60s"), "10 ms"),
        None,
        "how far apart samples are; of a long run they become fewer",
    )


@dataclass(frozen=True)
class Axis:
    """One swept key: its dotted path, and its values as written."""

    path: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Contender:
    """One of those that are compared: its name, and the keys in which it differs from the
    scenario (a tree of `document`)."""

    name: str
    own: Any


@dataclass(frozen=True)
class Scenario:
    """Everything one run needs; passive data. Built by `agglab.testbed.scenario.load`."""

    name: str = key(
        "name",
        NAME,
        "",
        "names the result folder; made of the file's name if not given",
    )
    description: str = key(
        "description", Text(), "", "one line for `make scenarios` and the report"
    )
    seed: int = key(
        "seed", Whole(0, 2**63 - 1), 1, "every chance in the run derives from it by name"
    )
    system: str = key(
        "system",
        Text("a name that `agglab systems` lists, or path/to/mine.py:Mine", r"[^\x00\n]+", 1000),
        systems.default,
        "the way of aggregating; a class of your own is found from the scenario's folder or where "
        "you are",
    )
    backend: str = key(
        "backend",
        Choice(("mininet", "virtual")),
        "mininet",
        "real packets in namespaces, or virtual time in one process (no root, exactly repeatable)",
    )
    conformance: bool = key(
        "conformance", Flag(), False, "`make conformance` runs it with every compiler and target"
    )
    topology: Topology = field(default=Topology(), metadata={"section": Topology})
    links: Links = field(default=Links(), metadata={"section": Links})
    switch: Switch = field(default=Switch(), metadata={"section": Switch})
    workload: Workload = field(default=Workload(), metadata={"section": Workload})
    jobs: tuple[JobSection, ...] = field(default=(), metadata={"items": JobSection})
    faults: tuple[FaultEntry, ...] = field(default=(), metadata={"items": FaultEntry})
    timeouts: Timeouts = field(default=Timeouts(), metadata={"section": Timeouts})
    series: Series = field(default=Series(), metadata={"section": Series})
    expect: tuple[Expectation, ...] = field(default=(), metadata={"special": "expect"})
    sweep: tuple[Axis, ...] = field(default=(), metadata={"special": "sweep"})
    compare: tuple[Contender, ...] = field(default=(), metadata={"special": "compare"})
    figure: Figure | None = field(default=None, metadata={"section": Figure})
    options: tuple[tuple[str, Any], ...] = field(default=(), metadata={"special": "options"})
    """Systems' own sections: the system's name, and an object of its class `options`."""


def keys(cls: type = Scenario, prefix: str = "") -> Iterator[tuple[str, Key, Any]]:
    """Every scalar key as (dotted path, key, default), in the file's order; list items as `[]`."""
    for item in fields(cls):
        path = prefix + yaml_name(item)
        found = key_of(item)
        if found:
            yield path, found, default_of(item)
        elif "section" in item.metadata:
            yield from keys(item.metadata["section"], path + ".")
        elif "items" in item.metadata:
            yield from keys(item.metadata["items"], path + "[].")
