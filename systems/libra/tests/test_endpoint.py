"""Libra's workers and servers against independent arithmetic, whatever the network and the switches
do; what is hot; bytes; refusals and errors."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from flow_network import MS, NEVER, TIMING, FlowNetwork, Node, deliver
from hypothesis import given, settings
from hypothesis import strategies as st
from libra_model import LibraSwitch
from mishaps import SLOW_NS, any_mishaps, fall_silent
from switch_model import Faults

from agglab.hosts.errors import AllReduceError, RoundTimeout, ShapeMismatch
from agglab.systems.libra import wire
from agglab.systems.libra.job import LibraJob, bounds, hottest, lowest_key
from agglab.systems.libra.server import LibraServer, Rack, TableSizes
from agglab.systems.libra.worker import LibraWorker

AGGREGATOR = ("10.0.255.254", 48864)
PAIRS = np.dtype([("key", "u8"), ("value", "i4")])
FLOATS = np.dtype([("key", "u8"), ("value", "f4")])


def worker_address(rank):
    return f"10.0.0.{rank + 1}", 5000


def told_address(rank):
    return f"10.0.0.{rank + 1}", 48864


def server_address(index):
    return f"10.0.1.{index + 1}", 6000


class PushingNode(Node):
    """A worker whose tensors have keys."""

    def begin_next(self, now_ns):
        while self.endpoint.done and len(self.results) < len(self.tensors):
            if now_ns < self.starts_ns:
                return
            if self.results:
                self.endpoint.finish()
            pushed = self.tensors[len(self.results)]
            self.results.append(np.full(pushed.size, 77, pushed["value"].dtype))
            self.endpoint.begin(now_ns, pushed, self.results[-1], None)


class SwitchedNetwork(FlowNetwork):
    """One with switches, which sum what their racks send to the aggregator's address. forgetful:
    the chance that a switch has lost everything when a packet comes."""

    switches, forgetful, deaf = (), 0.0, False

    def put(self, at_ns, source, target, payload):
        for switch in self.switches:
            told = target[1] == 48864 and target != AGGREGATOR
            if told and int(target[0].rpartition(".")[2]) - 1 in switch.ranks:
                for rank in () if self.deaf else switch.ranks:
                    super().put(at_ns, source, worker_address(rank), payload)
                return
            rank = int(source[0].rpartition(".")[2]) - 1
            if target != AGGREGATOR or rank not in switch.ranks:
                continue
            if self.random.random() < self.forgetful:
                switch.forget()
            taken = None if self.deaf else switch.take(rank, payload)
            if taken:
                super().put(at_ns, source, server_address(taken[0]), taken[1])
            return
        super().put(at_ns, source, target, payload)


def star(tensors, servers=1, racks=1, faults=Faults(), seed=0, timing=TIMING, keys=4096, **changed):
    """A network of workers that push these, a list for each rank, of servers, and of switches that
    have about as many workers each."""
    of_network = {name: changed.pop(name) for name in ("gather_ns",) if name in changed}
    workers = len(tensors)
    is_float = tensors[0][0]["value"].dtype == np.float32
    agreed = {"lanes": 2, "window": 4, "hot": 0, "sample_every": 2, "fraction_bits": 10} | changed
    job = LibraJob(7, workers, servers, is_float=is_float, session=3, **agreed)
    peers = [server_address(index) for index in range(servers)] + [AGGREGATOR] * (job.hot > 0)
    pairs = max(each.size for mine in tensors for each in mine)
    nodes = [
        PushingNode(worker_address(rank), LibraWorker(job, rank, peers, timing), list(mine))
        for rank, mine in enumerate(tensors)
    ]
    groups = [tuple(range(first, workers, racks)) for first in range(min(racks, workers))]
    addresses = [worker_address(rank) for rank in range(workers)]
    if job.hot:
        addresses += [told_address(ranks[0]) for ranks in groups]
    told = tuple(Rack(workers + at, ranks) for at, ranks in enumerate(groups))
    for index in range(servers):
        room = TableSizes(keys, pairs, told if job.hot else ())
        nodes.append(Node(server_address(index), LibraServer(job, index, addresses, room)))
        nodes[-1].deadline_ns = NEVER
    network = SwitchedNetwork(nodes, faults, seed, **of_network)
    network.switches = [LibraSwitch(job.lanes, ranks) for ranks in groups] if job.hot else []
    return network, nodes[:workers], nodes[workers:]


def pushes_of(seed, workers, sizes, vocabulary=60, dtype=PAIRS):
    """For each rank and round some of a few keys, all over the range; some ranks may have none."""
    chance = np.random.default_rng(seed)
    words = chance.integers(0, 2**64 - 1, vocabulary, np.uint64)
    found = []
    for _ in range(workers):
        mine = []
        for size in sizes:
            keys = np.unique(words[(chance.random(size) ** 2 * vocabulary).astype(int)])
            pushed = np.zeros(keys.size, dtype)
            pushed["key"] = keys
            if dtype is PAIRS:
                pushed["value"] = chance.integers(-(2**31), 2**31, keys.size, np.int32)
            else:
                pushed["value"] = chance.normal(0, 100, keys.size)
            mine.append(pushed)
        found.append(mine)
    return found


def check_sums(workers, fraction_bits=10):
    """Every worker's every round, against Python's own integers."""
    for number in range(len(workers[0].tensors)):
        totals = Counter()
        for node in workers:
            for key, value in node.tensors[number].tolist():
                is_float = node.tensors[number]["value"].dtype == np.float32
                totals[key] += round(value * 2**fraction_bits) if is_float else value
        for node in workers:
            assert node.error is None, node.error
            pushed = node.tensors[number]
            if pushed["value"].dtype == np.float32:
                wanted = [
                    np.float32(totals[key] / 2**fraction_bits) for key in pushed["key"].tolist()
                ]
            else:
                wanted = [(totals[key] + 2**31) % 2**32 - 2**31 for key in pushed["key"].tolist()]
            assert node.results[number].tolist() == wanted


def finish(network, workers, limit_ns=SLOW_NS):
    network.run(limit_ns=limit_ns)
    for node in workers:
        assert node.error is None, node.error
        node.endpoint.finish()


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    workers=st.integers(1, 6),
    servers=st.integers(1, 3),
    racks=st.integers(1, 3),
    sizes=st.lists(st.integers(0, 60), min_size=1, max_size=5),
    lanes=st.integers(1, 5),
    window=st.integers(1, 20),
    hot=st.sampled_from([0, 1, 5, 40]),
    sample_every=st.integers(1, 4),
    dtype=st.sampled_from([PAIRS, FLOATS]),
    forgetful=st.sampled_from([0, 0.02, 0.3]),
    mishaps=any_mishaps,
)
def test_sums_are_exact_whatever_network_and_switches_do(
    seed,
    workers,
    servers,
    racks,
    sizes,
    lanes,
    window,
    hot,
    sample_every,
    dtype,
    forgetful,
    mishaps,
):
    tensors = pushes_of(seed, workers, sizes, dtype=dtype)
    keys = {"lanes": lanes, "window": window, "hot": hot, "sample_every": sample_every}
    network, nodes, others = star(
        tensors, servers, racks, mishaps.faults, seed, gather_ns=mishaps.gather_ns, **keys
    )
    network.forgetful = forgetful
    mishaps.stagger(nodes)
    finish(network, nodes)
    check_sums(nodes)
    fall_silent(network)
    assert all(node.endpoint.counters["malformed"] == 0 for node in [*nodes, *others])
    if mishaps.none and not forgetful:
        # If a round needs several windows, a worker with few cold pairs may wait so long for one
        # with many that it asks again.
        if lanes * window >= max(sizes):
            assert all(node.endpoint.counters["retransmitted"] == 0 for node in nodes)
        assert sum(node.endpoint.counters["singles"] for node in others) == 0


def test_a_switch_that_hears_nothing_costs_time_and_no_sum():
    """Requests go past it after two attempts."""
    tensors = pushes_of(1, 3, [40] * 3)
    network, nodes, others = star(tensors, hot=10, sample_every=3)
    network.deaf = True
    workers, requests = {node.address for node in nodes}, set()

    def tap(source, target, payload):
        if source in workers:
            attempt = np.frombuffer(payload, wire.HEADER, 1)["attempt"][0]
            requests.add((int(attempt), target == AGGREGATOR))
        return payload

    network.tap = tap
    finish(network, nodes)
    check_sums(nodes)
    assert {(0, True), (1, True), (2, False)} <= requests
    assert all(by_switch == (attempt < 2) for attempt, by_switch in requests)
    assert all(node.endpoint.counters["directly"] > 0 for node in nodes)
    assert sum(node.endpoint.counters["singles"] for node in others) > 0


def test_what_most_workers_pushed_in_the_sample_is_hot_until_the_next():
    tensors = pushes_of(2, 4, [30, 30, 30, 30])
    network, nodes, _ = star(tensors, servers=2, hot=9, sample_every=3)
    found = []
    for node in nodes:
        begin = node.endpoint.begin
        node.endpoint.begin = lambda *given, at=node, begin=begin: (
            begin(*given),
            found.append((len(at.results) - 1, sorted(at.endpoint.hot.tolist()))),
        )
    finish(network, nodes)
    wanted = []
    for server in range(2):
        counts = Counter(
            key
            for node in nodes
            for key in node.tensors[0]["key"].tolist()
            if key * 2 >> 64 == server
        )
        ranked = sorted((-count, key) for key, count in counts.items() if count > 1)
        wanted += [key for _, key in ranked[: 5 - server]]
    assert {number for number, _ in found} == {0, 1, 2, 3}
    for number, hot in found:
        assert hot == ([] if number in (0, 3) else sorted(wanted))


def test_every_stream_is_counted():
    tensors = pushes_of(3, 2, [20])
    for hot, streams in ((0, 3), (5, 1)):
        network, nodes, _ = star(tensors, servers=3, hot=hot)
        finish(network, nodes)
        assert [node.endpoint.counters["streams"] for node in nodes] == [streams] * 2


def test_bytes_without_loss_follow_from_the_numbers_of_packets():
    pushed = [
        np.array([(key * 2**56, key) for key in range(rank, 50, 2)], PAIRS) for rank in (0, 1)
    ]
    network, nodes, (server,) = star([[each] for each in pushed], lanes=4, window=16)
    finish(network, nodes)
    chunks = -(-25 // 4)
    for node in nodes:
        counters = node.endpoint.counters
        assert counters["sent"] == counters["received"] == 2 * chunks
        assert counters["bytes_sent"] == 2 * chunks * 78 + 25 * 12
        assert counters["bytes_received"] == 2 * chunks * 78 + 25 * 4
    assert server.endpoint.counters["cold_pairs"] == 50
    assert (wire.pairs_bytes(3), wire.values_bytes(3), wire.keys_bytes(3)) == (114, 90, 102)


def in_the_middle(seed, hot=8):
    tensors = pushes_of(seed, 3, [60, 60, 60])
    network, nodes, others = star(tensors, 2, faults=Faults(0.1), seed=seed, hot=hot, window=8)
    for _ in range(80 + 6 * seed):
        network.step(NEVER)
    return network, nodes, others


FIELDS = ("version", "kind", "job", "session", "round", "item", "items", "pairs", "server", "cut")


def forged(chance, payload):
    """What nobody can have sent, made of what somebody has."""
    data = bytearray(payload)
    field = chance.choice(FIELDS)
    header = np.frombuffer(data, wire.HEADER, 1)[0]
    if field == "cut":
        return bytes(data[: chance.choice([0, 1, 35, len(data) - 1])] or b"")
    if field in ("version", "kind"):
        header[field] ^= 0x80
    elif field == "round":
        header[field] += 1000
    elif field == "server":
        header[field] ^= 0x40
    else:
        header[field] ^= 0x4000 if field != "pairs" else 0x1000
    return bytes(data)


@pytest.mark.parametrize("seed", range(20))
def test_forged_datagrams_are_refused_and_counted(seed):
    network, nodes, others = in_the_middle(seed)
    chance = random.Random(seed)
    for receivers, senders in ((nodes, others), (others, nodes)):
        seen = [payload for node in senders for payload in node.sent]
        for node in receivers:
            for _ in range(60):
                before = node.endpoint.counters
                fake = forged(chance, chance.choice(seen))
                source = chance.choice(senders).address
                assert deliver(node.endpoint, network.now_ns, [(source, fake)]) == 0
                after = node.endpoint.counters
                counts = ("malformed", "late", "duplicates")  # also of a phase that is over
                refused = sum(after[name] - before[name] for name in counts)
                assert refused == 1 == after["received"] - before["received"]
    finish(network, nodes)
    check_sums(nodes)


@pytest.mark.parametrize("seed", range(10))
def test_random_bytes_and_replays_harm_no_sum(seed):
    network, nodes, others = in_the_middle(seed)
    chance = random.Random(seed)
    for _ in range(200):
        network.step(NEVER)
        node = chance.choice([*nodes, *others])
        sender = chance.choice(others if node in nodes else nodes)
        fakes = [chance.randbytes(chance.randrange(80)) for _ in range(3)]
        fakes += chance.sample(sender.sent, 2)
        deliver(node.endpoint, network.now_ns, [(sender.address, fake) for fake in fakes])
        network.serve(node, [])
        if all(node.finished for node in nodes):
            break
    finish(network, nodes)
    check_sums(nodes)


def packet(job, kind, values=(), keys=(), **fields):
    header = np.zeros(1, wire.HEADER)
    header["version"], header["kind"], header["job"], header["session"] = (
        1,
        kind,
        job.job,
        job.session,
    )
    header["digest"], header["items"] = job.digest([np.zeros(0, np.uint64)] * job.servers), 1
    header["pairs"] = max(len(keys), len(values))
    for name, value in fields.items():
        header[name] = value
    body = np.array(keys, ">u8").tobytes() + np.array(values, ">u4").tobytes()
    return header.tobytes() + body


@pytest.mark.parametrize(
    "keys",
    [[5, 5], [6, 5], [2**63, 2**63 + 1], [2**64 - 1]],
    ids=["twice", "descending", "another server's", "no key"],
)
def test_a_push_with_illegal_keys_is_refused(keys):
    _, _, others = star(pushes_of(1, 2, [4]), servers=2)
    index = 1 if keys == [2**64 - 1] else 0
    server = others[index].endpoint
    fake = packet(server.job, wire.Kind.PUSH, range(len(keys)), keys, server=index)
    assert deliver(server, 0, [(worker_address(0), fake)]) == 0
    assert server.counters["malformed"] == 1 and server.poll(0).tolist() == []


def test_a_table_of_keys_is_never_more_than_full():
    """What it has may come again; one key more is refused."""
    _, _, (node,) = star(pushes_of(1, 2, [4]), keys=2)
    server = node.endpoint
    put = lambda rank, keys: deliver(  # noqa: E731
        server,
        0,
        [(worker_address(rank), packet(server.job, wire.Kind.PUSH, [1] * len(keys), keys))],
    )
    assert put(0, [1, 2]) == 1
    assert put(1, [1, 3]) == 0 and server.counters["malformed"] == 1
    assert put(1, [1, 2]) == 1


def group(server, rank, workers, values=(1, 1), kind=wire.Kind.SUM):
    made = packet(server.job, kind, values, [1, 2], workers=workers)
    return deliver(server, 0, [(worker_address(rank), made)])


def test_parts_of_a_group_are_counted_once_whatever_comes_first():
    """A rack's sum takes the place of its workers' own values; other overlaps are refused."""
    fresh = lambda: star(pushes_of(1, 4, [4]), hot=2)[2][0].endpoint  # noqa: E731
    server = fresh()
    assert group(server, 0, 0, kind=wire.Kind.HOT) == 1
    assert group(server, 1, 0b0011, (5, 6)) == 1
    assert group(server, 0, 0b0011, (9, 9)) == 0 and server.counters["duplicates"] == 1
    assert group(server, 1, 0, kind=wire.Kind.HOT) == 0 and server.counters["duplicates"] == 2
    assert group(server, 1, 0b0110) == 0 and server.counters["malformed"] == 1
    assert group(server, 2, 0b0001) == 0 and server.counters["malformed"] == 2
    assert group(server, 2, 1 << 5 | 4) == 0 and server.counters["malformed"] == 3
    assert group(server, 3, 8, kind=wire.Kind.HOT) == 0 and server.counters["malformed"] == 4
    assert group(server, 3, 0b1100, (7, 8)) == 1
    (row,) = server.poll(0).tolist()
    assert server.outbox.datagram(row)[-8:] == np.array([12, 14], ">u4").tobytes()
    assert server.counters["groups_whole"] == 1


def test_who_asks_late_what_was_hot_is_not_told_what_is():
    """Every round is a sample; when the second is over, the first one's list is gone."""
    server = star(pushes_of(1, 2, [4]), hot=2, sample_every=1)[2][0].endpoint
    for number, keys in ((0, [1, 2]), (1, [5, 6])):
        for rank in (0, 1):
            push = packet(server.job, wire.Kind.PUSH, [1, 1], keys, round=number)
            assert deliver(server, 0, [(worker_address(rank), push)]) == 1
    server.poll(0)
    ask = lambda number: deliver(  # noqa: E731
        server, 0, [(worker_address(0), packet(server.job, wire.Kind.LEARN, round=number))]
    )
    assert ask(0) == 0 and server.counters["late"] == 1 and server.poll(0).tolist() == []
    assert ask(1) == 1
    (row,) = server.poll(0).tolist()
    assert server.outbox.datagram(row)[-16:] == np.array([5, 6], ">u8").tobytes()


