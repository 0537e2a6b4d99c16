"""OmniReduce's workers against independent arithmetic, around the switch in plain Python, whatever
the network does; their bytes and errors."""

import random
from dataclasses import replace

import numpy as np
import pytest
import quantise_model
from flow_network import MS, NEVER, TIMING, FlowNetwork, Node, deliver
from hypothesis import given, settings
from hypothesis import strategies as st
from mishaps import SLOW_NS, any_mishaps
from omnireduce_model import BARE, NONE, OPENING, RESULT, Packet, Switch, parse, parse_all
from switch_model import Faults

from agglab.hosts.agreement import OPERATIONS, Agreement
from agglab.hosts.endpoint import Outbox
from agglab.hosts.errors import NotFinite, RoundTimeout, ShapeMismatch
from agglab.hosts.slots import Job
from agglab.systems.omnireduce import wire
from agglab.systems.omnireduce.worker import OmniReducer

NUMBER, SLOTS = 7, 64
SWITCH = ("10.0.255.254", 48864)


class SwitchEnd:
    """The model of the switch as an endpoint. twice: it answers again what it has just answered."""

    listens, done, deadline_ns, chunks_done = True, True, NEVER, 0

    def __init__(self, peers, lanes):
        self.peers, self.longest_bytes = peers, wire.longest_datagram_bytes(lanes)
        self.lanes = lanes
        self.model = Switch(NUMBER, tuple(range(len(peers))), SLOTS)
        self.out = []
        self.outbox = Outbox(*(np.zeros((0, *n), np.uint32) for n in ((1,), (), ())))

    def on_datagrams(self, now_ns, inbox):
        for row in range(inbox.count):
            payload = inbox.buffer[row, : inbox.lengths[row]].tobytes()
            for packet in parse_all(payload, self.lanes):
                self.receive(int(inbox.peers[row]), packet, payload[7:8])
        return inbox.count

    def receive(self, port, packet, attempt):
        answer = self.model.receive(port, packet)
        for to in sorted(answer[0]) if answer else ():
            answered = answer[1].payload()
            self.out.append((to, answered[:7] + attempt + answered[8:]))

    def poll(self, now_ns):
        out, self.out = self.out, []
        frames = np.zeros((len(out), self.longest_bytes), np.uint8)
        for row, (_, payload) in enumerate(out):
            frames[row, : len(payload)] = np.frombuffer(payload, np.uint8)
        lengths = np.array([len(payload) for _, payload in out], np.uint32)
        self.outbox = Outbox(frames, lengths, np.array([port for port, _ in out], np.uint32))
        return np.arange(len(out), dtype=np.uint32)


def rack(
    tensors, lanes=2, window=4, faults=Faults(), seed=0, timing=TIMING, first_tag=1, **network
):
    """A network of workers around a switch: a list of tensors for each rank, one a round."""
    count = len(tensors)
    addresses = [(f"10.0.0.{rank + 1}", 48872) for rank in range(count)]
    job = Job(NUMBER, count, lanes, SLOTS, window, first_tag)
    nodes = [
        Node(address, OmniReducer(job, timing, SWITCH), list(mine))
        for address, mine in zip(addresses, tensors, strict=True)
    ]
    switch = Node(SWITCH, SwitchEnd(addresses, lanes))
    return FlowNetwork([*nodes, switch], faults, seed, **network), nodes


