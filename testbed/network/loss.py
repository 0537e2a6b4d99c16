"""Seeded loss on real links: the eBPF program of `testbed.impairments`, with counts.

It runs as XDP in skb mode on the interface where the frames arrive: the frame has then used the
link's rate and queue, as a frame lost on a wire has, and no socket has seen it yet. (clsact ingress
comes too late: packet sockets, which P4 switches and tcpdump read, get their copy before it.)
"""

from __future__ import annotations

import os
import socket
import struct
from dataclasses import dataclass

import numpy as np

from testbed.impairments import draws
from testbed.network import bpf
from testbed.network.bpf import FRAME, R0, R1, R2, R3, R4, R7, R8, R9
from topologies import Drop

# How many dropped frame numbers are kept per direction, from the first on.
NUMBERS_KEPT = 65536
# Counter words: frames seen, frames dropped.
SEEN, DROPPED = 0, 8


@dataclass(frozen=True)
class LossCounts:
    """seen: frames that arrived; dropped of them; numbers: the first dropped ones' k, ascending."""

    seen: int
    dropped: int
    numbers: tuple[int, ...]


class LossProgram:
    """One lossy direction: attached from construction until `close`.

    Construct it in the receiving interface's network namespace.
    """

    def __init__(
        self, interface: str, impairment: Drop, seed: int, link: str, direction: str
    ) -> None:
        self._counters = bpf.ArrayMap(value_bytes=16, entries=1)
        self._numbers = bpf.ArrayMap(value_bytes=8, entries=NUMBERS_KEPT)
        code = drop_program(
            draws.direction_key(seed, link, direction),
            draws.threshold(impairment.probability),
            self._counters.descriptor,
            self._numbers.descriptor,
        )
        self._program = bpf.load_xdp(code)
        self._attached = bpf.attach_xdp(self._program, socket.if_nametoindex(interface))

    def counts(self) -> LossCounts:
        seen, dropped = struct.unpack("<QQ", self._counters.read(1))
        kept = np.frombuffer(self._numbers.read(min(dropped, NUMBERS_KEPT)), dtype="<u8")
        return LossCounts(seen, dropped, tuple(int(k) for k in np.sort(kept)))

    def close(self) -> None:
        """Detach; the counts are gone."""
        os.close(self._attached)
        os.close(self._program)
        self._numbers.close()
        self._counters.close()


def drop_program(key: int, threshold: int, counters: int, numbers: int) -> bytes:
    """Code of one direction's program; counters and numbers are descriptors of its maps.

    Registers: r7 counters, r8 the frame's number k, r2 the draw, r9 how many were dropped before.
    """
    a = bpf.Assembler()
    _point_at_counters(a, counters)
    a.alu_imm(R8, "=", 1)
    a.fetch_add(R7, SEEN, R8)
    if threshold < draws.ALWAYS:
        _draw(a, key)
        a.load_imm64(R3, threshold)
        a.jump(">=", R2, R3, "pass")
    a.alu_imm(R9, "=", 1)
    a.fetch_add(R7, DROPPED, R9)
    a.jump_imm(">=", R9, NUMBERS_KEPT, "drop")
    _record_number(a, numbers)
    a.label("drop")
    a.alu_imm(R0, "=", bpf.XDP_DROP)
    a.exit()
    a.label("pass")
    a.alu_imm(R0, "=", bpf.XDP_PASS)
    a.exit()
    return a.code()


def _point_at_counters(a: bpf.Assembler, counters: int) -> None:
    a.alu_imm(R1, "=", 0)
    a.store(FRAME, -4, R1, bpf.W)
    a.load_imm64(R1, counters, bpf.PSEUDO_MAP_FD)
    a.alu(R2, "=", FRAME)
    a.alu_imm(R2, "+", -4)
    a.call(bpf.MAP_LOOKUP_ELEM)
    a.jump_imm("==", R0, 0, "pass")
    a.alu(R7, "=", R0)


def _draw(a: bpf.Assembler, key: int) -> None:
    """r2 = output k of splitmix64 from state key, as in draws.splitmix64; r8 holds k."""
    a.alu(R2, "=", R8)
    a.alu_imm(R2, "+", 1)
    a.load_imm64(R3, draws.GOLDEN)
    a.alu(R2, "*", R3)
    a.load_imm64(R3, key)
    a.alu(R2, "+", R3)
    for shift, multiplier in ((30, draws.MULTIPLIER_1), (27, draws.MULTIPLIER_2), (31, None)):
        a.alu(R3, "=", R2)
        a.alu_imm(R3, ">>", shift)
        a.alu(R2, "^", R3)
        if multiplier is not None:
            a.load_imm64(R3, multiplier)
            a.alu(R2, "*", R3)


def _record_number(a: bpf.Assembler, numbers: int) -> None:
    """numbers[r9] = r8"""
    a.store(FRAME, -4, R9, bpf.W)
    a.store(FRAME, -16, R8, bpf.DW)
    a.load_imm64(R1, numbers, bpf.PSEUDO_MAP_FD)
    a.alu(R2, "=", FRAME)
    a.alu_imm(R2, "+", -4)
    a.alu(R3, "=", FRAME)
    a.alu_imm(R3, "+", -16)
    a.alu_imm(R4, "=", 0)
    a.call(bpf.MAP_UPDATE_ELEM)