@pytest.mark.parametrize("kind", [wire.Kind.PUSH, wire.Kind.LEARN])
def test_each_answer_names_the_attempt_that_it_answers(kind):
    server = star(pushes_of(1, 2, [4]), hot=2, sample_every=1)[2][0].endpoint
    pairs = ([1, 1], [1, 2])
    for rank in (0, 1):
        push = packet(server.job, wire.Kind.PUSH, *pairs)
        deliver(server, 0, [(worker_address(rank), push)])
    server.poll(0)
    content = pairs if kind == wire.Kind.PUSH else ()
    for attempt in (3, 1):
        request = packet(server.job, kind, *content, attempt=attempt)
        deliver(server, 0, [(worker_address(0), request)])
        (row,) = server.poll(0).tolist()
        answer = np.frombuffer(server.outbox.datagram(row), wire.HEADER, 1)
        assert answer["attempt"] == attempt


def test_what_is_lost_after_a_first_pull_was_answered_waits_for_nobody():
    """Each later pull's first answer is lost, and no other is in flight that could overtake it."""
    network, nodes, _ = star(pushes_of(6, 2, [60]), window=1)
    first = lambda header: header["item"] and not header["attempt"]  # noqa: E731
    lost = Counter()

    def tap(source, target, payload):
        header = np.frombuffer(payload, wire.HEADER, 1)[0]
        if header["kind"] != wire.Kind.PULL_RESULT or not first(header):
            return payload
        lost[target] += 1
        return None

    network.tap = tap
    finish(network, nodes)
    check_sums(nodes)
    assert min(lost.values()) > 8
    assert network.now_ns < TIMING.initial_rto_ns * max(lost.values())


