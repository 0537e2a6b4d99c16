"""NetRPC's workers and server against independent arithmetic, whatever the network does; the switch
between them is the model that its program is compared with (tests/unit/p4/netrpc_model.py)."""

import random
import struct
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from flow_network import MS, NEVER, TIMING, FlowNetwork, Node, check_sums, deliver, tensors_of
from hypothesis import given, settings
from hypothesis import strategies as st
from mishaps import SLOW_NS, Mishaps, any_mishaps, fall_silent, refuse_all
from netrpc_model import Method, Switch, parse
from switch_model import Faults

from agglab.hosts.agreement import OPERATIONS, Agreement
from agglab.hosts.endpoint import Outbox
from agglab.hosts.errors import AllReduceError, NotFinite, RoundTimeout, ShapeMismatch
from agglab.systems.netrpc import wire
from agglab.systems.netrpc.key_places import PlaceAllocator, in_pairs
from agglab.systems.netrpc.server import OWN_COUNTERS, NetRpcServer
from agglab.systems.netrpc.service import (
    ALL,
    CALLER,
    COUNTER,
    RESERVED,
    SHADOW,
    VALUES,
    WORKERS,
    Array,
    CntFwd,
    Map,
    Service,
    ServiceError,
    load,
    method,
)
from agglab.systems.netrpc.worker import Job, NetRpcWorker
from agglab.testbed.systems.summing.truth import truth_of

AGGREGATOR, SERVER = ("10.0.255.254", 48864), ("10.0.1.1", 6000)
JOB, FIRST = 7, 1
COUNTED = np.dtype([("key", np.uint64), ("value", np.int32)])


def worker_address(rank):
    return f"10.0.0.{rank + 1}", 5000


class Board:
    """The switch as an endpoint that answers."""

    listens = done = True
    deadline_ns = NEVER
    longest_bytes = 4096

    def __init__(self, service, workers, window, cells):
        self.peers = [worker_address(rank) for rank in range(workers)]
        methods = {
            m.number: Method(
                int(m.argument),
                m.number == 0,
                m.gathers,
                m.add_to,
                m.get,
                bool(m.clear) and not m.gathers,
                m.counts,
            )
            for m in (*RESERVED, *service.methods)
        }
        self.make = lambda: Switch(JOB, tuple(range(workers)), methods, window, 256, cells)
        self.switch, self.leaving = self.make(), []

    def on_datagrams(self, now_ns, inbox):
        for row in range(inbox.count):
            rank = int(inbox.peers[row])
            packet = parse(inbox.buffer[row, : inbox.lengths[row]].tobytes())
            answer = self.switch.receive(rank, packet, now_ns // 1000)
            for to in sorted(answer[0]) if answer else ():
                self.leaving.append((to, answer[1].payload()))
        return inbox.count

    def poll(self, now_ns):
        leaving, self.leaving = self.leaving, []
        self.outbox = Outbox(
            np.zeros((max(1, len(leaving)), 4096), np.uint8),
            np.array([len(payload) for _, payload in leaving], np.uint32),
            np.array([to for to, _ in leaving], np.uint32),
        )
        for row, (_, payload) in enumerate(leaving):
            self.outbox.frames[row, : len(payload)] = np.frombuffer(payload, np.uint8)
        return np.arange(len(leaving), dtype=np.uint32)


class CallNode(Node):
    """A worker whose result is as the workload says."""

    def begin_next(self, now_ns):
        while self.endpoint.done and len(self.results) < len(self.tensors):
            if now_ns < self.starts_ns:
                return
            values = self.tensors[len(self.results)]
            out = np.full(values.size, 77, values.dtype if values.dtype.names is None else np.int32)
            self.results.append(out)
            self.endpoint.begin(now_ns, values, out, None)


def rack(name, inputs, lanes=2, window=4, cells=8, faults=Faults(), seed=0, timing=TIMING, **more):
    """A network of workers with these inputs, a list for each rank; its workers, server and
    switch."""
    service, workers = (load(name) if isinstance(name, str) else name), len(inputs)
    job = Job(JOB, workers, lanes, window, FIRST, service)
    peers = [AGGREGATOR, SERVER] if service.maps() else [AGGREGATOR]
    nodes = [
        CallNode(worker_address(rank), NetRpcWorker(job, timing, peers), list(mine))
        for rank, mine in enumerate(inputs)
    ]
    others = [Node(AGGREGATOR, Board(service, workers, window, cells))]
    if service.maps():
        addresses = [worker_address(rank) for rank in range(workers)]
        others.append(Node(SERVER, NetRpcServer(JOB, service, cells, FIRST, addresses, lanes)))
    for node in others:
        node.deadline_ns = NEVER
    return FlowNetwork([*nodes, *others], faults, seed, **more), nodes, others


def clean(nodes):
    for node in nodes:
        assert node.error is None, node.error
        assert node.endpoint.counters["malformed"] == 0


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    workers=st.integers(1, 6),
    sizes=st.lists(st.integers(0, 60), min_size=1, max_size=3),
    lanes=st.integers(1, 5),
    window=st.integers(1, 20),
    mishaps=any_mishaps,
)
def test_the_sum_is_exact_whatever_the_network_does(seed, workers, sizes, lanes, window, mishaps):
    tensors = tensors_of(seed, workers, sizes, "int32")
    network, nodes, _ = rack(
        "allreduce", tensors, lanes, window, 8, mishaps.faults, seed, gather_ns=mishaps.gather_ns
    )
    mishaps.stagger(nodes)
    network.run(SLOW_NS)
    clean(nodes)
    check_sums(nodes, lambda arrays: np.sum(arrays, axis=0, dtype=np.int32))
    if mishaps.none:
        assert all(node.endpoint.counters["retransmitted"] == 0 for node in nodes)


