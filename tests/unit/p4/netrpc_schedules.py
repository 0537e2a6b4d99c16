"""A job of p4/netrpc.p4 with three workers: what the switch is given, and random calls."""

from __future__ import annotations

import random
from dataclasses import replace

from frames import worker_address, worker_mac
from netrpc_model import ARRAY, MAP, NO_PLACE, NOTHING, PAIRS, Gather, Method, Packet, Switch
from tables import Entry, Setup, number

LANES, SLOTS, CELLS, JOB, INDEX, GROUP = 5, 4, 8, 3, 2, 9
PORTS = (1, 2, 3)
DEFINES = {"LANES": LANES, "SLOTS": SLOTS, "CELLS": 3 * CELLS}
COUNTERS = {
    "new": "call_new",
    "duplicate": "call_repeated",
    "stale": "call_stale",
    "lost": "call_lost",
    "refused": "call_refused",
    "complete": "gather_complete",
    "single": "answer_single",
}
OPEN, AGREE, REDUCE, ADD, GET, CLEAR, ACQUIRE, RELEASE, TAKE = range(9)
METHODS = {
    OPEN: Method(ARRAY, opens=True, gathers=True, adds=True, gets=True),
    AGREE: Method(NOTHING, gathers=True),
    REDUCE: Method(ARRAY, gathers=True, adds=True, gets=True),
    ADD: Method(MAP, adds=True),
    GET: Method(MAP, gets=True),
    CLEAR: Method(MAP, clears=True),
    ACQUIRE: Method(MAP, counts=True),
    RELEASE: Method(MAP, clears=True, counts=True),
    TAKE: Method(MAP, gets=True, clears=True),
}


def setup(first_slot: int = 1) -> Setup:
    """Three workers at ports 1 to 3; port 4 leads to a host of no job. The job's cells begin at 8,
    its slots at `first_slot`, of which there are 3; a caller's window has 4 positions."""
    found = Setup(copies={GROUP: [(port, 1 + rank) for rank, port in enumerate(PORTS)]})

    def add(table: str, key: dict[str, int], action: str, arguments: dict[str, int]) -> None:
        found.entries.append(Entry(table, key, action, arguments))

    for rank, port in enumerate(PORTS):
        mac, address = number(worker_mac(port)), number(worker_address(port))
        own = {"job_index": INDEX, "workers": len(PORTS), "flow": 256 * rank, "receiver": 1 + rank}
        own |= {"window": 4, "first_slot": first_slot, "slots": SLOTS - 1, "group": GROUP}
        own |= {"first_cell": CELLS, "cells": CELLS}
        add("members", {"ingress_port": port, "job": JOB, "ipv4.src": address}, "execute", own)
        to = {"mac": mac, "address": address, "udp_port": 48865 + JOB}
        add("receivers", {"job": JOB, "receiver": 1 + rank}, "to_worker", to)
    for call, m in METHODS.items():
        does = {"opens": m.opens, "gathers": m.gathers, "adds": m.adds}
        does |= {"gets": m.gets, "clears": m.clears, "counts": m.counts}
        arguments = {"argument": m.argument, **{name: int(flag) for name, flag in does.items()}}
        add("methods", {"job": JOB, "method": call}, "set_method", arguments)
    return found


def model() -> Switch:
    return Switch(JOB, PORTS, METHODS, SLOTS - 1, 4, CELLS)


def pairs(used: dict[int, tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """used: pair -> (place, value)."""
    return tuple(used.get(i, (NO_PLACE, 0)) for i in range(PAIRS))


def random_packet(chance: random.Random, switch: Switch, opens: bool = True) -> tuple[int, Packet]:
    """Mostly what a worker may send next or again; one packet in twelve is odd in each way. opens:
    whether there are OPENs, too."""

    def odd() -> bool:
        return chance.random() < 1 / 12

    port = 4 if odd() else chance.choice(PORTS)
    number = chance.choice((AGREE, REDUCE, REDUCE, *range(ADD, 10)))
    if opens and (switch.epoch == 0 or chance.random() < 1 / 40):
        number = OPEN
    position = 0 if number <= REDUCE else chance.choice((1, 3))
    position = chance.choice((0, 2, 3, 4, 65535)) if odd() else position
    latest = [switch.sequences.get((other, position), 0) for other in PORTS]
    last = switch.sequences.get((port, position), 0)
    sequence = max(latest) + (min(latest) == max(latest)) if number <= REDUCE else last + 1
    sequence = last + chance.choice((-2, -1, 0, 0, 2, 1 << 20)) if odd() else sequence
    sequence = last if chance.random() < 1 / 5 else sequence
    if number <= REDUCE and chance.random() < 2 / 3:
        number = switch.gathers.get((position, sequence % 2), Gather()).method or number
    method = METHODS.get(number, METHODS[AGREE])
    epoch = switch.epoch + odd()
    packet = Packet(JOB + odd(), position, max(0, sequence), number, epoch, chance.randrange(256))
    kind = chance.choice((ARRAY, MAP)) if odd() else method.argument
    if kind == ARRAY:
        packet = replace(packet, values=tuple(chance.getrandbits(32) for _ in range(LANES)))
    elif kind == MAP:
        used = {chance.choice((0, 0, 1, 31)): (chance.randrange(2), chance.getrandbits(32))}
        used |= {0: (chance.randrange(3), chance.getrandbits(32))} if not odd() else {}
        used |= {7: (CELLS, 1)} if odd() else {}
        packet = replace(packet, pairs=pairs(used))
    return port, replace(packet, result=odd())
