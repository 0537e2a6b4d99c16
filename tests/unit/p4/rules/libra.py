"""p4/libra.p4 against systems/libra/README.md."""

from __future__ import annotations

import random
import struct
from collections import Counter

import numpy as np
from conversations import Conversation, Step
from frames import ETHERNET, UDP, ipv4, to_aggregator, udp_checksum, worker_address, worker_mac
from libra_model import LibraSwitch
from tables import Entry, Setup, number

from agglab.systems.libra import wire
from agglab.systems.libra.wire import Kind
from rules import Rules

LANES, SLOTS, JOB, INDEX, GROUP = 5, 8, 3, 2, 9
PORTS, SERVER_PORTS = (1, 2, 3), (5, 6)
FIRST_SLOT, WORKER_UDP, SERVER_UDP, TOLD_UDP = 2, 48865 + JOB, 40673 + JOB, 48864
OUTSIDERS = 16
"""The index of counters of what is in no job."""
COUNTED = ("hot_new", "hot_duplicate", "hot_passed", "passed", "group_complete", "sum_repeated")
EVERYBODY = (1 << len(PORTS)) - 1


def job() -> Setup:
    """Three workers and two servers at one switch; results for all go to the first worker."""
    setup = Setup({GROUP: PORTS})
    for rank, port in enumerate(PORTS):
        whose = {"job_index": INDEX, "worker": 1 << rank, "all_workers": EVERYBODY}
        whose["address"] = number(worker_address(port))
        key = {"ingress_port": port, "libra.job": JOB}
        setup.entries.append(Entry("members", key, "contribute", whose))
        key = {"egress_port": port, "libra.job": JOB}
        setup.entries.append(Entry("receivers", key, "to_worker", host(port, WORKER_UDP)))
    for index, port in enumerate(SERVER_PORTS):
        where = {"port": port, "first_slot": FIRST_SLOT, "slots": SLOTS - FIRST_SLOT}
        arguments = {**host(port, SERVER_UDP), **where, "server_count": len(SERVER_PORTS)}
        key = {"libra.job": JOB, "libra.server": index}
        setup.entries.append(Entry("servers", key, "to_server", arguments))
        way = {"ingress_port": port, "ipv4.src": number(worker_address(port))}
        key = {**way, "ipv4.dst": number(worker_address(PORTS[0])), "libra.job": JOB}
        copied = {"job_index": INDEX, "group": GROUP}
        setup.entries.append(Entry("groups", key, "copy", copied))
    return setup


def host(port: int, udp_port: int) -> dict[str, int]:
    """The host at `port`, as the arguments of an action."""
    mac, address = number(worker_mac(port)), number(worker_address(port))
    return {"mac": mac, "address": address, "udp_port": udp_port}


def frame(source: int, source_udp: int, to: int, udp_port: int, body: bytes) -> bytes:
    """As it leaves a switch that has written its checksum: 0 stands for 0xffff."""
    ends = worker_address(source), worker_address(to)
    head = source_udp, udp_port, 8 + len(body)
    check = udp_checksum(*ends, struct.pack(UDP, *head, 0) + body) % 0xFFFF
    ethernet = struct.pack(ETHERNET, worker_mac(to), worker_mac(source), 0x0800)
    return ethernet + ipv4(struct.pack(UDP, *head, check) + body, *ends)


def payload(chance: random.Random, of: int, count: int, **fields: int) -> bytes:
    """of: its kind; fields: what else its header says, or says otherwise."""
    header = np.zeros(1, wire.HEADER)
    header["version"], header["kind"], header["job"] = wire.VERSION, of, JOB
    header["items"], header["pairs"] = 3, count
    for name, value in fields.items():
        header[name] = value
    keys = 8 * count if of in (Kind.HOT, Kind.PUSH) else 0
    values = b"".join(
        struct.pack("!I", chance.choice((chance.getrandbits(32), 2**31 - 1, 2**32 - 1)))
        for _ in range(count)
    )
    return header.tobytes() + chance.randbytes(keys) + values


