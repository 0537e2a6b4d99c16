"""Implements testbed.backend.Backend as a network in virtual time, in one process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any

from agglab.hosts import wire
from agglab.hosts.endpoint import Repeat
from agglab.hosts.part import WORKER
from agglab.testbed.base import processor_time
from agglab.testbed.base.processor_time import Usage
from agglab.testbed.base.traffic_counters import NetworkStatistics
from agglab.testbed.base.worker_id import Event, WorkerId
from agglab.testbed.run.backend import Command, CounterMeter
from agglab.testbed.run.impairments import decider, direction_key
from agglab.testbed.run.samples import Record, Row, Tracks
from agglab.testbed.schema.faults import Fault
from agglab.testbed.systems.base import SlotMeter
from agglab.testbed.systems.plan import Entries
from agglab.testbed.systems.plan.forwarding import mac_towards
from agglab.testbed.systems.received_arrays import Received
from agglab.testbed.virtual.causes import Causes, Disturbance, Pair
from agglab.testbed.virtual.clock import HIT, Clock, NeverEnds
from agglab.testbed.virtual.frames import Address, packed
from agglab.testbed.virtual.gathered import Gatherings
from agglab.testbed.virtual.hosts import HostNode
from agglab.testbed.virtual.links import LinkDirection
from agglab.testbed.virtual.recordings import NOTHING, SwitchRecording, Wanted
from agglab.testbed.virtual.switches import CompiledProgram, SwitchNode
from agglab.testbed.virtual.workers import AgentNode, Inboxes
from agglab.topologies import Host, Link, Topology
from agglab.topologies.graph import Impairment

AGGREGATOR = Address(wire.AGGREGATOR_MAC, wire.AGGREGATOR_ADDRESS, wire.AGGREGATOR_PORT)


class VirtualBackend:
    """All nodes and links of a topology under one clock. programs: the program of every switch.
    limit_ns: the time at which the run must be over; None for no limit."""

    def __init__(
        self,
        topology: Topology,
        seed: int,
        programs: Mapping[str, CompiledProgram],
        switch_delay_ns: int = 0,
        limit_ns: int | None = None,
        sample_ns: int = 0,
        slot_meter: SlotMeter | None = None,
        counter_meter: CounterMeter | None = None,
        wanted: Wanted = NOTHING,
    ) -> None:
        """sample_ns: how often workers, links and switches are sampled for `record`; 0 for never.
        slot_meter: counts the slots that each switch uses at a sample. counter_meter: reads the
        counters of each switch that are sampled. wanted: what is recorded of switches."""
        self.topology, self.seed = topology, seed
        self.clock = Clock()
        self._limit_ns = limit_ns
        self._causes = Causes(self.clock)
        self.clock.answer(HIT, 0, lambda _, frame: self._causes.hit(frame))
        self._disturbing: dict[object, Disturbance] = {}
        self._by_ip = {host.ip: host for host in topology.hosts}
        self._hosts = {host.name: HostNode(self.clock, host) for host in topology.hosts}
        self._switches = {
            switch: SwitchNode(self.clock, switch, program, seed, switch_delay_ns)
            for switch, program in programs.items()
        }
        self._directions: dict[str, LinkDirection] = {}
        for link in topology.links:
            self._lay(link)
        for name, switch in self._switches.items() if wanted.anything else ():
            switch.record(SwitchRecording(wanted, name, switch.ports))
        self._workers: dict[WorkerId, AgentNode] = {}
        self._dead: set[WorkerId] = set()
        self._inboxes, self._gatherings = Inboxes(), Gatherings()
        self._received: dict[tuple[int, int, int], Received] = {}
        self._events: list[Event] = []
        self._started: list[tuple[WorkerId, AgentNode]] = []
        self._slot_meter = slot_meter
        self._counter_meter = counter_meter
        self._tracks = Tracks(sample_ns, self._look) if sample_ns else None

    def _lay(self, link: Link) -> None:
        ways = {}
        for name, sender, receiver, direction in link.directions():
            made = LinkDirection(self.clock, self.seed, link.name, name, direction)
            self._directions[name] = made
            ways[sender, receiver] = made
        for (sender, receiver), out in ways.items():
            into = ways[receiver, sender]
            switch = self._switches.get(sender.node)
            if switch is None:
                self._hosts[sender.node].connect(out, into)
            else:
                switch.connect(sender.port, out, into)

    def tap(self, told: Callable[[str, bytes], None]) -> None:
        """Makes the clock call `told` with the direction (`h1->s1`) and the content of each frame
        that arrives at any node."""
        for name, direction in self._directions.items():
            direction.tap(partial(told, name))

    def halt(self) -> None:
        """Makes `wait` return, with or without events, after the current action of the clock."""
        self.clock.stop()

    def flush_recordings(self) -> None:
        """Writes all that has been recorded of switches to the files."""
        for switch in self._switches.values():
            switch.flush_recording()

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
            switch.end_recording()

    def now_ns(self) -> int:
        return self.clock.now_ns

    def wait(self, until_ns: int) -> list[Event]:
        """Lets virtual time pass. Returns events as soon as there are any, or an empty sequence at
        `until_ns`. Raises NeverEnds if the limit of the run is reached."""
        if not self._events:
            limit_ns = until_ns if self._limit_ns is None else min(until_ns, self._limit_ns)
            self._go_on(limit_ns)
            if not self._events and limit_ns < until_ns:
                raise NeverEnds(f"not complete after {limit_ns / 1e9:g} s of virtual time")
        events = list(self._events)
        self._events.clear()
        return events

    def _go_on(self, until_ns: int) -> None:
        """Runs the clock until there are events, and takes the samples that are due. Taking a
        sample changes nothing. No sample is taken while nothing can happen."""
        tracks, clock = self._tracks, self.clock
        while tracks and tracks.due_ns < until_ns and not clock.idle:
            if clock.run(max(tracks.due_ns, clock.now_ns), lambda: bool(self._events)):
                return
            tracks.look(clock.now_ns)
        clock.run(until_ns, lambda: bool(self._events))

    def _look(self, now_ns: int) -> dict[object, Row]:
        found: dict[object, Row] = {node: node.sample() for _, node in self._started if node.alive}
        found |= {name: direction.look() for name, direction in self._directions.items()}
        for name, switch in self._switches.items():
            slots = self._slot_meter(self, name) if self._slot_meter else None
            if slots is not None:
                found[switch] = (now_ns, slots)
            counts = self._counter_meter(self, name) if self._counter_meter else {}
            found |= {(name, counter): (now_ns, count) for counter, count in counts.items()}
        return found

    def record(self) -> Record:
        if self._tracks is None:
            return Record()
        self._tracks.look(self.clock.now_ns)
        kept = self._tracks.kept()
        workers: dict[WorkerId, list[Any]] = {}
        counts: dict[WorkerId, Any] = {}
        for worker, node in self._started:
            workers.setdefault(worker, []).extend([kept[node]] if node in kept else [])
            counts[worker] = counts.get(worker, 0) + node.latencies
        switches = {n: kept[switch] for n, switch in self._switches.items() if switch in kept}
        links = {name: kept[name] for name in self._directions}
        counters = {key: rows for key, rows in kept.items() if isinstance(key, tuple)}
        return Record(workers, links, switches, counters, counts, self._tracks.every_ns)

    def progress(self) -> list[Event]:
        """Returns the progress of every worker that is in a round. The progress does not count as
        events of the run."""
        found = (node.progress() for node in self._workers.values())
        return [event for event in found if event]

    # Workers.

    def start_worker(self, worker: WorkerId, configuration: Mapping[str, Any]) -> None:
        host, known = self._hosts[worker.host], self.topology.host(worker.host)
        own = Address(known.mac, known.ip, configuration["bind"][1])

        def send(peer: int, datagram: bytes) -> None:
            host.send_datagram(own, peers[peer], peer, datagram)

        def again(peer: int, repeat: Repeat) -> None:
            self._causes.retransmitted(worker.host, worker.job, repeat, pairs[peer])

        def keep(number: int, received: Received) -> None:
            self._received[worker.job, configuration["rank"], number] = received

        peers: list[Address] = []
        pairs: list[Pair] = []

        def opened(agent: AgentNode) -> None:
            peers[:] = [Address(self._mac(known, ip), ip, port) for ip, port in agent.peers]
            pairs[:] = [frozenset((packed(own.ip), packed(peer.ip))) for peer in peers]
            host.open(own, peers, agent)
            of_job = worker.job, agent.computing_ns, agent.others, lambda: agent.packets
            self._causes.agent(packed(own.ip), own.port, *of_job)

        report = self._events.append
        explained = self._causes.explained(worker.job, worker.host)
        told = (send, report, keep, again, opened)
        shared = (self._inboxes, self._gatherings)
        node = AgentNode(self.clock, configuration, *told, explained, *shared)
        self._workers[worker] = node
        self._started.append((worker, node))

    def _mac(self, own: Host, ip: str) -> str:
        """Returns the MAC address to which a host sends datagrams for an IPv4 address."""
        if ip == wire.AGGREGATOR_ADDRESS:
            return wire.AGGREGATOR_MAC
        return mac_towards(self.topology, own, self._by_ip[ip])

    def command(self, worker: WorkerId, command: Command) -> None:
        if command["command"] == "slow":
            asleep_until_ns = self._workers[worker].busy_until_ns
            self._disturb(("slow", worker), worker.job, command["delay_s"] > 0, asleep_until_ns)
        elif command["command"] == "configure":
            self._forget_deaths(worker)
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
        self._dead.add(worker)
        self._workers[worker].kill()

    def _forget_deaths(self, configured: WorkerId) -> None:
        """Notes whose death keeps nobody waiting any more, because an agent is configured for a new
        session. The session has no worker that is dead. It has all servers, and one that was
        started again answers only after it has been configured itself."""
        node = self._workers.get(configured)
        for dead in [each for each in self._dead if each.job == configured.job]:
            if dead.role == WORKER or (dead == configured and node and node.alive):
                self._disturb(("killed", dead), None, False)
                self._dead.remove(dead)

    def _disturb(self, what: object, job: int | None, on: bool, until_ns: int = 0) -> None:
        """Records that a fault which keeps a node from answering in time begins (`on`) or ends.
        until_ns: the time until which the effect of one that ends lasts."""
        under_way = self._disturbing.pop(what, None)
        if under_way is not None:
            self._causes.end(under_way, until_ns)
        if on:
            self._disturbing[what] = self._causes.begin(job)

    # Links and switches.

    def set_link_down(self, fault: int, link: str, down: bool) -> None:
        for direction in self._both(link):
            if down:
                direction.take_down()
            else:
                direction.bring_up()

    def set_rate(self, fault: int, directions: Sequence[str], rate_bps: int | None) -> None:
        self._disturb(("rate", fault), None, rate_bps is not None)
        for name in directions:
            self._directions[name].change_rate(rate_bps)

    def set_impairment(
        self, fault: int, link: str, directions: Sequence[str], impairment: Impairment, on: bool
    ) -> None:
        for name in directions:
            if on:
                key = direction_key(self.seed, link, name, f"fault{fault}")
                self._directions[name].impair(fault, decider(impairment, key))
            else:
                self._directions[name].end_impairment(fault)

    def expect_fault(self, fault: Fault) -> None:
        pass

    def _both(self, link: str) -> list[LinkDirection]:
        return [direction for direction in self._directions.values() if direction.link == link]

    def write_entries(self, switch: str, entries: Entries) -> None:
        self._switches[switch].write_entries(entries)

    def inject(self, host: str, frames: Sequence[bytes]) -> None:
        for frame in frames:
            self._hosts[host].send(frame)

    def stop_switch(self, switch: str) -> None:
        self._disturb(switch, None, True)
        self._switches[switch].stop()

    def start_switch(self, switch: str) -> None:
        self._disturb(switch, None, False)
        self._switches[switch].start()

    def set_program(self, switch: str, program: CompiledProgram) -> None:
        self._switches[switch].set_program(program)

    def reprogram_switch(self, switch: str) -> None:
        self._disturb(switch, None, True)
        self._switches[switch].restart()
        self._disturb(switch, None, False)

    def entries(self, switch: str) -> Entries:
        return self._switches[switch].entries

    def counters(self, switch: str, counter: str) -> dict[int, tuple[int, int]] | None:
        return self._switches[switch].counters(counter)

    def registers(self, switch: str, register: str, indices: list[int]) -> list[int] | None:
        return self._switches[switch].registers(register, indices)

    def statistics(self) -> NetworkStatistics:
        return NetworkStatistics(
            directions=tuple(direction.statistics() for direction in self._directions.values()),
            switches=tuple(switch.statistics() for switch in self._switches.values()),
            cpu_s={},
            nodes=(
                *(host.account() for host in self._hosts.values()),
                *(switch.account() for switch in self._switches.values()),
            ),
            repeats=self._causes.repeats(),
        )

    def carried_bytes(self) -> dict[str, int]:
        return {name: direction.carried_bytes() for name, direction in self._directions.items()}

    def usage(self) -> Usage:
        """Returns the constant NOTHING, because nodes in virtual time are not separate
        processes."""
        return processor_time.NOTHING