def sparse(generator, size, dtype, density, block):
    """Random values; of each block, all or none."""
    if dtype == "int32":
        least, end = [(-(2**31), 2**31), (-1, 2)][generator.integers(2)]  # small ones often cancel
        values = generator.integers(least, end, size).astype(np.int32)
    else:
        scale = np.exp2(generator.integers(-140, 100, size))
        values = (generator.standard_normal(size) * scale).astype(np.float32)
    kept = generator.random(-(-size // block)) < density
    return values * np.repeat(kept, block)[:size].astype(dtype)


def tensors_of(seed, workers, sizes, dtype, density, block):
    generator = np.random.default_rng(seed)
    return [[sparse(generator, s, dtype, density, block) for s in sizes] for _ in range(workers)]


def expected(arrays, lanes):
    """The integers that travel, and the result, by Python's arithmetic."""
    if arrays[0].dtype == np.int32:
        total = sum(array.astype(np.int64) for array in arrays)
        wrapped = (total & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
        return wrapped, wrapped
    sums, results, workers = [], [], len(arrays)
    for start in range(0, arrays[0].size, lanes):
        blocks = [array[start : start + lanes].tolist() for array in arrays]
        exponent = max(map(quantise_model.chunk_exponent, blocks))
        for values in zip(*blocks, strict=True):
            integers = [quantise_model.quantise(value, exponent, workers) for value in values]
            sums.append(sum(integers))
            results.append(quantise_model.dequantise(sums[-1], exponent, workers))
    return np.array(sums, np.int32), np.array(results, np.float32)


def check_results(nodes, lanes):
    for node in nodes:
        assert node.error is None, node.error
        node.endpoint.finish()
    for round in range(len(nodes[0].tensors)):
        _, wanted = expected([node.tensors[round] for node in nodes], lanes)
        for node in nodes:
            assert np.array_equal(node.results[round].view(np.uint32), wanted.view(np.uint32))


@pytest.mark.long
@settings(max_examples=250, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    workers=st.integers(1, 6),
    sizes=st.lists(st.integers(0, 120), min_size=1, max_size=4),
    lanes=st.integers(1, 5),
    window=st.integers(1, SLOTS),
    dtype=st.sampled_from(["int32", "float32"]),
    density=st.sampled_from([0, 0.1, 0.5, 1]),
    mishaps=any_mishaps,
    first_tag=st.sampled_from([1, 2**32 - 2]),
    in_place=st.booleans(),
)
def test_the_sum_is_exact_whatever_the_network_does(
    seed, workers, sizes, lanes, window, dtype, density, mishaps, first_tag, in_place
):
    tensors = tensors_of(seed, workers, sizes, dtype, density, 3)
    faults, gather_ns = mishaps.faults, mishaps.gather_ns
    network, nodes = rack(
        tensors, lanes, window, faults, seed, first_tag=first_tag, gather_ns=gather_ns
    )
    mishaps.stagger(nodes)
    for node in nodes:
        node.in_place = in_place
    network.run(SLOW_NS)
    check_results(nodes, lanes)
    blocks = sum(-(-size // lanes) for size in sizes)
    for node in nodes:
        counters = node.endpoint.counters
        own = [counters[f"blocks_{what}"] for what in ("sent", "bare", "skipped")]
        assert sum(own) == blocks == blocks_of(node.tensors, lanes).size
        assert own[0] == np.count_nonzero(blocks_of(node.tensors, lanes))
        assert counters["malformed"] == 0
        if mishaps.none:
            assert counters["retransmitted"] == 0


def blocks_of(tensors, lanes):
    """Whether each block of all rounds has a value."""
    found = []
    for tensor in tensors:
        starts = range(0, tensor.size, lanes)
        found += [bool(np.any(tensor[start : start + lanes])) for start in starts]
    return np.array(found, bool)


@pytest.mark.long(but=["0-int32", "1-float32", "0.3-int32", "0.05-int32"])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("density", [0, 0.05, 0.3, 1])
def test_without_loss_each_block_that_anybody_has_is_asked_for_once(density, dtype):
    lanes, window, size = 4, 16, 4001
    tensors = tensors_of(5, 4, [size], dtype, density, 4)
    network, nodes = rack(tensors, lanes, window)
    network.run()
    check_results(nodes, lanes)
    has = [blocks_of(node.tensors, lanes) for node in nodes]
    union = np.count_nonzero(np.any(has, axis=0))
    for node, mine in zip(nodes, has, strict=True):
        own, opening = np.count_nonzero(mine), 42 + 20 + 36
        counters = node.endpoint.counters
        entries = {what: counters[f"{what}_fused"] for what in ("openings", "blocks")}
        assert entries["openings"] == window - 1
        size_bytes = own * (42 + 20 + 4 * lanes) + (union - own - entries["blocks"]) * (42 + 20)
        size_bytes += 13 * sum(entries.values()) + opening
        assert counters["bytes_sent"] == size_bytes
        assert counters["bytes_received"] == union * (42 + 20 + 4 * lanes) + window * opening
        assert counters["received"] == window + union
        assert counters["sent"] == window + union - sum(entries.values())
        assert sum(len(payload) + 42 for payload in node.sent) == size_bytes
        assert counters["blocks_skipped"] == 1001 - union


def opened(blocks, window, elements=2000, lanes=2, longest_bytes=0):
    """A worker of one job of two that has a value in these blocks, all of whose columns are open;
    who else has any has it in all blocks."""
    job = Job(NUMBER, 2, lanes, window, window)
    worker = OmniReducer(job, TIMING, SWITCH, longest_bytes)
    tensor = np.zeros(elements, np.int32)
    for block in blocks:
        tensor[block * lanes] = 1
    worker.begin(0, tensor, np.zeros(elements, np.int32))
    openings = [p for row in worker.poll(0).tolist() for p in sent(worker, row)]
    assert [(packet.slot, packet.block) for packet in openings] == [(c, 0) for c in range(window)]
    return worker, openings


def sent(worker, row):
    return parse_all(worker.outbox.datagram(row), worker.job.lanes)


def answer(worker, now_ns, packets):
    """As if the other had each column's first block next, or the one after the packet's own."""
    window = worker.job.window
    answers = []
    for p in packets:
        following = p.slot if p.shapes else p.block + window
        values = None if p.shapes else (7,) * worker.job.lanes
        got = replace(p, kind=p.kind | RESULT, next=following, exponent=0, values=values)
        answers.append((SWITCH, got.payload()))
    assert deliver(worker, now_ns, answers) == len(packets)


def test_values_take_with_them_what_was_ready_before():
    worker, openings = opened([3, 4, 7], window=8)
    answer(worker, MS, openings)
    groups = [sent(worker, row) for row in worker.poll(MS).tolist()]
    assert [[p.slot for p in group] for group in groups] == [[0, 1, 2, 3], [4], [5, 6, 7]]
    assert [[p.values is not None for p in group][-1] for group in groups] == [True] * 3
    assert all(p.values is None for group in groups for p in group[:-1])
    assert worker.counters["blocks_fused"] == 5 and worker.counters["sent"] == 4


def test_a_worker_says_which_chunks_a_datagram_carries_beside_its_own():
    """Of OPENINGs, of packets with values and without, and of whatever arrives."""
    worker, openings = opened([3], window=8)
    rows = list(range(len(worker.outbox.lengths)))
    seen = {worker.outbox.datagram(row) for row in rows}
    answer(worker, MS, openings)
    for now_ns in (MS, 2 * MS):
        seen |= {worker.outbox.datagram(row) for row in worker.poll(now_ns).tolist()}
    seen.discard(b"")
    sizes = set()
    for datagram in seen:
        *others, _ = parse_all(datagram, worker.job.lanes)
        assert worker.others(datagram) == [(p.slot, p.tag) for p in others]
        assert worker.others(datagram[:-1]) == [(p.slot, p.tag) for p in others[:-1]]
        assert worker.others(datagram[:11]) == []
        sizes.add(len(others))
    assert {0, 3} <= sizes


def test_openings_never_wait():
    """Not in a later round either, when a round trip is known."""
    worker, openings = opened([], window=30, elements=60)
    answers = [replace(p, kind=p.kind | RESULT, next=NONE) for p in openings]
    assert deliver(worker, 4 * MS, [(SWITCH, p.payload()) for p in answers]) == 30 and worker.done
    worker.begin(4 * MS, np.zeros(60, np.int32), np.zeros(60, np.int32))
    again = [p.slot for row in worker.poll(4 * MS).tolist() for p in sent(worker, row)]
    assert again == list(range(30))


def test_what_has_no_values_waits_for_a_quarter_of_a_round_trip():
    worker, openings = opened([3], window=8)
    answer(worker, 4 * MS, openings)
    assert [len(sent(worker, row)) for row in worker.poll(4 * MS).tolist()] == [4]
    assert worker.deadline_ns == 5 * MS and not worker.poll(5 * MS - 1).size
    assert worker.in_flight == 8
    assert [len(sent(worker, row)) for row in worker.poll(5 * MS).tolist()] == [4]
    assert worker.deadline_ns > 6 * MS


def test_nothing_waits_where_nothing_is_under_way():
    worker, openings = opened([3], window=4)
    answer(worker, 4 * MS, openings[:3])
    assert not worker.poll(4 * MS).size
    worker, openings = opened([1000], window=4, elements=4000)
    answer(worker, 4 * MS, openings)
    assert [len(sent(worker, row)) for row in worker.poll(4 * MS).tolist()] == [4]


def test_a_datagram_has_at_most_twenty_entries():
    worker, openings = opened([900], window=60)
    assert len(openings) == 60 and worker.counters["sent"] == 3
    answer(worker, MS, openings)
    assert [len(sent(worker, row)) for row in worker.poll(MS).tolist()] == [21, 21]
    assert [len(sent(worker, row)) for row in worker.poll(2 * MS).tolist()] == [18]


@pytest.mark.parametrize("room, groups", [(0, [21, 19]), (64, [4] * 10), (56, [3] * 13 + [1])])
def test_a_datagram_is_no_longer_than_links_carry(room, groups):
    """64 bytes: 3 entries behind headers alone, none behind an opening."""
    job = Job(NUMBER, 2, 2, 60, 40)
    worker = OmniReducer(job, TIMING, SWITCH, room)
    worker.begin(0, np.zeros(2000, np.int32), np.zeros(2000, np.int32))
    rows = worker.poll(0).tolist()
    assert [len(sent(worker, row)) for row in rows] == (groups if not room else [1] * 40)
    openings = [p for row in rows for p in sent(worker, row)]
    answers = [replace(p, kind=p.kind | RESULT, next=p.slot) for p in openings]
    deliver(worker, MS, [(SWITCH, p.payload()) for p in answers])
    found = []
    for now_ns in (MS, 2 * MS):
        rows = worker.poll(now_ns).tolist()
        found += [len(sent(worker, row)) for row in rows]
        assert all(len(worker.outbox.datagram(row)) <= worker.longest_bytes for row in rows)
    assert found == groups


def test_who_has_its_next_block_far_ahead_says_so_in_a_packet_that_stands_first():
    """An entry has 16 bits for how far."""
    worker, openings = opened([65534 * 2, 65535 * 2 + 1], 2, elements=600_000)
    assert [p.next for p in openings] == [65534 * 2, 65535 * 2 + 1]
    worker, openings = opened([65534, 65535], 2, elements=600_000, lanes=1)
    assert [p.next for p in openings] == [65534, 65535]
    assert worker.counters["sent"] == 1
    worker, openings = opened([65536, 65535], 2, elements=600_000, lanes=1)
    assert [p.next for p in openings] == [65536, 65535]
    assert worker.counters["sent"] == 2


def test_what_is_sent_again_goes_alone():
    worker, openings = opened([3], window=8)
    again = worker.poll(worker.deadline_ns).tolist()
    assert again and all(row < 8 and worker.repeats(row) for row in again)
    assert [sent(worker, row) for row in again] == [[openings[row]] for row in again]
    assert worker.repeats(8) is None


def test_zeros_of_both_signs_are_no_values_and_denormals_are():
    tensor = np.zeros(12, np.float32)
    tensor[4:8] = -0.0
    tensor[9] = 1e-45
    network, nodes = rack([[tensor], [tensor.copy()]], lanes=4, window=1)
    network.run()
    check_results(nodes, 4)
    assert nodes[0].results[0][9] == 2 * np.float64(tensor[9])
    assert not np.signbit(nodes[0].results[0]).any()
    assert nodes[0].endpoint.counters["blocks_sent"] == 1


@pytest.mark.parametrize("block", [(1, -1, 0), (-(2**31), -(2**31), 0), (3, -5, 2), (0, 0, 7)])
def test_integers_that_cancel_within_a_block_are_values(block):
    tensor = np.array([*block, 0, 0, 0], np.int32)
    network, nodes = rack([[tensor], [np.zeros_like(tensor)]], lanes=3, window=1)
    network.run()
    check_results(nodes, 3)
    assert [node.endpoint.counters["blocks_sent"] for node in nodes] == [1, 0]


def test_nobody_has_anything():
    network, nodes = rack([[np.zeros(100, np.int32)]] * 3, lanes=4, window=8)
    network.run()
    check_results(nodes, 4)
    for node in nodes:
        assert node.endpoint.counters["sent"] == 1
        assert node.endpoint.chunks_done == node.endpoint.chunks == 25
        assert node.endpoint.counters["blocks_skipped"] == 25


def again(network, nodes, tensors):
    """One more round on the same slots."""
    for node, tensor in zip(nodes, tensors, strict=True):
        node.tensors.append(tensor)
        node.deadline_ns = network.now_ns
    network.run()


@pytest.mark.parametrize("density", [0, 0.3])
def test_the_integers_that_came_back_are_handed_out(density):
    """Zeros for what nobody sent, whatever the array held before."""
    tensors = [each[0] for each in tensors_of(8, 3, [90], "float32", density, 4)]
    network, nodes = rack([[tensor] for tensor in tensors], lanes=4, window=4)
    sums = [np.full(90, 77, np.int32) for _ in nodes]
    for node, mine in zip(nodes, sums, strict=True):
        begin = node.endpoint.begin
        node.endpoint.begin = lambda now, values, out, _, begin=begin, mine=mine: begin(
            now, values, out, mine
        )
    network.run()
    for mine in sums:
        assert mine.tolist() == expected(tensors, 4)[0].tolist()


def test_inf_at_one_worker_is_told_to_all_and_the_next_round_works():
    good = [np.arange(64, dtype=np.float32) + rank for rank in range(3)]
    bad = [array.copy() for array in good]
    bad[1][21] = np.inf
    bad[0][20:24] = 0  # who has nothing in the block hears of it too
    network, nodes = rack([[tensor] for tensor in bad], lanes=4, window=4)
    network.run()
    said = []
    for node in nodes:
        with pytest.raises(NotFinite) as error:
            node.endpoint.finish()
        said.append(str(error.value))
    assert said[1] == "Inf or NaN in chunk 5 of job 7: this worker's index 21"
    assert (
        said[0]
        == said[2]
        == "Inf or NaN in chunk 5 of job 7: not at this worker, but at " + ("another of the job's")
    )
    again(network, nodes, good)
    for node in nodes:
        node.endpoint.finish()
        assert np.array_equal(node.results[1], expected(good, 4)[1])


def test_a_sum_beyond_float32_is_named():
    tensors = [np.zeros(8, np.float32) for _ in range(2)]
    for tensor in tensors:
        tensor[6] = np.finfo(np.float32).max
    network, nodes = rack([[tensor] for tensor in tensors], lanes=2, window=2)
    network.run()
    for node in nodes:
        with pytest.raises(NotFinite, match=r"the sum at index 6 \(chunk 3 of job 7\)"):
            node.endpoint.finish()


DIFFERENT = {
    "elements": lambda tensor: tensor[:-1].copy(),
    "dtype": lambda tensor: tensor.astype(np.float32),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_workers_that_reduce_unlike_all_say_so(what):
    tensors = [np.arange(30, dtype=np.int32) for _ in range(3)]
    tensors[2] = DIFFERENT[what](tensors[2])
    network, nodes = rack([[tensor] for tensor in tensors], lanes=2, window=4)
    network.run()
    for node in nodes:
        assert isinstance(node.error, ShapeMismatch)
        assert "all workers of a job have to reduce alike" in str(node.error)


def test_workers_with_another_operation_all_name_both():
    network, nodes = rack([[np.arange(30, dtype=np.int32)] for _ in range(3)], lanes=2, window=4)
    nodes[1].endpoint.agreement = Agreement(OPERATIONS.index("AVG"))
    network.run()
    for node in nodes:
        assert isinstance(node.error, ShapeMismatch)
        assert "operation SUM" in str(node.error) and "operation AVG" in str(node.error)


def test_workers_with_other_windows_all_say_so():
    """What follows in a column is then another block for each of them."""
    tensors = [np.arange(30, dtype=np.int32) for _ in range(2)]
    network, nodes = rack([[tensor] for tensor in tensors], lanes=2, window=4)
    job = replace(nodes[1].endpoint.job, window=3)
    nodes[1].endpoint = OmniReducer(job, TIMING, SWITCH)
    network.run()
    assert all(isinstance(node.error, ShapeMismatch) for node in nodes)


def test_who_waits_in_vain_says_for_what():
    tensors = [np.arange(1, 31, dtype=np.int32) for _ in range(3)]
    timing = replace(TIMING, give_up_ns=400 * MS)
    network, nodes = rack([[tensor] for tensor in tensors], lanes=2, window=4, timing=timing)
    nodes[2].dead = True
    network.run()
    assert isinstance(nodes[0].error, RoundTimeout)
    assert "no result for chunks 0-3 (slots 0-3) of job 7 after 0.4 s" in str(nodes[0].error)
    assert nodes[0].error.missing == [(0, 3)]
    assert nodes[0].endpoint.waiting(2) == [[0, 0, 1, 4], [1, 1, 1, 4]]


def column_in_flight():
    """A worker of one job of two that waits for block 4 of column 0 and has block 8 next."""
    worker = OmniReducer(Job(NUMBER, 2, 2, 4, 4), TIMING, SWITCH)
    tensor = np.zeros(40, np.int32)
    tensor[8] = tensor[16] = 5
    worker.begin(0, tensor, np.full(40, 77, np.int32))
    worker.poll(0)
    shape = parse(worker.outbox.datagram(0)).shapes
    opening = Packet(NUMBER, 0, 1, OPENING | RESULT, 0, 4, shapes=shape)
    assert deliver(worker, 1, [(SWITCH, opening.payload())]) == 1
    worker.poll(1)
    assert parse(worker.outbox.datagram(0)) == Packet(
        NUMBER, 0, 2, wire.Kind.INT32, 4, 8, values=(5, 0)
    )
    return worker


RIGHT = Packet(NUMBER, 0, 2, wire.Kind.INT32 | RESULT, 4, 8, values=(6, 1))
ODD = {
    "a contribution": replace(RIGHT, kind=wire.Kind.INT32),
    "floats": replace(RIGHT, kind=wire.Kind.SCALED | RESULT),
    "an unknown kind": replace(RIGHT, kind=0x33 | RESULT),
    "another job": replace(RIGHT, job=8),
    "a slot beyond the window": replace(RIGHT, slot=4),
    "a tag to come": replace(RIGHT, tag=3),
    "another block": replace(RIGHT, block=8),
    "the same block again": replace(RIGHT, next=4),
    "a block before": replace(RIGHT, next=0),
    "another column's block": replace(RIGHT, next=5),
    "a block beyond what it has": replace(RIGHT, next=12),
    "the end, though it has more": replace(RIGHT, next=NONE),
    "a value too many": replace(RIGHT, values=(6, 1, 1)),
    "a value too few": replace(RIGHT, values=(6,)),
}


@pytest.mark.parametrize("what", ODD)
def test_what_no_switch_can_have_answered_is_counted_and_changes_nothing(what):
    worker = column_in_flight()
    before = worker.columns.copy(), worker.chunks_done
    assert deliver(worker, 2, [(SWITCH, ODD[what].payload())]) == 0
    assert worker.counters["malformed"] == 1
    assert np.array_equal(worker.columns, before[0]) and worker.chunks_done == before[1]
    assert deliver(worker, 3, [(SWITCH, RIGHT.payload())]) == 1
    assert worker.counters["malformed"] == 1


def test_what_is_bare_but_says_it_has_values_is_malformed():
    worker = column_in_flight()
    payload = bytearray(RIGHT.payload())
    payload[1] ^= BARE
    assert deliver(worker, 2, [(SWITCH, bytes(payload))]) == 0
    assert deliver(worker, 2, [(SWITCH, bytes(payload[:19]))]) == 0
    assert worker.counters["malformed"] == 2


def test_older_results_are_duplicates_or_late():
    worker = column_in_flight()
    opening = Packet(NUMBER, 0, 1, OPENING | RESULT, 0, 4, shapes=(1, 1)).payload()
    deliver(worker, 2, [(SWITCH, opening)])
    assert worker.counters["duplicates"] == 1
    deliver(worker, 2, [(SWITCH, RIGHT.payload()), (SWITCH, opening), (SWITCH, RIGHT.payload())])
    counters = worker.counters
    assert (counters["duplicates"], counters["late"], counters["malformed"]) == (2, 1, 0)
    worker.poll(3)
    deliver(worker, 4, [(SWITCH, RIGHT.payload())])
    assert worker.counters["duplicates"] == 3


def test_random_bytes_change_nothing():
    chance = random.Random(3)
    worker = column_in_flight()
    good = RIGHT.payload()
    before = worker.columns.copy()
    for _ in range(3000):
        payload = bytearray(good)
        for _ in range(chance.randrange(1, 4)):
            payload[chance.randrange(8)] = chance.randrange(256)
        payload[1] |= 4  # no kind there is
        deliver(worker, 2, [(SWITCH, bytes(payload[: chance.randrange(len(payload) + 1)]))])
    assert np.array_equal(worker.columns, before)


@pytest.mark.long(but=["0.001"])
@pytest.mark.parametrize("loss", [0.001, 0.01, 0.05])
def test_a_loss_costs_a_round_trip(loss):
    lanes, window, workers, size = 64, 64, 4, 80_000
    tensors = tensors_of(3, workers, [size], "int32", 0.4, lanes)
    times = []
    for chance in (0.0, loss):
        faults = Faults(chance, delay_ns=MS // 2)
        network, nodes = rack(tensors, lanes, window, faults, 5, rate_bps=1e8)
        network.run()
        check_results(nodes, lanes)
        times.append(network.now_ns)
    assert times[1] < (1.3 + 25 * loss) * times[0]


def test_the_format_is_that_of_the_page():
    """Sizes that systems/omnireduce/README.md states."""
    assert (wire.HEADER_BYTES, wire.OPENING_BYTES, wire.ENTRY_BYTES) == (20, 98 - 42, 13)
    assert wire.longest_datagram_bytes(256) == 20 + 1024 + 20 * 13
    assert wire.longest_datagram_bytes(1) == wire.OPENING_BYTES + 20 * 13
    assert wire.longest_datagram_bytes(256, 1472) == 20 + 1024 + 20 * 13
    assert wire.longest_datagram_bytes(300, 1472) == 1472
    assert wire.longest_datagram_bytes(363, 1472) == wire.longest_datagram_bytes(363, 1) == 1472
    assert wire.HEADER.names[-2:] == ("block", "next")
