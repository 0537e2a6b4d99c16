"""Implements a host in virtual time: the sockets of its agents at the end of a link
(native/host.c)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from agglab.testbed.base.traffic_counters import NodeStatistics
from agglab.testbed.virtual import native
from agglab.testbed.virtual.clock import FRAME, Clock
from agglab.testbed.virtual.frames import Address, FramingSettings, framings_type, packed
from agglab.testbed.virtual.links import LinkDirection
from agglab.testbed.virtual.reception import Datagram, NetworkError, Reception, WrongSum
from agglab.testbed.virtual.workers import AgentNode
from agglab.topologies import Host


class Socket:
    """An agent's UDP socket. own: its address. peers: the addresses with which it communicates.
    Other code refers to them by their index in `peers`."""

    def __init__(self, own: Address, peers: Sequence[Address], agent: AgentNode) -> None:
        self.agent = agent
        settings = [FramingSettings.of(own, peer) for peer in peers]
        self.framings = framings_type(len(settings))(*settings)
        self._first = ctypes.addressof(self.framings)
        self._by_source = {(packed(peer.ip), peer.port): n for n, peer in enumerate(peers)}

    def framing(self, peer: int) -> int:
        """Returns the address of a peer's `struct framing`."""
        return self._first + peer * ctypes.sizeof(FramingSettings)

    def peer(self, ip: bytes, port: int) -> int | None:
        """Returns the index of the peer with this address; None if there is no such peer."""
        return self._by_source.get((ip, port))


class HostNode:
    """A host: its link's outgoing direction, and its agents' sockets by UDP port."""

    def __init__(self, clock: Clock, host: Host) -> None:
        self.name = host.name
        self.sockets: dict[int, Socket] = {}
        self._clock, self._library = clock, clock.library
        self._own_ip = host.ip
        self._reception = Reception(host.mac, host.ip)
        self._agents: list[AgentNode] = []
        self._out: LinkDirection | None = None
        self._local_sent = self._local_received = 0
        self.address: int = self._library.host_new(clock.address, id(self))
        if not self.address:
            raise MemoryError
        self._counts = native.HostCounts.from_address(self.address)
        clock.answer(FRAME, id(self), lambda _, frame: self._receive_other(frame))

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            self._library.host_free(self.address)

    def connect(self, out: LinkDirection, into: LinkDirection) -> None:
        """Connects the host to its link."""
        self._out = out
        self._library.host_connect(self.address, out.address)
        into.end_at(self._library.host_receive, self.address, 0)

    def open(self, own: Address, peers: Sequence[Address], agent: AgentNode) -> None:
        """Opens an agent's socket. It replaces a socket on the same port whose program or session
        has ended."""
        made = self.sockets[own.port] = Socket(own, peers, agent)
        self._library.host_open(
            self.address, own.port, made.framing(0), len(made.framings), agent.address
        )
        agent.send_from(self.address, made.framing(0))
        if agent not in self._agents:
            self._agents.append(agent)

    def send_datagram(self, own: Address, peer: Address, index: int, datagram: bytes) -> None:
        """Sends a datagram to another host over the link, or to this host without using the link,
        as the kernel does."""
        if peer.ip == self._own_ip:
            self._local_sent += 1
            self._clock.at(self._clock.now_ns, self._deliver_here, (own, peer.port, datagram))
        else:
            framing = self.sockets[own.port].framing(index)
            self._library.host_send_datagram(self.address, framing, datagram, len(datagram))

    def _deliver_here(self, what: tuple[Address, int, bytes]) -> None:
        own, port, datagram = what
        found = self.sockets.get(port)
        peer = found.peer(packed(own.ip), own.port) if found else None
        if found and peer is not None and found.agent.alive:
            self._local_received += 1
            found.agent.receive(peer, datagram)

    def send(self, frame: bytes) -> None:
        """Puts a frame on the host's link."""
        assert self._out is not None, "every host has a link"
        self._library.host_send(self.address, frame, len(frame))

    def _receive_other(self, frame: bytes) -> None:
        """Handles a frame that does not have the form in which hosts send frames. A socket receives
        the datagram that the kernel would pass to it. All other frames are ignored."""
        heard = self._reception.receive(frame, self._clock.now_ns)
        if isinstance(heard, Datagram):
            source, own = heard.ports
            found = self.sockets.get(own)
            peer = found.peer(heard.source, source) if found else None
            if found and peer is not None:
                self._give(found.agent, peer, heard.payload)
        elif isinstance(heard, WrongSum):
            source, own = heard.ports
            found = self.sockets.get(own)
            if found and found.peer(heard.source, source) is not None:
                found.agent.kernel_drop()
        elif isinstance(heard, NetworkError):
            own, target = heard.ports
            found = self.sockets.get(own)
            if found and found.peer(heard.target, target) is not None:
                found.agent.network_error()

    def _give(self, agent: AgentNode, peer: int, payload: bytes) -> None:
        """Passes a datagram to an agent's socket. There is no socket any more if the agent's
        program has ended."""
        if agent.alive:
            self._counts.used += 1
            agent.receive(peer, payload)

    def account(self) -> NodeStatistics:
        """Returns what happened to the frames that arrived, and what was sent."""
        assert self._out is not None, "every host has a link"
        counts = self._counts
        unread = sum(agent.unread for agent in self._agents)
        ignored = counts.received - counts.used
        sent = {self._out.name: counts.sent}
        unreported = [agent.unreported for agent in self._agents]
        return NodeStatistics(
            self.name,
            counts.received,
            counts.used,
            ignored,
            sent,
            unread,
            unreported_sent=sum(counts.get("sent", 0) for counts in unreported),
            unreported_received=sum(counts.get("received", 0) for counts in unreported),
            local_sent=self._local_sent,
            local_received=self._local_received,
        )