@pytest.mark.parametrize("mishaps", [Mishaps(0, 0, 0, 5, 0, 0), Mishaps(0.1, 0.3, 0.3, 5, 0, 0)])
@pytest.mark.parametrize("size", [1, 7, 8, 100])
def test_floats_are_as_close_as_protocol_md_says(size, mishaps):
    tensors = tensors_of(3, 3, [size, size], "float32")
    network, nodes, _ = rack("allreduce", tensors, 4, 5, 8, mishaps.faults, 1)
    network.run(SLOW_NS)
    clean(nodes)
    for number in range(2):
        truth = truth_of("float32", 4)(0, [node.tensors[number] for node in nodes])
        for node in nodes:
            off = np.abs(node.results[number].astype(np.float64) - truth.values)
            assert (off <= truth.allowed).all()


def counts_of(seed, workers, words, rounds):
    """For each rank and round, COUNTED of random words, of which many are others', too."""
    chance = np.random.default_rng(seed)
    inputs = []
    for _ in range(workers):
        mine = []
        for _ in range(rounds):
            drawn = chance.integers(0, 3 * words + 1, words).astype(np.uint64)
            keys = np.unique(drawn * np.uint64(0x9E3779B97F4A7C15))
            rows = np.zeros(keys.size, COUNTED)
            rows["key"], rows["value"] = keys, chance.integers(1, 100, keys.size)
            mine.append(rows)
        inputs.append(mine)
    return inputs


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    workers=st.integers(1, 5),
    words=st.integers(1, 150),
    rounds=st.integers(1, 3),
    cells=st.sampled_from([1, 2, 64]),
    window=st.integers(2, 12),
    mishaps=any_mishaps,
)
def test_each_word_counts_once_whatever_the_network_does(
    seed, workers, words, rounds, cells, window, mishaps
):
    """With one or two places for each pair the server keeps most of the words."""
    inputs = counts_of(seed, workers, words, rounds)
    network, nodes, others = rack(
        "wordcount", inputs, 2, window, cells, mishaps.faults, seed, gather_ns=mishaps.gather_ns
    )
    mishaps.stagger(nodes)
    network.run(SLOW_NS)
    clean(nodes)
    for number in range(rounds):
        total = Counter()
        for mine in inputs:
            total.update(
                dict(zip(*(mine[number][name].tolist() for name in COUNTED.names), strict=True))
            )
        for node in nodes:
            keys = node.tensors[number]["key"].tolist()
            assert node.results[number].tolist() == [total[key] for key in keys]
    counters = others[1].endpoint.counters
    every = {key for mine in inputs for rows in mine for key in rows["key"].tolist()}
    assert counters["places_given"] <= min(len(every), 32 * cells)
    assert (counters["keys_kept"] > 0) <= (counters["places_given"] < len(every))


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    workers=st.integers(1, 4),
    sections=st.integers(1, 12),
    locks=st.integers(1, 3),
    cells=st.sampled_from([1, 2, 64]),
    mishaps=any_mishaps,
)
def test_nobody_is_in_a_section_with_another(seed, workers, sections, locks, cells, mishaps):
    """Each number that a lock's counter can stand at is read by one section; with one place the
    server keeps the other locks."""
    chance = np.random.default_rng(seed)
    inputs = [[chance.integers(0, locks, sections, np.int32)] for _ in range(workers)]
    network, nodes, _ = rack("lock", inputs, 2, 3, cells, mishaps.faults, seed)
    mishaps.stagger(nodes)
    network.run(SLOW_NS)
    clean(nodes)
    for lock in range(locks):
        read = [node.results[0][node.tensors[0] == lock].tolist() for node in nodes]
        assert all(mine == sorted(mine) for mine in read)
        everybody = sorted(number for mine in read for number in mine)
        assert everybody == list(range(len(everybody)))


