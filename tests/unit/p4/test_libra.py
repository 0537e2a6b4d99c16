"""p4/libra.p4, filled as the testbed fills it for a rack of three workers and two servers: random
schedules beside a model, what is refused, and what is copied."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from frames import checksum, udp_checksum
from libra_model import LibraSwitch

from agglab.systems.libra import wire
from agglab.testbed.scenario import ResolvedScenario, load
from agglab.testbed.systems.frames import End, end_of, ethernet, ipv4, udp
from agglab.testbed.systems.plan import Entries
from agglab.testbed.systems.spoofing import AGGREGATOR
from agglab.testbed.virtual.switches import CompiledProgram
from agglab.verification import programs
from p4native.switch import Pipeline

LANES, WORKERS, SERVERS = 3, 3, 2
WORKER_PORT, SERVER_PORT = 48866, 40674
OUTSIDER = 4
TEXT = f"""
system: libra
backend: virtual
topology: {{workers: 4, servers: {SERVERS}}}
switch: {{lanes: {LANES}}}
libra: {{servers: "p*", hot: 12}}
workload: {{kind: push_pull, elements: 10}}
jobs: [{{workers: "h[123]"}}]
"""
Counted = Callable[..., int]


@pytest.fixture(scope="module")
def resolved(tmp_path_factory: pytest.TempPathFactory) -> ResolvedScenario:
    path = tmp_path_factory.mktemp("libra") / "libra.yaml"
    path.write_text(TEXT)
    return load(path).points[0].resolved


@pytest.fixture
def switch(resolved: ResolvedScenario) -> Iterator[Pipeline]:
    parameters = resolved.system.sources(resolved.scenario)["switch"].parameters
    compiled = programs.compiled("libra", lanes=LANES, slots=parameters["SLOTS"])
    program = CompiledProgram(compiled.json)
    job = resolved.whole(resolved.jobs[0])
    entries: Entries = resolved.system.tables(resolved.graph, [job])["s1"]
    with program.pipeline(seed=1) as pipeline:
        for entry in entries.tables:
            program.add(pipeline, entry)
        for group, replicas in entries.groups.items():
            pipeline.replication.set_multicast_group(group, replicas)
        yield pipeline


@pytest.fixture
def counted(switch: Pipeline) -> Counted:
    def packets(name: str, index: int = 0) -> int:
        return switch.counters.read(f"LibraIngress.{name}", index)[0]

    return packets


def host(resolved: ResolvedScenario, name: str, port: int) -> End:
    return end_of(resolved.graph.host(name), port)


def payload(kind: int, values: Any = (), keys: Any = (), **fields: int) -> bytes:
    header = np.zeros(1, wire.HEADER)
    header["version"], header["kind"], header["job"] = wire.VERSION, kind, 1
    header["session"], header["items"], header["pairs"] = 1, 4, max(len(keys), len(values))
    for name, value in fields.items():
        header[name] = value
    body = np.array(keys, ">u8").tobytes() + np.array(values, ">u4").tobytes()
    return header.tobytes() + body


def frame(source: End, to: End, body: bytes) -> bytes:
    return ethernet(to.mac, source.mac, ipv4(source.ip, to.ip, udp(source, to, body)))


def taken_apart(whole: bytes) -> tuple[bytes, bytes, int, bytes, int, bytes]:
    """(receiver's MAC, sender's and receiver's IP and port, payload); its checksums are right."""
    assert checksum(whole[14:34]) == 0
    total = struct.unpack_from("!H", whole, 16)[0]
    assert total == len(whole) - 14
    source, to, datagram = whole[26:30], whole[30:34], whole[34:]
    source_port, port, length, check = struct.unpack_from("!HHHH", datagram)
    assert length == total - 20
    assert check == udp_checksum(source, to, datagram[:6] + b"\0\0" + datagram[8:])
    return whole[:6], source, source_port, to, port, datagram[8:]


def request(chance: random.Random, step: int) -> bytes:
    """Mostly of hot keys, of few groups, and of the round that it is about time for."""
    fields = {
        "session": 1 + step // 200,
        "round": max(0, step % 200 // 30 + chance.choice((0,) * 16 + (-1, 1))),
        "digest": chance.choice((7, 7, 7, 7, 8)),
        "item": chance.randrange(2),
        "server": chance.randrange(SERVERS),
        "attempt": chance.randrange(3),
    }
    if chance.random() < 0.2:
        pairs = chance.randrange(6)
        values = [chance.randrange(2**32) for _ in range(pairs)]
        return payload(wire.Kind.PUSH, values, range(pairs), **fields)
    if chance.random() < 0.1:
        return payload(chance.choice((wire.Kind.PULL, wire.Kind.LEARN)), **fields)
    values = [chance.choice((chance.randrange(2**32), 2**31 - 1, 2**32 - 1)) for _ in range(LANES)]
    keys = [fields["item"] * LANES + lane for lane in range(LANES)]
    return payload(wire.Kind.HOT, values, keys, **fields)


@pytest.mark.long(but=["0", "5", "3", "1"])
@pytest.mark.parametrize("seed", range(6))
def test_random_schedules_beside_a_model(
    switch: Pipeline, resolved: ResolvedScenario, seed: int
) -> None:
    chance, model = random.Random(seed), LibraSwitch(LANES, tuple(range(WORKERS)))
    sums = 0
    for step in range(400):
        rank = chance.randrange(WORKERS)
        source = host(resolved, f"h{rank + 1}", WORKER_PORT)
        body = request(chance, step)
        found = switch.process(rank + 1, frame(source, AGGREGATOR, body), 0)
        wanted = model.take(rank, body)
        if wanted is None:
            assert found == []
            continue
        server = host(resolved, f"p{wanted[0] + 1}", SERVER_PORT)
        ((port, whole),) = found
        assert port == 5 + wanted[0]
        parts = (server.mac, source.ip, source.port, server.ip, server.port, wanted[1])
        assert taken_apart(whole) == parts
        sums += wanted[1][1] == wire.Kind.SUM
    assert sums > 20


HOT = payload(wire.Kind.HOT, [1] * LANES, range(LANES))
REFUSED = {
    "version": payload(wire.Kind.HOT, [1] * LANES, range(LANES), version=2),
    "a switch's kind": payload(wire.Kind.SUM, [1] * LANES, range(LANES), workers=7),
    "a server's kind": payload(wire.Kind.HOT_RESULT, [1] * LANES),
    "no kind": payload(0x65),
    "names workers": payload(wire.Kind.HOT, [1] * LANES, range(LANES), workers=7),
    "fewer pairs": payload(wire.Kind.HOT, [1] * 2, range(2)),
    "more than it says": HOT + b"abcd",
    "item": payload(wire.Kind.HOT, [1] * LANES, range(LANES), item=70),
    "item beyond 32 bits": payload(wire.Kind.HOT, [1] * LANES, range(LANES), item=2**31),
    "server": payload(wire.Kind.HOT, [1] * LANES, range(LANES), server=SERVERS),
    "server of a push": payload(wire.Kind.PUSH, [1], [1], server=SERVERS),
    "job": payload(wire.Kind.HOT, [1] * LANES, range(LANES), job=2),
    "shorter": HOT[:-4],
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_request_is_refused_and_leaves_nothing(
    switch: Pipeline, resolved: ResolvedScenario, counted: Counted, what: str
) -> None:
    source = host(resolved, "h1", WORKER_PORT)
    assert switch.process(1, frame(source, AGGREGATOR, REFUSED[what]), 0) == []
    assert counted("requests.refused", 0) + counted("requests.refused", 16) == 1
    assert counted("requests.hot_new") == 0


def test_the_last_group_of_a_jobs_slots_is_summed_and_the_next_is_refused(
    switch: Pipeline, resolved: ResolvedScenario, counted: Counted
) -> None:
    """The slots behind them are the next job's."""
    slots, source = resolved.jobs[0].slots, host(resolved, "h1", WORKER_PORT)
    for place, counts in ((slots - 1, (1, 0)), (slots, (1, 1))):
        item, server = divmod(place, SERVERS)
        body = payload(wire.Kind.HOT, [1] * LANES, range(LANES), item=item, server=server)
        assert switch.process(1, frame(source, AGGREGATOR, body), 0) == []
        assert (counted("requests.hot_new"), counted("requests.refused")) == counts


@pytest.mark.parametrize("port", [2, OUTSIDER, 5])
def test_who_is_not_at_the_port_of_the_address_is_refused(
    switch: Pipeline, resolved: ResolvedScenario, counted: Counted, port: int
) -> None:
    source = host(resolved, "h1", WORKER_PORT)
    assert switch.process(port, frame(source, AGGREGATOR, HOT), 0) == []
    assert counted("requests.refused", 0) + counted("requests.refused", 16) == 1
    assert counted("requests.hot_new") == 0


@pytest.mark.parametrize("at", [20, 40, 60, 90, 110])
def test_a_request_with_an_inverted_bit_is_not_summed(
    switch: Pipeline, resolved: ResolvedScenario, counted: Counted, at: int
) -> None:
    whole = bytearray(frame(host(resolved, "h1", WORKER_PORT), AGGREGATOR, HOT))
    whole[at] ^= 4
    assert switch.process(1, bytes(whole), 0) == []
    assert counted("requests.hot_new") == 0


def result(resolved: ResolvedScenario, to: str = "h1", server: str = "p1", **fields: int) -> bytes:
    told = host(resolved, to, 48864)
    body = payload(wire.Kind.HOT_RESULT, [5] * LANES, workers=7, **fields)
    return frame(host(resolved, server, SERVER_PORT), told, body)


def test_a_result_for_all_is_copied_to_each(
    switch: Pipeline, resolved: ResolvedScenario, counted: Counted
) -> None:
    whole = result(resolved)
    copies = switch.process(5, whole, 0)
    assert sorted(port for port, _ in copies) == [1, 2, 3]
    server = host(resolved, "p1", SERVER_PORT)
    for port, copy in copies:
        worker = host(resolved, f"h{port}", WORKER_PORT)
        parts = (worker.mac, server.ip, server.port, worker.ip, worker.port, whole[42:])
        assert taken_apart(copy) == parts
    assert counted("results.result_copied") == 1


def test_a_result_of_anybody_else_is_not_copied(
    switch: Pipeline, resolved: ResolvedScenario, counted: Counted
) -> None:
    whole = result(resolved)
    assert switch.process(OUTSIDER, whole, 0) == []
    assert counted("forwarding.forged") == 1
    own = frame(host(resolved, "h4", SERVER_PORT), host(resolved, "h1", 48864), whole[42:])
    assert switch.process(OUTSIDER, own, 0) == [(1, own)]
    spoilt = whole[:-1] + bytes([whole[-1] ^ 1])
    assert switch.process(5, spoilt, 0) == [(1, spoilt)]
    other = result(resolved, job=9)
    assert switch.process(5, other, 0) == [(1, other)]
    assert counted("results.result_copied") == 0


def test_what_goes_between_hosts_is_forwarded_as_it_is(
    switch: Pipeline, resolved: ResolvedScenario, counted: Counted
) -> None:
    worker, server = host(resolved, "h1", WORKER_PORT), host(resolved, "p1", SERVER_PORT)
    direct = frame(worker, server, HOT)
    assert switch.process(1, direct, 0) == [(5, direct)]
    answer = frame(server, worker, payload(wire.Kind.PULL_RESULT, [1]))
    assert switch.process(5, answer, 0) == [(1, answer)]
    assert counted("forwarding.forwarded") == 2


@pytest.mark.parametrize("size", [0, 1, 35, 36 + 4 * LANES])
def test_datagrams_of_others_to_the_same_port_are_forwarded(
    switch: Pipeline, resolved: ResolvedScenario, counted: Counted, size: int
) -> None:
    to = host(resolved, "p1", AGGREGATOR.port)
    other = frame(host(resolved, "h1", WORKER_PORT), to, bytes(size))
    assert switch.process(1, other, 0) == [(5, other)]
    assert counted("forwarding.forwarded") == 1
