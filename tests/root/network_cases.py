"""What the tests of test_network*.py do inside an isolated run, each case in a process of its own.

    python network_cases.py CASE ARGUMENTS-AS-JSON RESULT-FILE

A case gets the run's scratch directory and its arguments; what it returns goes to the file as JSON.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import signal
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time
import unittest.mock
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from agglab import topologies  # noqa: E402
from agglab.testbed.base.kernel import network_namespace  # noqa: E402
from agglab.testbed.base.traffic_counters import SwitchStatistics  # noqa: E402
from agglab.testbed.real import (  # noqa: E402
    MininetNetwork,
    NativeTarget,
    NodeFailed,
    NodeProcess,
    RunningSwitch,
    interfaces,
    isolated,
)
from agglab.testbed.real.targets.base import Control, SwitchSetting, port_arguments  # noqa: E402
from agglab.testbed.real.targets.p4runtime import P4RuntimeControl  # noqa: E402
from agglab.testbed.schema.faults import AtTime, Fault, Impair, LinkDown, RateChange  # noqa: E402
from agglab.testbed.systems.plan import Entries, TableEntry  # noqa: E402
from agglab.testbed.systems.summing.plan import PlacedJob, job_entries, plan  # noqa: E402
from agglab.topologies import (  # noqa: E402
    Direction,
    Drop,
    Duplicate,
    GilbertElliott,
    PeriodicDrop,
    Topology,
    rack,
    ring_of_racks,
)

# IEEE 802 local experimental EtherType: nothing in the kernel answers it.
ETHERTYPE = 0x88B5
SO_TIMESTAMPNS = 35
SO_RCVBUFFORCE = 33
PATIENCE_S = 5.0
RATE_ATTEMPTS = 8


def network(topology: Topology, scratch: Path, seed: int = 7) -> MininetNetwork:
    return MininetNetwork(topology, seed, scratch, scratch / "logs")


@contextlib.contextmanager
def bridged(topology: Topology, scratch: Path) -> Iterator[MininetNetwork]:
    """A network whose switches are the kernel's bridges."""
    with network(topology, scratch) as net:
        for switch in topology.switches:
            with network_namespace(net.mininet[switch.name].pid):
                run("ip link add br0 type bridge forward_delay 0 mcast_snooping 0")
                for link in topology.ports(switch.name).values():
                    run(f"ip link set {link.b.interface} master br0")
                run("ip link set br0 up")
        yield net


def run(command: str) -> str:
    return subprocess.run(command.split(), check=True, capture_output=True, text=True).stdout


def packet_socket(net: MininetNetwork, node: str, interface: str, receive: bool) -> socket.socket:
    """A raw socket in a node's namespace; with `receive`, room for many frames and timestamps."""
    with network_namespace(net.mininet[node].pid):
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    if receive:
        opened.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 28)
        opened.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    with network_namespace(net.mininet[node].pid):
        # ETH_P_ALL, as P4 switches and tcpdump bind.
        opened.bind((interface, 3 if receive else 0))
    opened.settimeout(PATIENCE_S)
    return opened


def frame(number: int, size: int) -> bytes:
    """`size` bytes from the Ethernet header on, carrying its number; to nobody in particular."""
    head = b"\x02\xee\0\0\0\1" + b"\x02\xee\0\0\0\2" + struct.pack("!HI", ETHERTYPE, number)
    return head.ljust(size, b"\xa5")


def number_of(received: bytes) -> int:
    return int(struct.unpack_from("!I", received, 14)[0])


def receive_until(receiver: socket.socket, last: int) -> list[int]:
    """Numbers of the frames received, up to the frame with number `last`."""
    numbers = []
    while not numbers or numbers[-1] != last:
        numbers.append(number_of(receiver.recv(65536)))
    return numbers