def time_of_sections(every):
    """Of 40 sections of a worker alone; every: which answers are lost. (ns, how many were.)"""
    timing = replace(TIMING, min_rto_ns=10 * MS, slack_ns=4 * MS)
    network, nodes, _ = rack("lock", [[np.zeros(40, np.int32)]], 2, 3, timing=timing)
    passed = Counter()

    def tap(source, target, payload):
        passed[source] += 1
        return None if source == AGGREGATOR and passed[source] % every == 0 else payload

    network.tap = tap
    network.run(SLOW_NS)
    clean(nodes)
    lost = passed[AGGREGATOR] // every
    assert nodes[0].endpoint.counters["retransmitted"] == lost
    return network.now_ns, lost


def test_silence_is_soon_a_loss_where_losses_were_seen():
    """With one call in flight none is overtaken. Only the first loss costs what is unknown yet."""
    (usual_ns, none), (lossy_ns, lost) = time_of_sections(10**9), time_of_sections(5)
    assert none == 0 and lost > 30
    assert lossy_ns - usual_ns < TIMING.initial_rto_ns + lost * 4 * MS


@pytest.mark.parametrize("lost", range(16))
def test_after_a_loss_no_call_is_repeated_whose_answer_only_takes_longer(lost):
    """Calls and answers have many lengths. On a link of 1 Mbit/s, the answer to a long one takes
    several times as long as that to a short one."""
    timing = replace(TIMING, initial_rto_ns=100 * MS, min_rto_ns=10 * MS)
    inputs = [[np.arange(10, dtype=np.int32) % 3] for _ in range(2)]
    network, nodes, _ = rack("lock", inputs, 4, 3, rate_bps=1_000_000, timing=timing)
    sent = Counter()

    def tap(source, target, payload):
        sent[source] += 1
        return None if source == worker_address(1) and sent[source] == lost + 1 else payload

    network.tap = tap
    network.run(SLOW_NS)
    clean(nodes)
    counters = nodes[1].endpoint.counters
    assert (counters["retransmitted"], counters["duplicates"]) == (1, 0)


@pytest.mark.parametrize("elements, chunks", [(0, 0), (1, 1), (8, 2), (1000, 250)])
def test_without_loss_an_all_reduce_sends_an_open_and_its_chunks(elements, chunks):
    network, nodes, _ = rack("allreduce", tensors_of(1, 3, [elements], "int32"), 4, 16)
    network.run()
    clean(nodes)
    for counters in (node.endpoint.counters for node in nodes):
        assert counters["sent"] == counters["received"] == 1 + chunks
        assert counters["bytes_sent"] == counters["bytes_received"] == (1 + chunks) * (62 + 16)
        assert all(counters[name] == 0 for name in (*OWN_COUNTERS, "retransmitted", "late"))


