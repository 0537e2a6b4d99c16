"""Reads quickly how many frames wait in front of links. It asks rtnetlink for the queueing
disciplines of each node's interfaces, over sockets that stay open. `tc -s qdisc show` would report
the same numbers, but is slower because a program has to be started."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Mapping

from agglab.testbed.base.kernel import network_namespace
from agglab.testbed.run.samples import Row
from agglab.topologies import Topology

# linux/netlink.h, linux/rtnetlink.h, linux/gen_stats.h
RTM_GETQDISC, RTM_NEWQDISC = 38, 36
NLM_F_REQUEST, NLM_F_DUMP = 1, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
TC_H_ROOT = 0xFFFFFFFF
TCA_STATS2 = 7
TCA_STATS_BASIC, TCA_STATS_QUEUE = 1, 3
HEADER, TC_MESSAGE, ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=BBHiIII"), "=HH"
ANSWER_BYTES = 1 << 16
REQUEST = HEADER.pack(
    HEADER.size + TC_MESSAGE.size, RTM_GETQDISC, NLM_F_REQUEST | NLM_F_DUMP, 1, 0
) + TC_MESSAGE.pack(0, 0, 0, 0, 0, 0, 0)


class Queues:
    """Reads the queues of all directions of a network. pids: a process of each node."""

    def __init__(self, topology: Topology, pids: Mapping[str, int]) -> None:
        self._sockets: dict[str, socket.socket] = {}
        self._directions: dict[tuple[str, int], str] = {}
        senders = {
            (sender.node, sender.interface): name
            for link in topology.links
            for name, sender, _, _ in link.directions()
        }
        for node, pid in pids.items():
            with network_namespace(pid):
                self._sockets[node] = socket.socket(
                    socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE
                )
                for index, interface in socket.if_nameindex():
                    if name := senders.get((node, interface)):
                        self._directions[node, index] = name

    def look(self, now_ns: int) -> dict[str, Row]:
        """Returns for each direction a row of series.tracks.LINK: the bytes that have left the
        queue so far, the drops so far, and what waits in the queue now."""
        found: dict[str, Row] = {}
        for node, own in self._sockets.items():
            own.send(REQUEST)
            for index, numbers in _root_queues(own):
                if name := self._directions.get((node, index)):
                    found[name] = (now_ns, *numbers)
        return found

    def close(self) -> None:
        for own in self._sockets.values():
            own.close()


def _root_queues(own: socket.socket) -> Iterator[tuple[int, Row]]:
    """Yields (interface's index, (bytes sent, drops, waiting packets, waiting bytes)) for each root
    queueing discipline (qdisc) of a node."""
    while True:
        answer = own.recv(ANSWER_BYTES)
        at = 0
        while at < len(answer):
            length, kind, _, _, _ = HEADER.unpack_from(answer, at)
            if kind in (NLMSG_DONE, NLMSG_ERROR):
                return
            body = at + HEADER.size
            _, _, _, index, _, parent, _ = TC_MESSAGE.unpack_from(answer, body)
            if parent == TC_H_ROOT:
                yield index, _numbers(answer, body + TC_MESSAGE.size, at + length)
            at += length + 3 & ~3


def _numbers(answer: bytes, begin: int, end: int) -> Row:
    sent = drops = packets = waiting = 0
    for kind, place, over in _attributes(answer, begin, end):
        if kind == TCA_STATS2:
            for what, inner, _ in _attributes(answer, place, over):
                if what == TCA_STATS_BASIC:
                    (sent,) = struct.unpack_from("=Q", answer, inner)
                elif what == TCA_STATS_QUEUE:
                    packets, waiting, drops = struct.unpack_from("=III", answer, inner)
    return sent, drops, packets, waiting


def _attributes(answer: bytes, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yields for each netlink attribute its kind, and where its payload begins and ends."""
    while begin + 4 <= end:
        length, kind = struct.unpack_from(ATTRIBUTE, answer, begin)
        yield kind & 0x3FFF, begin + 4, begin + length
        begin += length + 3 & ~3
