"""Declares the keys of a scenario's network: the sections `topology`, `links` and `switch`."""

from __future__ import annotations

from dataclasses import dataclass, field

from agglab.testbed.schema.key import key, keys_list
from agglab.testbed.schema.kinds import (
    AutoOr,
    Choice,
    Flag,
    Fraction,
    Pattern,
    Text,
    Whole,
    duration,
    rate,
    size,
)
from agglab.testbed.schema.target_names import TARGETS
from agglab.topologies.kinds import KINDS, parameters

WORKERS_MAX = 64  # a program that sums in switches has a bit for each
RACKS_MAX = 254  # each has a byte of its hosts' addresses
PODS_MAX = 64
NODE_MAX = 9  # a Linux interface name, `<node>-eth<port>`, has at most 15 bytes
LANES_MAX = 2240  # a 9000-byte packet
MTU_MAX = 9000
SLOTS_MAX = 32_768  # (slot, set) is an index of 16 bits

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