def test_workers_of_other_shapes_all_hear_of_it():
    tensors = pushes_of(4, 3, [20])
    network, nodes, _ = star(tensors)
    other = replace(nodes[2].endpoint.job, fraction_bits=11)
    nodes[2].endpoint = LibraWorker(other, 2, nodes[2].endpoint.peers, TIMING)
    network.run()
    for node in nodes:
        assert isinstance(node.error, ShapeMismatch), node.error
        assert "all of a job have to agree" in str(node.error)


def test_who_hears_nothing_gives_up_and_says_of_whom():
    tensors = pushes_of(5, 2, [20])
    network, nodes, others = star(tensors, servers=2, timing=replace(TIMING, give_up_ns=500 * MS))
    others[1].dead = True
    network.run()
    for node in nodes:
        assert isinstance(node.error, RoundTimeout), node.error
        assert "no answer for pushes 0" in str(node.error) and "servers 1 " in str(node.error)
        assert node.endpoint.waiting(9)[0][1:] == [1, 1]
    assert others[0].endpoint.waiting(9) == []


def test_a_server_says_whose_pushes_are_missing():
    _, _, (node,) = star(pushes_of(1, 3, [4]))
    server = node.endpoint
    assert (
        deliver(server, 0, [(worker_address(1), packet(server.job, wire.Kind.PUSH, [1], [1]))]) == 1
    )
    assert server.waiting(9) == [[0, 0], [0, 2]]


