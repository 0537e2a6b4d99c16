"""A network in virtual time, for the orchestration: testbed.backend.Backend in one process."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from hosts import wire
from testbed import usage
from testbed.backend import Command, Event, WorkerId
from testbed.faults import Fault, Impair, LinkDown, RateChange
from testbed.impairments import decider, direction_key
from testbed.plan import Entries
from testbed.received import Received
from testbed.statistics import NetworkStatistics, NodeStatistics
from testbed.usage import Usage
from testbed.virtual.causes import Causes, Disturbance
from testbed.virtual.clock import Clock, NeverEnds
from testbed.virtual.frames import Address, Framing, destination_port
from testbed.virtual.links import Way
from testbed.virtual.reception import Datagram, NetworkError, Reception
from testbed.virtual.switches import Chip, SwitchNode
from testbed.virtual.workers import WorkerNode
from topologies import Host, Link, Topology

AGGREGATOR = Address(wire.AGGREGATOR_MAC, wire.AGGREGATOR_ADDRESS, wire.AGGREGATOR_PORT)
AGGREGATOR_IP = ipaddress.IPv4Address(wire.AGGREGATOR_ADDRESS).packed


class HostNode:
    """A host: its link's way out, and a socket of each worker's by UDP port."""

    def __init__(self, clock: Clock, host: Host) -> None:
        self.name = host.name
        self.out: Way | None = None
        self.sockets: dict[int, tuple[Framing, WorkerNode]] = {}
        self._clock = clock
        self._reception = Reception(host.mac, host.ip)
        self._workers: list[WorkerNode] = []
        self._received = self._used = self._sent = 0

    def open(self, port: int, framing: Framing, worker: WorkerNode) -> None:
        """A worker's socket, instead of one that ended with its program."""
        self.sockets[port] = (framing, worker)
        self._workers.append(worker)

    def send(self, frame: bytes) -> None:
        """Put a frame on the host's link."""
        assert self.out is not None, "every host has a link"
        self._sent += 1
        self.out.send(frame)

    def receive(self, frame: bytes) -> None:
        """Give the socket what the kernel would; anything else is ignored."""
        self._received += 1
        found = self.sockets.get(destination_port(frame))
        payload = found[0].payload(frame) if found else None
        if found and payload is not None:
            self._give(found[1], payload)
            return
        heard = self._reception.receive(frame, self._clock.now_ns)
        if isinstance(heard, Datagram) and heard.source == AGGREGATOR_IP:
            source, own = heard.ports
            if source == AGGREGATOR.port and own in self.sockets:
                self._give(self.sockets[own][1], heard.payload)
        elif isinstance(heard, NetworkError) and heard.target == AGGREGATOR_IP:
            own, target = heard.ports
            if target == AGGREGATOR.port and own in self.sockets:
                self.sockets[own][1].network_error()

    def _give(self, worker: WorkerNode, payload: bytes) -> None:
        """A datagram for a worker's socket, which is gone if its program has ended."""
        if worker.alive:
            self._used += 1
            worker.receive(payload)

    def account(self) -> NodeStatistics:
        """What became of the frames that arrived, and what was sent."""
        assert self.out is not None, "every host has a link"
        unread = sum(worker.unread for worker in self._workers)
        ignored = self._received - self._used
        sent = {self.out.name: self._sent}
        untold = [worker.untold for worker in self._workers]
        return NodeStatistics(
            self.name,
            self._received,
            self._used,
            ignored,
            sent,
            unread,
            untold_sent=sum(counts.get("sent", 0) for counts in untold),
            untold_received=sum(counts.get("received", 0) for counts in untold),
        )


