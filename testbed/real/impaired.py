"""Seeded impairments on real links: one eBPF program for each direction, attached where frames
arrive.

The program runs as XDP in skb mode on the interface that receives the frames. A frame has then used
the link's rate and queue, like a frame lost on a wire, and no socket has seen it yet. clsact
ingress is too late, because it runs after packet sockets, from which P4 switches and tcpdump read,
have received their copy of the frame. If frames are to be duplicated, a second program at clsact
ingress makes the copies.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from dataclasses import dataclass

import numpy as np

from agglab.testbed.real import bpf, clsact, impaired_code
from agglab.testbed.real.rules import DirectionRules, Rule
from agglab.topologies import DropList, GilbertElliott, Impairment


def refused(*impairments: Impairment) -> OSError | None:
    """Returns why this kernel refuses the eBPF programs of impairments, or None if it accepts them.
    Rootless containers and user namespaces may not be allowed to load programs. Loading is tried on
    the loopback interface of the caller's namespace."""
    rules = tuple(Rule(each, 0) for each in impairments)
    try:
        ImpairedDirection("lo", DirectionRules("probe", "probe", rules, ())).close()
    except OSError as error:
        return error
    return None


@dataclass(frozen=True)
class Counts:
    """The counts of one direction of a link. seen: frames that arrived. dropped, corrupted: how
    many of the arrived frames were dropped or corrupted. lost: frames lost because the link was
    down. numbers: the numbers k of the first dropped frames, ascending. copied: copies made.
    unsent: frames that were dropped before they were sent; unsent_bytes: their bytes."""

    seen: int
    dropped: int = 0
    corrupted: int = 0
    lost: int = 0
    numbers: tuple[int, ...] = ()
    copied: int = 0
    unsent: int = 0
    unsent_bytes: int = 0


def _load(stack: contextlib.ExitStack, code: bytes, kind: int) -> int:
    program = bpf.load_program(code, kind)
    stack.callback(os.close, program)
    return program


class ImpairedDirection:
    """The eBPF program of one direction of a link, attached from construction until `close`.

    It must be constructed in the receiving interface's network namespace.
    """

    def __init__(
        self, interface: str, rules: DirectionRules, replaced: ImpairedDirection | None = None
    ) -> None:
        """replaced: the direction's program so far, which is detached. Its counts and the faults
        that are on continue; the states of losses in bursts begin anew."""
        self._rules = rules
        self._on: set[int] = set()
        with contextlib.ExitStack() as stack:
            self._counters = self._array(stack, impaired_code.COUNTER_BYTES)
            self._numbers = self._array(stack, 8, impaired_code.NUMBERS_KEPT)
            self._control = self._array(stack, 8)
            maps = self._maps(stack)
            program = _load(stack, impaired_code.program(rules, maps), bpf.BPF_PROG_TYPE_XDP)
            if impaired_code.copies(rules):
                code = impaired_code.copier(rules, maps)
                copier = _load(stack, code, bpf.BPF_PROG_TYPE_SCHED_CLS)
                stack.callback(clsact.Classifier(copier, interface).close)
            if replaced is not None:
                self._continue(replaced)
            attached = bpf.attach_xdp(program, socket.if_nametoindex(interface))
            stack.callback(os.close, attached)
            self._stack = stack.pop_all()

    def _continue(self, replaced: ImpairedDirection) -> None:
        """Detaches the program so far, and takes over what it has counted."""
        seen, numbers = replaced._counters.read(1), replaced.counts().numbers
        replaced.close()
        self._counters.write(seen)
        for place, number in enumerate(numbers):
            self._numbers.write(struct.pack("<Q", number), place)
        self._on = replaced._on
        self._write_faults()

    def _maps(self, stack: contextlib.ExitStack) -> impaired_code.Maps:
        states, lists = {}, {}
        for place, rule in enumerate(self._rules.rules):
            if isinstance(rule.impairment, GilbertElliott):
                states[place] = self._array(stack, 8 * impaired_code.STATES_KEPT).descriptor
            if isinstance(rule.impairment, DropList):
                listed = bpf.NumberSet(rule.impairment.numbers)
                stack.callback(listed.close)
                lists[place] = listed.descriptor
        due = bpf.ArrayMap(8, kind=bpf.BPF_MAP_TYPE_PERCPU_ARRAY)
        stack.callback(due.close)
        counters, numbers, control = (
            each.descriptor for each in (self._counters, self._numbers, self._control)
        )
        return impaired_code.Maps(counters, numbers, control, due.descriptor, states, lists)

    @staticmethod
    def _array(stack: contextlib.ExitStack, value_bytes: int, entries: int = 1) -> bpf.ArrayMap:
        array = bpf.ArrayMap(value_bytes, entries)
        stack.callback(array.close)
        return array

    def switch(self, fault: int, on: bool) -> None:
        """Begins or ends a fault, given by its number. This takes effect from the next frame on."""
        self._on = self._on | {fault} if on else self._on - {fault}
        self._write_faults()

    def _write_faults(self) -> None:
        bits = sum(1 << bit for bit, number in enumerate(self._rules.faults) if number in self._on)
        self._control.write(struct.pack("<Q", bits))

    def counts(self) -> Counts:
        words = struct.unpack("<6Q", self._counters.read(1))
        seen, dropped, corrupted, lost, copied, _ = words
        kept = self._numbers.read(min(dropped, impaired_code.NUMBERS_KEPT))
        numbers = np.sort(np.frombuffer(kept, dtype="<u8"))
        return Counts(seen, dropped, corrupted, lost, tuple(int(k) for k in numbers), copied)

    def close(self) -> None:
        """Detaches the program; its counts are lost."""
        self._stack.close()