@pytest.mark.parametrize("value", [np.inf, np.nan, 1e6])
def test_a_float_that_fixed_point_cannot_hold_is_named(value):
    pushed = np.array([(1, 0.5), (2, value)], FLOATS)
    network, nodes, _ = star([[pushed], [pushed]], fraction_bits=20)
    network.run()
    for node in nodes:
        assert isinstance(node.error, AllReduceError)
        assert "the value at index 1 of job 7" in str(node.error)


@pytest.mark.parametrize("keys", [[2, 1], [1, 1], [2**64 - 1]])
def test_keys_that_no_worker_may_push_are_refused(keys):
    _, nodes, _ = star(pushes_of(1, 1, [4]))
    pushed = np.array([(key, 1) for key in keys], PAIRS)
    with pytest.raises(ValueError, match="key"):
        nodes[0].endpoint.begin(0, pushed, np.zeros(len(keys), np.int32))


@pytest.mark.parametrize("servers", [1, 2, 3, 7, 255])
def test_servers_share_the_keys_out_completely(servers):
    lows = [lowest_key(servers, server) for server in range(servers + 1)]
    assert (lows[0], lows[-1]) == (0, 2**64) and lows == sorted(lows)
    keys = np.unique(np.array([k % 2**64 for low in lows for k in (low - 1, low)], np.uint64))
    cut = bounds(keys, servers)
    for server in range(servers):
        assert all(
            int(key) * servers >> 64 == server for key in keys[cut[server] : cut[server + 1]]
        )


def test_the_hottest_are_those_of_most_workers_then_the_smaller():
    keys = np.array([9, 4, 7, 5], np.uint64)
    assert hottest(keys, np.array([2, 3, 2, 1], np.uint16), 9).tolist() == [4, 7, 9]
    assert hottest(keys, np.array([2, 3, 2, 1], np.uint16), 2).tolist() == [4, 7]