def steering(scratch: Path) -> dict[str, str]:
    """rps_cpus of four ports, the middle two of which are to be handled by one processor each."""
    with network(rack(4), scratch) as net, network_namespace(net.mininet["s1"].pid):
        interfaces.handled_by_one_processor(["s1-eth3", "s1-eth2"], scratch)
        run(f"mount -t sysfs none {scratch}/sys")
        return {
            path.parents[2].name: path.read_text().strip()
            for path in Path(scratch, "sys/class/net").glob("s1-*/queues/rx-0/rps_cpus")
        }


def connectivity(scratch: Path, workers: int = 3) -> dict[str, Any]:
    with bridged(rack(workers, mtu=9000), scratch) as net:
        ping = net.mininet["h1"].cmd(
            f"ping -c 1 -W {PATIENCE_S:.0f} -s 8000 -M do 10.0.0.{workers}"
        )
        sent, received = tcp_transfer(net, "h1", "h2", "10.0.0.2", 3_000_000)
        with network_namespace(net.mininet["h1"].pid):
            neighbours = json.loads(run("ip -j neigh show"))
        return {
            "ping": ping,
            "same": sent == received,
            "mininet": [(host.IP(), host.MAC()) for host in net.mininet.hosts],
            "neighbours": sorted((n["dst"], n["lladdr"], *n["state"]) for n in neighbours),
        }


def tcp_transfer(
    net: MininetNetwork, client: str, server: str, address: str, size: int
) -> tuple[str, str]:
    """Digests of `size` bytes as sent from client to server over TCP, and as received."""
    data = hashlib.shake_128(b"agglab").digest(size)
    with network_namespace(net.mininet[server].pid):
        listener = socket.create_server((address, 5001))
    digest = hashlib.sha256()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            while piece := connection.recv(1 << 16):
                digest.update(piece)

    thread = threading.Thread(target=serve)
    thread.start()
    with network_namespace(net.mininet[client].pid):
        outgoing = socket.create_connection((address, 5001), timeout=PATIENCE_S)
    with outgoing:
        outgoing.sendall(data)
    thread.join()
    listener.close()
    return hashlib.sha256(data).hexdigest(), digest.hexdigest()


def rate(scratch: Path, rate_bps: int, mtu: int, frames: int, upstream: bool) -> dict[str, Any]:
    """Rates reached by full frames sent at once into the queue, by the kernel's receive times.

    Of each attempt as a whole; and by the median gap between its frames, which does not change when
    the host takes the processor away for a while.
    """
    direction = Direction(rate_bps=rate_bps, queue_packets=frames)
    topology = rack(1, direction, direction, mtu)
    ends = [("h1", "h1-eth0"), ("s1", "s1-eth1")]
    sender, receiver = ends if upstream else ends[::-1]
    size = mtu + 14
    with network(topology, scratch) as net:
        sending = packet_socket(net, *sender, receive=False)
        receiving = packet_socket(net, *receiver, receive=True)
        reached: list[float] = []
        by_gap = []
        while len(reached) < RATE_ATTEMPTS and max(reached, default=0) < 0.99 * rate_bps:
            sending.setsockopt(socket.SOL_SOCKET, 32, 1 << 28)  # SO_SNDBUFFORCE
            for number in range(frames):
                sending.send(frame(number, size))
            times = arrival_times_ns(receiving, frames)
            # The bucket's first frames come at once; they are its depth, not its rate.
            skip = frames // 4
            elapsed_s = (times[-1] - times[skip]) / 1e9
            reached.append((frames - 1 - skip) * size * 8 / elapsed_s)
            gap_ns = statistics.median(b - a for a, b in itertools.pairwise(times[skip:]))
            by_gap.append(gap_ns * rate_bps / (size * 8 * 1e9))
        drops = [d.dropped_by_queue for d in net.statistics().directions]
    return {"ratios": [r / rate_bps for r in reached], "gaps": by_gap, "drops": drops}


def arrival_times_ns(receiver: socket.socket, frames: int) -> list[int]:
    times = []
    for _ in range(frames):
        _, ancillary, _, _ = receiver.recvmsg(64, socket.CMSG_SPACE(16))
        seconds, nanoseconds = struct.unpack("qq", ancillary[0][2][:16])
        times.append(seconds * 10**9 + nanoseconds)
    return times