class VirtualBackend:
    """All nodes and links of a topology under one clock. limit_ns: where time has to be over."""

    def __init__(
        self,
        topology: Topology,
        seed: int,
        program: Path | Chip,
        switch_delay_ns: int = 0,
        limit_ns: int | None = None,
    ) -> None:
        self.topology, self.seed = topology, seed
        self.clock = Clock()
        self._limit_ns = limit_ns
        chip = program if isinstance(program, Chip) else Chip(program)
        self._causes = Causes(self.clock)
        self._disturbing: dict[object, Disturbance] = {}
        self._hosts = {host.name: HostNode(self.clock, host) for host in topology.hosts}
        self._switches = {
            switch.name: SwitchNode(
                self.clock, switch.name, chip, seed, switch_delay_ns, self._causes.hit
            )
            for switch in topology.switches
        }
        self._ways: dict[str, Way] = {}
        for link in topology.links:
            self._lay(link)
        self._workers: dict[WorkerId, WorkerNode] = {}
        self._received: dict[tuple[int, int, int], Received] = {}
        self._events: list[Event] = []

    def _lay(self, link: Link) -> None:
        for name, sender, receiver, direction in link.directions():
            deliver = self._deliver(receiver.node, receiver.port)
            hit = self._causes.hit
            way = Way(self.clock, self.seed, link.name, name, direction, deliver, hit)
            self._ways[name] = way
            if sender.node in self._switches:
                self._switches[sender.node].ports[sender.port] = way
            else:
                self._hosts[sender.node].out = way

    def _deliver(self, node: str, port: int) -> Callable[[bytes], None]:
        switch = self._switches.get(node)
        if switch is None:
            return self._hosts[node].receive
        return lambda frame: switch.receive(port, frame)

    def __enter__(self) -> VirtualBackend:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for switch in self._switches.values():
            switch.close()

    def now_ns(self) -> int:
        return self.clock.now_ns

    def wait(self, until_ns: int) -> list[Event]:
        """Let time pass; events as soon as there are any, or none at `until_ns`."""
        if not self._events:
            limit_ns = until_ns if self._limit_ns is None else min(until_ns, self._limit_ns)
            self.clock.run(limit_ns, lambda: bool(self._events))
            if not self._events and limit_ns < until_ns:
                raise NeverEnds(f"not over after {limit_ns / 1e9:g} s of virtual time")
        events = list(self._events)
        self._events.clear()
        return events

    def progress(self) -> list[Event]:
        """Of every worker in a round; nothing of it is an event of the run."""
        found = (node.progress() for node in self._workers.values())
        return [event for event in found if event]

    # Workers.

    def start_worker(self, worker: WorkerId, configuration: Mapping[str, Any]) -> None:
        host = self._hosts[worker.host]
        known = self.topology.host(worker.host)
        port = configuration["bind"][1]
        framing = Framing(Address(known.mac, known.ip, port), AGGREGATOR)

        def send(datagram: bytes) -> None:
            host.send(framing.frame(datagram))

        def again(slot: int, tag: int, first_sent_ns: int) -> None:
            self._causes.sent_again(worker.host, (worker.job, slot, tag), first_sent_ns)

        def keep(number: int, received: Received) -> None:
            self._received[worker.job, configuration["rank"], number] = received

        self._disturb(("killed", worker), None, False)
        node = WorkerNode(self.clock, configuration, send, self._events.append, keep, again)
        self._workers[worker] = node
        host.open(port, framing, node)

    def command(self, worker: WorkerId, command: Command) -> None:
        if command["command"] == "slow":
            self._disturb(("slow", worker), worker.job, command["delay_s"] > 0)
        elif command["command"] == "configure":  # whoever is dead is waited for no longer
            for host in {known.host for known in self._workers if known.job == worker.job}:
                self._disturb(("killed", WorkerId(worker.job, host)), None, False)
        node = self._workers.get(worker)
        if node is not None:
            node.command(command)

    def received(self, job: int, rank: int, number: int) -> Received | None:
        return self._received.pop((job, rank, number), None)

    def pause_worker(self, worker: WorkerId, paused: bool) -> None:
        self._disturb(("paused", worker), worker.job, paused)
        self._workers[worker].pause(paused)

    def kill_worker(self, worker: WorkerId) -> None:
        self._disturb(("killed", worker), worker.job, True)
        self._workers[worker].kill()

    def _disturb(self, what: object, job: int | None, on: bool) -> None:
        """A fault begins, or is over, that keeps a node from answering in time."""
        under_way = self._disturbing.pop(what, None)
        if under_way is not None:
            self._causes.end(under_way)
        if on:
            self._disturbing[what] = self._causes.begin(job)

    # Links and switches.

    def begin(self, fault: Fault) -> None:
        action = fault.action
        if isinstance(action, LinkDown):
            for way in self._both(action.link):
                way.take_down()
        elif isinstance(action, RateChange):
            self._disturb(fault, None, True)
            for name in action.directions:
                self._ways[name].change_rate(action.rate_bps)
        elif isinstance(action, Impair):
            for name in action.directions:
                key = direction_key(self.seed, action.link, name, f"fault{fault.number}")
                self._ways[name].impair(fault.number, decider(action.impairment, key))

    def end(self, fault: Fault) -> None:
        action = fault.action
        if isinstance(action, LinkDown):
            for way in self._both(action.link):
                way.bring_up()
        elif isinstance(action, RateChange):
            self._disturb(fault, None, False)
            for name in action.directions:
                self._ways[name].change_rate(None)
        elif isinstance(action, Impair):
            for name in action.directions:
                self._ways[name].relieve(fault.number)

    def _both(self, link: str) -> list[Way]:
        return [way for way in self._ways.values() if way.link == link]

    def install(self, switch: str, entries: Entries) -> None:
        self._switches[switch].install(entries)

    def inject(self, host: str, frames: Sequence[bytes]) -> None:
        for frame in frames:
            self._hosts[host].send(frame)

    def stop_switch(self, switch: str) -> None:
        self._disturb(switch, None, True)
        self._switches[switch].stop()

    def start_switch(self, switch: str) -> None:
        self._disturb(switch, None, False)
        self._switches[switch].start()

    def reprogram_switch(self, switch: str) -> None:
        self._disturb(switch, None, True)
        self._switches[switch].restart()
        self._disturb(switch, None, False)

    def counters(self, switch: str, counter: str) -> dict[int, tuple[int, int]] | None:
        return self._switches[switch].counters(counter)

    def registers(self, switch: str, register: str, indices: list[int]) -> list[int] | None:
        return self._switches[switch].registers(register, indices)

    def statistics(self) -> NetworkStatistics:
        return NetworkStatistics(
            directions=tuple(way.statistics() for way in self._ways.values()),
            switches=tuple(switch.statistics() for switch in self._switches.values()),
            cpu_s={},
            nodes=(
                *(host.account() for host in self._hosts.values()),
                *(switch.account() for switch in self._switches.values()),
            ),
            repeats=self._causes.repeats(),
        )

    def carried_bytes(self) -> dict[str, int]:
        return {name: way.carried_bytes() for name, way in self._ways.items()}

    def usage(self) -> Usage:
        """None: no program of its own runs here."""
        return usage.NOTHING