def request(chance: random.Random, step: int) -> tuple[int, bytes, bool]:
    """(port, datagram, whether it is refused): mostly hot keys of few groups, of about the round
    that it is time for; one request in ten is odd."""
    fields = {
        "session": 1 + step // 120,
        "round": max(0, step % 120 // 25 + chance.choice((0,) * 16 + (-1, 1))),
        "digest": chance.choice((7, 7, 7, 7, 8)),
        "item": chance.randrange(2),
        "server": chance.randrange(2),
        "attempt": chance.randrange(3),
    }
    kind = chance.choice((Kind.HOT,) * 8 + (Kind.PUSH, Kind.PULL, Kind.LEARN))
    pairs = {Kind.HOT: LANES, Kind.PUSH: chance.randrange(LANES + 1)}.get(kind, 0)
    port = chance.choice(PORTS)
    odd: list[dict[str, int]] = [{"version": 2}, {"kind": 0x65}, {"kind": Kind.SUM}, {"server": 2}]
    odd += [{"workers": 7}, {"job": JOB + 1}]
    odd += [{"item": 3}, {"item": 2**31}, {"pairs": LANES - 1}] if kind == Kind.HOT else []
    if chance.random() < 0.1:
        return port, payload(chance, kind, pairs, **{**fields, **chance.choice(odd)}), True
    return port, payload(chance, kind, pairs, **fields), False


def at_random(chance: random.Random, length: int = 240) -> Conversation:
    """What leaves for servers is what the model says."""
    model, steps = LibraSwitch(LANES, tuple(range(len(PORTS)))), []
    refused: Counter[int] = Counter()
    for step in range(length):
        port, body, wrong = request(chance, step)
        job_number = struct.unpack_from("!H", body, 2)[0]
        outsider = chance.random() < 0.03
        sent = to_aggregator(4 if outsider else port, JOB, body)
        if wrong or outsider:
            refused[INDEX if job_number == JOB else OUTSIDERS] += 1
            steps.append(Step(port, sent))
            continue
        found = model.take(PORTS.index(port), body)
        out = [left(port, *found)] if found else []
        steps.append(Step(port, sent, out))
    assert all(model.counts[name] for name in COUNTED)
    counters = {f"{name}({INDEX})": model.counts[name] for name in COUNTED}
    counters |= {f"requests.refused({index})": refused[index] for index in (INDEX, OUTSIDERS)}
    return Conversation(job(), steps, counters)


def left(port: int, server: int, body: bytes) -> tuple[int, bytes]:
    """A worker's request, or the sum in its place, on its way to the server."""
    to = SERVER_PORTS[server]
    return to, frame(port, WORKER_UDP, to, SERVER_UDP, body)


def results(chance: random.Random, length: int = 30) -> Conversation:
    """What servers tell all workers at once; with another job, or by another port, nothing is
    copied, and as nothing else is known of these frames they are flooded to nobody."""
    steps, copied = [], 0
    for _ in range(length):
        port = chance.choice(SERVER_PORTS)
        odd = chance.choice(({}, {}, {"job": JOB + 1}, {"kind": Kind.PULL_RESULT}))
        body = payload(chance, Kind.HOT_RESULT, LANES, **{"workers": EVERYBODY, **odd})
        sent = frame(port, SERVER_UDP, PORTS[0], TOLD_UDP, body)
        came_by = chance.choice((port, port, 4))
        whole = not odd and came_by == port
        copies = [(to, frame(port, SERVER_UDP, to, WORKER_UDP, body)) for to in PORTS]
        steps.append(Step(came_by, sent, copies if whole else ()))
        copied += whole
    assert 0 < copied < length
    return Conversation(job(), steps, {f"result_copied({INDEX})": copied})


RULES = Rules(
    "libra",
    {"LANES": LANES, "SLOTS": SLOTS},
    {"requests": at_random, "results for all": results},
    systems=("libra",),
    members=job(),
    refused=f"requests.refused({OUTSIDERS})",
)