@pytest.mark.parametrize("other", [{"lanes": 3}, {"window": 5}, {"workers": 2}, {"average": 1}])
def test_workers_that_do_not_call_alike_are_all_told(other):
    network, nodes, _ = rack("allreduce", tensors_of(1, 3, [9], "int32"), 4, 4)
    if "lanes" in other:
        nodes[1].tensors[0] = nodes[1].tensors[0][:8]
    elif "average" in other:
        nodes[1].endpoint.agreement = Agreement(OPERATIONS.index("AVG"))
    else:
        job = replace(nodes[1].endpoint.job, **other)
        nodes[1].endpoint = NetRpcWorker(job, TIMING, [AGGREGATOR])
    network.run()
    assert all(isinstance(node.error, ShapeMismatch) for node in nodes)
    assert "all of a job have to do alike" in str(nodes[0].error)


def test_a_worker_that_is_missing_ends_the_round_by_a_timeout():
    timing = replace(TIMING, give_up_ns=500 * MS)
    network, nodes, _ = rack("allreduce", tensors_of(1, 3, [9], "int32"), 4, 4, timing=timing)
    nodes[2].dead = True
    network.run()
    assert all(isinstance(node.error, RoundTimeout) for node in nodes[:2])
    assert nodes[0].error.missing == [(0, 0)]
    assert nodes[0].endpoint.waiting(9)[0][:3] == [0, 0, FIRST]
    fall_silent(network)


@pytest.mark.parametrize("name", ["allreduce", "wordcount", "lock"])
@pytest.mark.parametrize("after", [3, 10, 20, 40])
def test_a_switch_that_forgets_all_gives_nobody_a_wrong_result(name, after):
    """Also if an OPEN comes again that was sent before: who has an answer of the old epoch does
    not go on. Either the round ends by its timeout, or what it gives is right."""
    timing = replace(TIMING, give_up_ns=800 * MS)
    inputs = {
        "allreduce": tensors_of(1, 3, [400], "int32"),
        "wordcount": counts_of(1, 3, 600, 1),
        "lock": [[np.zeros(20, np.int32)] for _ in range(3)],
    }[name]
    faults = Faults(0.05, 0.3, 0.3, MS, 0, 50 * MS)
    network, nodes, (board, *_) = rack(name, inputs, 4, 4, faults=faults, timing=timing)
    for _ in range(after):
        network.step(SLOW_NS)
    assert not all(node.finished for node in nodes)
    board.endpoint.switch = board.endpoint.make()
    network.run(SLOW_NS)
    for node in nodes:
        assert node.error is None or isinstance(node.error, RoundTimeout)
    whole = [node for node in nodes if node.error is None]
    if name == "allreduce":
        total = np.sum([mine[0] for mine in inputs], axis=0, dtype=np.int32)
        assert all(node.results[0].tolist() == total.tolist() for node in whole)
    else:
        assert not whole or after == 3, "nothing had been answered"


def frozen(endpoint):
    if isinstance(endpoint, NetRpcServer):
        return (dict(endpoint._values), dict(endpoint._counters), endpoint._sequences.tobytes())
    return endpoint.chunks_done, endpoint.in_flight, endpoint._rows.calls["sequence"].tobytes()


def forged(chance, payload):
    """With a field that nobody can have sent."""
    data = bytearray(payload)
    kind = chance.choice(("version", "kind", "job", "position", "sequence", "length", "method"))
    at = {"version": 0, "kind": 1, "job": 2, "position": 4}
    if kind in at:
        data[at[kind]] ^= 0x20 if kind == "kind" else chance.randrange(1, 128)
    elif kind == "sequence":
        struct.pack_into("!I", data, 8, chance.randrange(2**20, 2**31))
    elif kind == "method":
        struct.pack_into("!IH", data, 12, chance.randrange(1 << 32), 999)
        struct.pack_into("!I", data, 8, chance.randrange(2**20, 2**31))
    else:
        data = (data + bytes(8))[: chance.choice([0, 1, 11, 19, 21, len(data) - 1, len(data) + 4])]
    return bytes(data)