def loss(
    scratch: Path, probability: float, frames: int, seed: int = 7, workers: int = 1, host: int = 1
) -> dict[str, Any]:
    """Frames sent both ways over one host's link; the kernel's counts and what came out."""
    lossy = Direction(impairments=(Drop(probability),))
    ends = [(f"h{host}", f"h{host}-eth0"), ("s1", f"s1-eth{host}")]
    with network(rack(workers, lossy, lossy), scratch, seed) as net:
        received = {}
        for sender, receiver in (ends, ends[::-1]):
            sending = packet_socket(net, *sender, receive=False)
            receiving = packet_socket(net, *receiver, receive=True)
            for number in range(frames):
                sending.send(frame(number, 60))
            received[f"{sender[0]}->{receiver[0]}"] = drain(receiving)
        directions = net.statistics().directions
    return {
        "received": received,
        "counted": {d.direction: vars(d) for d in directions if d.seen},
    }


def kinds(scratch: Path, impairments: str, frames: int) -> dict[str, Any]:
    """Frames of 60 to 959 bytes over a link with these impairments (their repr), and what came out,
    in hex."""
    way = Direction(impairments=eval(impairments, vars(topologies)))
    with network(rack(1, up=way), scratch) as net:
        sending = packet_socket(net, "h1", "h1-eth0", receive=False)
        receiving = packet_socket(net, "s1", "s1-eth1", receive=True)
        for number in range(frames):
            sending.send(frame(number, 60 + number % 900))
        received = [received.hex() for received in drain_frames(receiving)]
        return {"received": received, **vars(net.statistics().directions[0])}


def gaps(scratch: Path, impairments: str, numbers: list[int]) -> dict[str, Any]:
    """Frames with these numbers alone: those between are as if still at another processor."""
    way = Direction(impairments=eval(impairments, vars(topologies)))
    with network(rack(1, up=way), scratch) as net:
        counters = net._impaired["h1->s1"]._counters
        with packet_socket(net, "h1", "h1-eth0", receive=False) as sending:
            for number in numbers:
                dropped = counters.read(1)[8:16]
                counters.write((struct.pack("<Q", number) + dropped).ljust(48, b"\0"))
                sending.send(frame(number, 60))
        return vars(net.statistics().directions[0])


def switch(net: MininetNetwork, fault: Fault, on: bool) -> None:
    """Begins or ends a fault of a link other than a change of its rate."""
    action = fault.action
    if isinstance(action, LinkDown):
        net.set_link_down(fault.number, action.link, on)
    else:
        assert isinstance(action, Impair)
        where = action.link, action.directions
        net.set_impairment(fault.number, *where, action.impairment, on)


def link_faults(scratch: Path, each: int) -> dict[str, Any]:
    """Five times `each` frames upstream; a fault begins or ends between them."""
    burst = Fault(
        3, "gilbert_elliott", Impair("h1-s1", ("h1->s1",), GilbertElliott(0.05, 0.2)), AtTime(1.0)
    )
    loss = Fault(4, "loss", Impair("h1-s1", ("h1->s1",), Drop(0.25)), AtTime(2.0))
    twice = Fault(5, "duplicate", Impair("h1-s1", ("h1->s1",), Duplicate(0.25)), AtTime(2.0))
    down = Fault(9, "link_down", LinkDown("h1-s1"), AtTime(3.0), 1.0)
    steps = ([burst], [loss, twice], [down], [down], [burst, loss, twice])
    faults = (burst, loss, twice, down)
    begun: set[int] = set()
    way = Direction(impairments=(PeriodicDrop(100, 1, 50),))
    topology = rack(1, up=way)
    with MininetNetwork(topology, 7, scratch, scratch / "logs", None, faults) as net:
        sending = packet_socket(net, "h1", "h1-eth0", receive=False)
        receiving = packet_socket(net, "s1", "s1-eth1", receive=True)
        for turn, changing in enumerate(((), *steps)):
            for fault in changing:
                begun ^= {fault.number}
                switch(net, fault, fault.number in begun)
            for number in range(turn * each, (turn + 1) * each):
                sending.send(frame(number, 60))
        return {"received": drain(receiving), **vars(net.statistics().directions[0])}


