"""A network in virtual time, for the orchestration: testbed.backend.Backend in one process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from hosts import wire
from testbed import usage
from testbed.backend import Command, Event, WorkerId
from testbed.faults import Fault, Impair, LinkDown, RateChange
from testbed.impairments import decider, direction_key
from testbed.plan import Entries
from testbed.statistics import NetworkStatistics
from testbed.usage import Usage
from testbed.virtual.clock import Clock
from testbed.virtual.frames import Address, Framing, destination_port
from testbed.virtual.links import Way
from testbed.virtual.switches import Chip, SwitchNode
from testbed.virtual.workers import WorkerNode
from topologies import Link, Topology

AGGREGATOR = Address(wire.AGGREGATOR_MAC, wire.AGGREGATOR_ADDRESS, wire.AGGREGATOR_PORT)


class NeverEnds(RuntimeError):
    """Virtual time has passed the limit that was set for it."""


class HostNode:
    """A host: its link's way out, and a socket of each worker's by UDP port."""

    def __init__(self) -> None:
        self.out: Way | None = None
        self.sockets: dict[int, tuple[Framing, WorkerNode]] = {}

    def receive(self, frame: bytes) -> None:
        """Give the socket what the kernel would; anything else is ignored."""
        found = self.sockets.get(destination_port(frame))
        if found is not None:
            framing, worker = found
            payload = framing.payload(frame)
            if payload is not None:
                worker.receive(payload)


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
        self._hosts = {host.name: HostNode() for host in topology.hosts}
        self._switches = {
            switch.name: SwitchNode(self.clock, switch.name, chip, seed, switch_delay_ns)
            for switch in topology.switches
        }
        self._ways: dict[str, Way] = {}
        for link in topology.links:
            self._lay(link)
        self._workers: dict[WorkerId, WorkerNode] = {}
        self._sums: dict[tuple[int, int, int], npt.NDArray[np.int32]] = {}
        self._events: list[Event] = []

    def _lay(self, link: Link) -> None:
        for name, sender, receiver, direction in link.directions():
            deliver = self._deliver(receiver.node, receiver.port)
            way = Way(self.clock, self.seed, link.name, name, direction, deliver)
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

    # Workers.

    def start_worker(self, worker: WorkerId, configuration: Mapping[str, Any]) -> None:
        host = self._hosts[worker.host]
        known = self.topology.host(worker.host)
        port = configuration["bind"][1]
        framing = Framing(Address(known.mac, known.ip, port), AGGREGATOR)
        way = host.out
        assert way is not None, "every host has a link"

        def send(datagram: bytes) -> None:
            way.send(framing.frame(datagram))

        def keep(number: int, sums: npt.NDArray[np.int32]) -> None:
            self._sums[worker.job, configuration["rank"], number] = sums

        node = WorkerNode(self.clock, configuration, send, self._events.append, keep)
        self._workers[worker] = node
        host.sockets[port] = (framing, node)

    def command(self, worker: WorkerId, command: Command) -> None:
        node = self._workers.get(worker)
        if node is not None:
            node.command(command)

    def sums(self, job: int, rank: int, number: int) -> npt.NDArray[np.int32] | None:
        return self._sums.pop((job, rank, number), None)

    def pause_worker(self, worker: WorkerId, paused: bool) -> None:
        self._workers[worker].pause(paused)

    def kill_worker(self, worker: WorkerId) -> None:
        self._workers[worker].kill()

    # Links and switches.

    def begin(self, fault: Fault) -> None:
        action = fault.action
        if isinstance(action, LinkDown):
            for way in self._both(action.link):
                way.take_down()
        elif isinstance(action, RateChange):
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
        way = self._hosts[host].out
        assert way is not None, "every host has a link"
        for frame in frames:
            way.send(frame)

    def stop_switch(self, switch: str) -> None:
        self._switches[switch].stop()

    def start_switch(self, switch: str) -> None:
        self._switches[switch].start()

    def reprogram_switch(self, switch: str) -> None:
        self._switches[switch].restart()

    def counters(self, switch: str, counter: str) -> dict[int, tuple[int, int]] | None:
        return self._switches[switch].counters(counter)

    def registers(self, switch: str, register: str, indices: list[int]) -> list[int] | None:
        return self._switches[switch].registers(register, indices)

    def statistics(self) -> NetworkStatistics:
        return NetworkStatistics(
            directions=tuple(way.statistics() for way in self._ways.values()),
            switches=tuple(switch.statistics() for switch in self._switches.values()),
            cpu_s={},
        )

    def usage(self) -> Usage:
        """None: no program of its own runs here."""
        return usage.NOTHING