@pytest.mark.parametrize("name", ["allreduce", "wordcount"])
def test_datagrams_that_nobody_can_have_sent_are_refused(name):
    inputs = tensors_of(1, 3, [9], "int32") if name == "allreduce" else counts_of(1, 3, 40, 1)
    network, nodes, others = rack(name, inputs, 4, 4, cells=1)
    network.run()
    clean(nodes)
    answers = [payload for node in others for payload in node.sent]
    for node in nodes:
        node.sent, kept = answers, node.sent
        refuse_all(network, [node], forged, frozen, 5)
        node.sent = kept
    for node in others[1:]:
        calls = [p for worker in nodes for p in worker.sent if p[1] == wire.Kind.KEYS]
        node.sent = calls
        refuse_all(network, [node], forged, frozen, 6)


def test_a_call_that_a_server_has_executed_is_answered_with_what_it_answered():
    network, nodes, (_, server) = rack("wordcount", counts_of(2, 2, 60, 1), 4, 4, cells=1)
    network.run()
    clean(nodes)
    before = frozen(server.endpoint)
    last = {payload[4:6]: payload for payload in nodes[0].sent if payload[1] == wire.Kind.KEYS}
    for payload in last.values():
        again = payload[:7] + b"\x03" + payload[8:]
        assert deliver(server.endpoint, network.now_ns, [(nodes[0].address, again)] * 2) == 0
        ((to, answer),) = server.poll(network.now_ns)
        assert to == nodes[0].address and answer[7] == 3
        assert answer[:7] == bytes([1, 0xC3]) + payload[2:7]
    counters = server.endpoint.counters
    assert counters["answered_again"] == len(last) and counters["duplicates"] == 2 * len(last)
    assert frozen(server.endpoint) == before


def test_inf_is_named():
    tensors = tensors_of(1, 2, [9], "float32")
    tensors[1][0][5] = np.inf
    network, nodes, _ = rack("allreduce", tensors, 4, 4)
    network.run()
    with pytest.raises(NotFinite, match="this worker's index 5"):
        nodes[1].endpoint.finish()
    with pytest.raises(NotFinite, match="at another"):
        nodes[0].endpoint.finish()


def test_places_are_as_few_packets_as_the_fullest_bank_has_keys():
    chance = random.Random(1)
    allocator = PlaceAllocator(4, 32)
    keys = [chance.getrandbits(64) for _ in range(100)]
    places = [allocator.of(key) for key in keys]
    placed = np.array([place for place in places if place != wire.KEPT])
    assert [allocator.of(key) for key in keys] == places and allocator.given == placed.size
    assert len(set(placed.tolist())) == placed.size and placed.max() < 4 * 32
    assert all(p % 32 == k % 32 for p, k in zip(places, keys, strict=True) if p != wire.KEPT)
    packets = list(
        in_pairs(placed, np.arange(placed.size, dtype=np.uint32), np.arange(placed.size))
    )
    assert len(packets) == Counter((placed % 32).tolist()).most_common(1)[0][1]
    found = {}
    for packet in packets:
        pairs = np.frombuffer(packet.body, wire.PAIR)
        for bank, index in zip(packet.entries.tolist(), packet.indices.tolist(), strict=True):
            found[index] = int(pairs["place"][bank]) * 32 + bank
            assert pairs["value"][bank] == index
        assert (pairs["place"] != wire.NO_PLACE).sum() == packet.entries.size
    assert [found[index] for index in range(placed.size)] == placed.tolist()


MISTAKES = [
    ({"argument": Array, "add_to": True}, "an Array is added up and given to all"),
    ({}, "without an argument there is only forward"),
    ({"forward": CntFwd(ALL, 3)}, "needs the threshold WORKERS"),
    ({"argument": Map, "forward": CntFwd(ALL, WORKERS)}, "a Map is answered to the caller"),
    ({"argument": Map, "clear": SHADOW}, "a Map clears VALUES or COUNTER"),
    ({"argument": Map, "get": True, "forward": CntFwd(CALLER, 1)}, "other methods' each"),
    ({"argument": Map, "get": True, "clear": VALUES}, "could not be told again"),
    ({"argument": Map, "get": True, "add_to": True}, "could not be told again"),
    ({"argument": Map}, "does one of"),
]