def rate_change(scratch: Path, shaped: bool, frames: int) -> dict[str, Any]:
    """Seconds that `frames` frames of 1250 bytes take at 1 Mbit/s, at 4, and at 1 again; of an
    unshaped link at 4 and at none."""
    slow = Direction(rate_bps=1_000_000, queue_packets=frames) if shaped else Direction()
    fault = Fault(0, "rate", RateChange("h1-s1", ("h1->s1",), 4_000_000), AtTime(0.0), 1.0)
    with MininetNetwork(rack(1, up=slow), 7, scratch, scratch / "logs", None, (fault,)) as net:
        sending = packet_socket(net, "h1", "h1-eth0", receive=False)
        receiving = packet_socket(net, "s1", "s1-eth1", receive=True)

        def seconds() -> float:
            for number in range(frames):
                sending.send(frame(number, 1250))
            times = arrival_times_ns(receiving, frames)
            return (times[-1] - times[frames // 2]) / 1e9

        took = [seconds()]
        net.set_rate(0, ("h1->s1",), 4_000_000)
        took.append(seconds())
        net.set_rate(0, ("h1->s1",), None)
        took.append(seconds())
        return {"took": took, "dropped": net.statistics().directions[0].dropped_by_queue}


def delays(scratch: Path, way: str, frames: int, fault: str, gap_s: float) -> dict[str, Any]:
    """Frames upstream one after the other, `gap_s` apart: number -> microseconds on the way, and
    the order they came in; then the same while a fault of this kind is on, and after it."""
    direction = eval(way, vars(topologies))
    impaired = Impair("h1-s1", ("h1->s1",), eval(fault, vars(topologies)))
    faults = [Fault(0, "delay", impaired, AtTime(0.0))]
    topology = rack(1, up=direction)
    with MininetNetwork(topology, 7, scratch, scratch / "logs", None, faults) as net:
        sending = packet_socket(net, "h1", "h1-eth0", receive=False)
        receiving = packet_socket(net, "s1", "s1-eth1", receive=True)
        parts = []
        for turn in range(3):
            if turn:
                switch(net, faults[0], turn == 1)
            sent_ns = []
            for number in range(frames):
                sent_ns.append(time.time_ns())
                sending.send(frame(number, 60))
                time.sleep(gap_s)
            arrived = [arrival(receiving) for _ in range(frames)]
            parts.append([(n, (at_ns - sent_ns[n]) / 1000) for n, at_ns in arrived])
        return {"parts": parts, "lost": net.statistics().directions[0].dropped_by_queue}


def arrival(receiver: socket.socket) -> tuple[int, int]:
    """A frame's number, and when the kernel received it."""
    received, ancillary, _, _ = receiver.recvmsg(64, socket.CMSG_SPACE(16))
    seconds, nanoseconds = struct.unpack("qq", ancillary[0][2][:16])
    return number_of(received), seconds * 10**9 + nanoseconds


def delay_behind_a_queue(scratch: Path, delay_us: int, frames: int) -> dict[str, Any]:
    """Milliseconds until the first and the last of `frames` frames of 1250 bytes, sent at once at
    10 Mbit/s: a millisecond each."""
    way = Direction(rate_bps=10_000_000, delay_us=delay_us, queue_packets=frames)
    with network(rack(1, up=way), scratch) as net:
        sending = packet_socket(net, "h1", "h1-eth0", receive=False)
        receiving = packet_socket(net, "s1", "s1-eth1", receive=True)
        start_ns = time.time_ns()
        for number in range(frames):
            sending.send(frame(number, 1250))
        times = arrival_times_ns(receiving, frames)
        return {"ms": [(at - start_ns) / 1e6 for at in (times[0], times[-1])]}


def drain_frames(receiver: socket.socket) -> Iterator[bytes]:
    """Frames waiting in the socket."""
    receiver.settimeout(0.2)
    with contextlib.suppress(TimeoutError):
        while True:
            yield receiver.recv(65536)


def drain(receiver: socket.socket) -> list[int]:
    """Numbers waiting in the socket. veth delivers within the send call's softirq: none is late."""
    return [number_of(received) for received in drain_frames(receiver)]


def queue(scratch: Path, limit: dict[str, int], frames: int, size: int) -> dict[str, Any]:
    """More frames at once than the queue holds, at a rate that lets few of them leave meanwhile."""
    topology = rack(1, Direction(rate_bps=2_000_000, **limit))
    with network(topology, scratch) as net:
        sending = packet_socket(net, "h1", "h1-eth0", receive=False)
        receiving = packet_socket(net, "s1", "s1-eth1", receive=True)
        for number in range(frames):
            # A full queue refuses with ENOBUFS.
            with contextlib.suppress(OSError):
                sending.send(frame(number, size))
        arrived, deadline = 0, time.monotonic() + 30
        while time.monotonic() < deadline:
            statistics = net.statistics().directions[0]
            if statistics.packets + statistics.dropped_by_queue == frames:
                break
        arrived = len(drain(receiving))
        return {"arrived": arrived, **vars(statistics)}


def first_frames(scratch: Path, workers: int) -> dict[str, int]:
    """Frames seen of two sent both ways on each link the moment the network is there."""
    with network(rack(workers), scratch) as net:
        for number in range(1, workers + 1):
            for end in ((f"h{number}", f"h{number}-eth0"), ("s1", f"s1-eth{number}")):
                with packet_socket(net, *end, receive=False) as sending:
                    sending.send(frame(0, 60))
                    sending.send(frame(1, 60))
        return {d.direction: d.seen for d in net.statistics().directions}


def quiet(scratch: Path) -> dict[str, Any]:
    """Counters of a network through which exactly 25 frames of 100 bytes went, one way."""
    with network(rack(2, Direction(rate_bps=10**7), Direction(rate_bps=10**7)), scratch) as net:
        sending = packet_socket(net, "h2", "h2-eth0", receive=False)
        receiving = packet_socket(net, "s1", "s1-eth2", receive=True)
        for number in range(25):
            sending.send(frame(number, 100))
        receive_until(receiving, 24)
        with network_namespace(net.mininet["s1"].pid):
            offloads = [run(f"ethtool -k s1-eth{n}") for n in (1, 2)]
        return {
            "directions": {d.direction: vars(d) for d in net.statistics().directions},
            "offloads": offloads,
        }


def processes(scratch: Path) -> dict[str, Any]:
    """Programs in nodes: where they run, their logs, their processor time, their ends."""
    with network(rack(2), scratch) as net:
        burner = net.spawn(
            "h1", [sys.executable, "-c", "x = sum(range(20_000_000)); print('done', x)"], "burner"
        )
        where = net.spawn("h2", ["ip", "-4", "-br", "address"], "where", {"LC_ALL": "C"})
        stubborn = net.spawn("h2", ["sh", "-c", "trap '' TERM; echo up; sleep 1000"], "stubborn")
        priority = os.getpriority(os.PRIO_PROCESS, stubborn.pid)
        autogroup = Path(f"/proc/{stubborn.pid}/autogroup")
        codes = [burner.wait(60), where.wait(10)]
        while "up" not in stubborn.log.read_text():
            assert stubborn.poll() is None
        group = autogroup.read_text().split()[-1] if autogroup.exists() else "-10"
        codes.append(stubborn.stop(grace_s=0.1))
        return {
            "codes": codes,
            "niceness": priority,
            "autogroup": group,
            "burner": burner.log.read_text(),
            "where": where.log.read_text(),
            "cpu_s": net.statistics().cpu_s,
        }


@dataclass(frozen=True)
class FakeTarget:
    """A target that starts `command`; nothing ever serves P4Runtime there."""

    line: tuple[str, ...]

    def command(self, setting: SwitchSetting) -> list[str]:
        return [*self.line, *port_arguments(setting)]

    def control(self, setting: SwitchSetting) -> Control:
        return P4RuntimeControl(setting, Path("none.json"), Path(os.devnull))

    def likely_cause(self, log_tail: list[str]) -> str:
        return f"it said {log_tail[-1]}" if log_tail else ""

    def statistics(self, setting: SwitchSetting, process: NodeProcess) -> SwitchStatistics:
        raise AssertionError("never started")


def switch_fails(scratch: Path, line: list[str], timeout_s: float) -> dict[str, Any]:
    with network(rack(2), scratch) as net:
        try:
            net.start_switch("s1", FakeTarget(tuple(line)), timeout_s)
        except NodeFailed as failure:
            # Leaving the network must be quick though the program never ends by itself.
            return {"says": str(failure), "report": failure.report(), "left": failure.node}
    return {}


@contextlib.contextmanager
def switched(
    topology: Topology,
    scratch: Path,
    program: str,
    p4info: str,
    jobs: list[PlacedJob],
    pcap_dir: str | None = None,
) -> Iterator[tuple[MininetNetwork, RunningSwitch]]:
    """A network whose switch s1 runs the program and has the jobs' entries."""
    captures = Path(pcap_dir) if pcap_dir else None
    with MininetNetwork(topology, 7, scratch, scratch / "logs", captures) as net:
        switch = net.start_switch("s1", NativeTarget(Path(program), Path(p4info)))
        switch.write_entries(job_entries(topology, "s1", jobs))
        yield net, switch


def through_switch(scratch: Path, **options: Any) -> dict[str, Any]:
    with switched(rack(3), scratch, jobs=[], **options) as (net, _switch):
        first = net.mininet["h1"]
        ping = first.cmd(f"ping -c 2 -i 0.1 -W {PATIENCE_S:.0f} 10.0.0.3")
        sent, received = tcp_transfer(net, "h1", "h2", "10.0.0.2", 1_000_000)
        first.cmd("ip route add 10.0.0.2/32 via 10.0.255.254")
        routed = first.cmd(f"ping -c 1 -W {PATIENCE_S:.0f} 10.0.0.2")
        statistics = net.statistics()
        (counted,) = statistics.switches
        return {
            "ping": ping,
            "routed": routed,
            "same": sent == received,
            "directions": [vars(direction) for direction in statistics.directions],
            "ports": counted.details["ports"],
            "ring_drops": counted.ring_drops,
            "cpu_s": counted.cpu_s,
        }


def aggregate(scratch: Path, lanes: int, **options: Any) -> dict[str, Any]:
    """One chunk of job 5, from h3 (rank 0) and h1 (rank 1), and an attempt by h2."""
    jobs = [PlacedJob(4, ("h2",), 0, 8), PlacedJob(5, ("h3", "h1"), 8, 8)]
    with switched(rack(3), scratch, jobs=jobs, **options) as (net, switch):
        sockets = {}
        for number, name in enumerate(("h1", "h2", "h3"), start=1):
            with network_namespace(net.mininet[name].pid):
                sockets[name] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sockets[name].bind((f"10.0.0.{number}", 48865 + 5))
            sockets[name].settimeout(PATIENCE_S)
        # version, kind INT32, job 5, slot 2, exponent, reserved, tag 1 (docs/protocol.md)
        head = struct.pack("!BBHHBBI", 1, 0, 5, 2, 0, 0, 1)
        values = {"h2": [7] * lanes, "h3": list(range(lanes)), "h1": range(100, 100 + 2 * lanes, 2)}
        for name, numbers in values.items():
            payload = head + struct.pack(f"!{lanes}i", *numbers)
            sockets[name].sendto(payload, ("10.0.255.254", 48864))
        answers = {name: sockets[name].recv(9000) for name in ("h1", "h3")}
        sockets["h2"].setblocking(False)
        uninvited = 0
        with contextlib.suppress(BlockingIOError):
            uninvited = len(sockets["h2"].recv(9000))
        names = ("contribution_new", "chunk_complete", "contribution_refused")
        return {
            "sums": {n: struct.unpack(f"!{lanes}i", a[12:]) for n, a in answers.items()},
            "frame_bytes": 54 + 4 * lanes,
            "uninvited": uninvited,
            **{name: trimmed(switch.read_counter(name)) for name in names},
        }


def ring(scratch: Path, lanes: int, program: str, p4info: str) -> dict[str, Any]:
    """Three racks in a ring, one host each, one job: a broadcast, a sum, s1 programmed anew and s2
    started again."""
    topology, job = ring_of_racks(3, 1), PlacedJob(1, ("h1", "h2", "h3"), 0, 8)
    target = NativeTarget(Path(program), Path(p4info))
    entries = plan(topology, [job]).entries
    with network(topology, scratch) as net:
        switches = net.start_switches(dict.fromkeys(entries, target))
        for name, switch in switches.items():
            switch.replace(entries[name])
        listeners = [packet_socket(net, h, f"{h}-eth0", receive=True) for h in ("h2", "h3")]
        with packet_socket(net, "h1", "h1-eth0", receive=False) as sending:
            sending.send(b"\xff" * 6 + frame(1, 60)[6:])
        deadline = time.monotonic() + PATIENCE_S
        while frames_sent(net) < 5 and time.monotonic() < deadline:
            pass
        heard = [[each[:6].hex() for each in drain_frames(listener)] for listener in listeners]
        got: dict[str, Any] = {"heard": heard, "sent": frames_sent(net)}
        workers = udp_sockets(net, topology, 48865 + job.number)
        got["sums"] = sums_of(workers, lanes, tag=1)
        cells = range(2 * job.slots)
        got["tags"] = [sorted(s.read_register("tags", cells))[-2:] for s in switches.values()]
        switches["s1"].reprogram(target)
        got["reprogrammed"] = sorted(switches["s1"].read_register("tags", cells))[-1]
        net.stop_switch("s2")
        net.check()
        switches["s2"] = net.start_switch("s2", target)
        for name in ("s1", "s2"):
            switches[name].replace(entries[name])
        # A new session: ahead of all tags there are.
        got["again"] = sums_of(workers, lanes, tag=(1 << 20) + 1)
        got["cpu_names"] = sorted(net.statistics().cpu_s)
        return got


def frames_sent(net: MininetNetwork) -> int:
    """On all links together."""
    return sum(direction.packets for direction in net.statistics().directions)


def udp_sockets(net: MininetNetwork, topology: Topology, port: int) -> dict[str, socket.socket]:
    """A worker's socket at every host."""
    sockets = {}
    for host in topology.hosts:
        with network_namespace(net.mininet[host.name].pid):
            sockets[host.name] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sockets[host.name].bind((host.ip, port))
        sockets[host.name].settimeout(PATIENCE_S)
    return sockets


def sums_of(workers: dict[str, socket.socket], lanes: int, tag: int) -> list[tuple[int, ...]]:
    """What each of job 1's workers hears when worker n (from 1) contributes n * (lane + 1)."""
    head = struct.pack("!BBHHBBI", 1, 0, 1, 3, 0, 0, tag)
    for n, worker in enumerate(workers.values(), start=1):
        values = (n * (lane + 1) for lane in range(lanes))
        worker.sendto(head + struct.pack(f"!{lanes}i", *values), ("10.0.255.254", 48864))
    return [struct.unpack(f"!{lanes}i", worker.recv(9000)[12:]) for worker in workers.values()]


def trimmed(cells: dict[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """The counter without cells that stayed 0, but for job indexes 0 and 1."""
    return {index: cell for index, cell in cells.items() if index < 2 or cell[0]}


def switch_killed(scratch: Path, **options: Any) -> dict[str, Any]:
    def failure(action: Callable[[], Any]) -> str | None:
        try:
            action()
        except NodeFailed as failed:
            return str(failed)
        return None

    with switched(rack(1), scratch, jobs=[], **options) as (net, switch):
        before = failure(net.check)
        os.kill(switch.process.pid, signal.SIGKILL)
        switch.process.wait(PATIENCE_S)
        asked = failure(lambda: switch.read_counter("malformed"))
        return {"before": before, "after": failure(net.check), "asked": asked}


def refused_entry(scratch: Path, **options: Any) -> dict[str, Any]:
    with switched(rack(1), scratch, jobs=[], **options) as (_net, switch):
        entry = TableEntry("macs", {"dst": 0x020000000001}, "forward", {"port": 1})
        try:
            switch.write_entries(Entries((entry,), {}))
        except NodeFailed as failed:
            return {"says": str(failed)}
    return {}


def programs_started(scratch: Path, workers: int) -> int:
    """How many programs the building of a lossy network starts."""
    started = []
    original = subprocess.Popen.__init__

    def counting(self: Any, *arguments: Any, **options: Any) -> None:
        started.append(arguments[0])
        original(self, *arguments, **options)

    lossy = Direction(rate_bps=10**8, impairments=(Drop(0.01),))
    with (
        unittest.mock.patch.object(subprocess.Popen, "__init__", counting),
        network(rack(workers, lossy, lossy), scratch),
    ):
        return len(started)


def stage(name: str, scratch: Path) -> None:
    """Tell the test where we are and what is ours; then stand still until killed.

    Not by signal.pause(): a signal that comes between Python's last look for one and the call would
    never be seen.
    """
    print(json.dumps({"stage": name, "scratch": str(scratch)}), flush=True)
    while True:
        time.sleep(0.05)


def stand_still(scratch: Path, at: str) -> dict[str, Any]:
    """Stop at a stage of a run's life, for a test to end it there."""
    if at == "before":
        stage(at, scratch)
    with network(rack(3), scratch) as net:
        if at == "built":
            net.spawn("h1", ["sleep", "1000"], "sleeper")
            net.spawn("h2", ["setsid", "--fork", "sleep", "1000"], "orphan").wait()
            stage(at, scratch)
        net._stack.callback(lambda: stage(at, scratch))
    return {}


def stand_still_while_building(scratch: Path) -> dict[str, Any]:
    class Halting(MininetNetwork):
        def _configure(self, node: str) -> None:
            super()._configure(node)
            if node == "h2":
                stage("building", scratch)

    with Halting(rack(3), 7, scratch, scratch / "logs"):
        return {}


def deaf(scratch: Path) -> dict[str, Any]:
    """A clean-up that hangs."""
    try:
        stage("running", scratch)
    except KeyboardInterrupt:
        stage("hanging", scratch)
    return {}


def in_turn(scratch: Path) -> dict[str, Any]:
    """Two networks of the same names, one after the other, in one run; and what the first left."""
    found = []
    for _ in range(2):
        with bridged(rack(2), scratch) as net:
            net.spawn("h1", ["sleep", "1000"], "sleeper")
            ping = net.mininet["h1"].cmd(f"ping -c 1 -W {PATIENCE_S:.0f} 10.0.0.2")
        alive = [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        found.append({"ping": ping, "alive": sorted(map(int, alive))})
    return {"found": found, "run": os.getpid()}


def fail(scratch: Path) -> dict[str, Any]:
    with network(rack(2), scratch):
        raise RuntimeError("a bug of the caller")


def leave(scratch: Path, code: int) -> dict[str, Any]:
    sys.exit(code)


def two_at_once(scratch: Path, gate: str) -> dict[str, Any]:
    """Be built, say so, and only then talk: while the other network is up as well."""
    with bridged(rack(2), scratch) as net:
        print(json.dumps({"stage": "built", "scratch": str(scratch)}), flush=True)
        assert sys.stdin.readline() == "go\n"
        ping = net.mininet["h1"].cmd(f"ping -c 1 -W {PATIENCE_S:.0f} 10.0.0.2")
        return {"ping": ping, "gate": gate}


def main() -> int:
    case, arguments, result = sys.argv[1], json.loads(sys.argv[2]), Path(sys.argv[3])

    def measured(scratch: Path) -> int:
        result.write_text(json.dumps(globals()[case](scratch, **arguments)))
        return 0

    return isolated(measured)


if __name__ == "__main__":
    sys.exit(main())