@pytest.mark.parametrize("options, message", MISTAKES, ids=[m for _, m in MISTAKES])
def test_what_cannot_be_done_exactly_once_is_refused(options, message):
    with pytest.raises(ServiceError, match=f"method go: .*{message}"):
        type("Own", (Service,), {"go": method(**options)})


def test_a_service_of_ones_own_is_found_in_a_file(tmp_path):
    path = tmp_path / "mine.py"
    text = "from agglab.systems.netrpc.service import *\n"
    path.write_text(text + "class Mine(Service):\n    clear = method(Map, clear=VALUES)\n")
    found = load(f"{path}:Mine")
    assert [(m.name, m.number) for m in found.methods] == [("clear", 2)] and found.maps()
    with pytest.raises(ServiceError, match="no such class"):
        load(f"{path}:Yours")


class Cleared(Service):
    """Clears what it added, and says what is left."""

    add = method(Map, add_to=True)
    clear = method(Map, clear=VALUES)
    meet = method(forward=CntFwd(ALL, WORKERS))
    get = method(Map, get=True)
    taken = method(Map, forward=CntFwd(CALLER, 2))
    free = method(Map, clear=COUNTER)

    def run(self, call, inputs, out):
        keys = np.arange(inputs.size, dtype=np.uint64)
        yield call.add(keys, inputs)
        yield call.meet()
        yield call.clear(keys[::2])
        yield call.meet()
        out[:] = yield call.get(keys)
        second = yield call.taken(keys[:3])
        yield call.meet()
        yield call.free(keys[:3])
        yield call.meet()
        again = yield call.taken(keys[:3])
        out[:3] = 100 * second + 1000 * again


@pytest.mark.parametrize("cells", [1, 64])
def test_a_service_of_ones_own_clears_and_counts(cells):
    inputs = [[np.arange(50, dtype=np.int32)] for _ in range(2)]
    network, nodes, _ = rack(Cleared, inputs, 2, 4, cells, Faults(0.1, 0.3, 0.3, MS, 0, 5 * MS), 3)
    network.run(SLOW_NS)
    clean(nodes)
    left = [0 if i % 2 == 0 else 2 * i for i in range(50)]
    assert all(node.results[0][3:].tolist() == left[3:] for node in nodes)
    told = np.sum([node.results[0][:3] for node in nodes], axis=0)
    assert told.tolist() == [1100] * 3, "one of two callers is the second, each time"


class Wrong(Service):
    """Yields something else."""

    def run(self, call, inputs, out):
        yield 3


def test_a_run_that_yields_no_call_is_told():
    network, nodes, _ = rack(Wrong, [[np.zeros(1, np.int32)]])
    network.run()
    assert isinstance(nodes[0].error, AllReduceError)
    assert str(nodes[0].error) == "Wrong.run yielded 3, which is not a call of the service"


def test_the_first_answer_has_to_name_an_epoch():
    network, nodes, _ = rack("allreduce", tensors_of(1, 2, [40], "int32"), 4, 4)
    workers, changed = [node.address for node in nodes], []

    def tap(source, target, payload):
        if target not in workers or changed:
            return payload
        assert payload[12:16] != bytes(4)
        changed.append(target)
        return payload[:12] + bytes(4) + payload[16:]

    network.tap = tap
    network.run()
    check_sums(nodes, lambda arrays: np.sum(arrays, axis=0, dtype=np.int32))
    assert changed and sorted(node.endpoint.counters["malformed"] for node in nodes) == [0, 1]


def test_an_answer_of_another_epoch_is_refused():
    network, nodes, _ = rack("allreduce", tensors_of(1, 2, [40], "int32"), 4, 4)
    changed = []

    def tap(source, target, payload):
        if source != AGGREGATOR or payload[16:18] != b"\0\2" or changed:
            return payload
        changed.append(target)
        return payload[:12] + bytes([payload[12] ^ 1]) + payload[13:]

    network.tap = tap
    network.run()
    check_sums(nodes, lambda arrays: np.sum(arrays, axis=0, dtype=np.int32))
    assert sorted(node.endpoint.counters["malformed"] for node in nodes) == [0, 1]
