"""The ring against independent arithmetic, whatever the network does; its bytes and errors."""

import random
from dataclasses import replace

import numpy as np
import pytest
from flow_network import (
    HEADERS_BYTES,
    MS,
    NEVER,
    TIMING,
    FlowNetwork,
    Node,
    check_sums,
    deliver,
    tensors_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from mishaps import SLOW_NS, any_mishaps, count_losses, fall_silent, forge_start, refuse_all
from switch_model import Faults

from agglab.hosts.agreement import OPERATIONS, Agreement
from agglab.hosts.driver import default_window
from agglab.hosts.errors import NotFinite, RoundTimeout, ShapeMismatch
from agglab.systems.ring import wire
from agglab.systems.ring.worker import (
    COUNTERS,
    RingJob,
    RingWorker,
    chunks_of_segment,
    packets_of_round,
    predicted_bytes,
)

DATA, ACKNOWLEDGEMENT = 0x10, 0x11


def addresses(workers):
    return [(f"10.0.0.{rank + 1}", 5000) for rank in range(workers)]


def ring(tensors, lanes=2, window=4, faults=Faults(), seed=0, timing=TIMING, **network):
    """A network of workers that reduce these tensors: a list for each rank, one a round."""
    peers = addresses(len(tensors))
    nodes = []
    for rank, mine in enumerate(tensors):
        job = RingJob(7, rank, len(tensors), lanes, window, 3, peers, timing)
        nodes.append(Node(peers[rank], RingWorker(job), list(mine)))
    return FlowNetwork(nodes, faults, seed, **network), nodes


def expected(arrays):
    """Segment j is summed from worker j on around the ring, in the arrays' own arithmetic."""
    workers, size = len(arrays), arrays[0].size
    result = np.empty_like(arrays[0])
    with np.errstate(all="ignore"):
        for segment in range(workers):
            part = slice(size * segment // workers, size * (segment + 1) // workers)
            total = arrays[segment][part].copy()
            for step in range(1, workers):
                total = total + arrays[(segment + step) % workers][part]
            result[part] = total
    return result


def check_results(nodes):
    check_sums(nodes, expected)


@settings(max_examples=250, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    workers=st.integers(1, 8),
    sizes=st.lists(st.integers(0, 90), min_size=1, max_size=4),
    lanes=st.integers(1, 5),
    window=st.integers(1, 70),
    dtype=st.sampled_from(["int32", "float32"]),
    mishaps=any_mishaps,
    in_place=st.booleans(),
)
def test_the_sum_is_exact_whatever_the_network_does(
    seed, workers, sizes, lanes, window, dtype, mishaps, in_place
):
    tensors, faults = tensors_of(seed, workers, sizes, dtype), mishaps.faults
    gather_ns = mishaps.gather_ns
    network, nodes = ring(tensors, lanes, window, faults, seed, gather_ns=gather_ns)
    mishaps.stagger(nodes)
    for node in nodes:
        node.in_place = in_place
    network.run(SLOW_NS)
    check_results(nodes)
    assert all(node.endpoint.counters["malformed"] == 0 for node in nodes)
    if mishaps.none:
        assert all(node.endpoint.counters["retransmitted"] == 0 for node in nodes)


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
@pytest.mark.parametrize("elements", [0, 1, 7, 64, 1000])
def test_without_loss_the_bytes_are_as_predicted_and_nothing_is_sent_again(workers, elements):
    tensors = tensors_of(elements, workers, [elements], "int32")
    network, nodes = ring(tensors, lanes=4, window=32)
    network.run()
    check_results(nodes)
    longest = (elements + workers - 1) // workers
    chunks = max(1, (longest + 3) // 4)
    for node in nodes:
        data = [payload for payload in node.sent if payload[1] == DATA]
        counters = node.endpoint.counters
        assert len(data) == 2 * (workers - 1) * chunks == packets_of_round(elements, workers, 4)
        assert chunks == chunks_of_segment(elements, workers, 4)
        sent = sum(len(payload) + HEADERS_BYTES for payload in data)
        assert sent == predicted_bytes(elements, workers, 4)
        assert counters["bytes_sent"] == sent + counters["acknowledgement_bytes"]
        assert counters["sent"] == len(data) + counters["acknowledgements"]
        assert counters["acknowledgements"] <= len(data)
        assert counters["retransmitted"] == counters["duplicates"] == counters["late"] == 0


def test_on_a_busy_link_there_is_one_acknowledgement_for_four_packets():
    tensors = tensors_of(1, 3, [30_000], "float32")
    network, nodes = ring(tensors, 64, 128, Faults(delay_ns=50_000), rate_bps=1e9)
    network.run()
    check_results(nodes)
    for node in nodes:
        counters = node.endpoint.counters
        packets = packets_of_round(30_000, 3, 64)
        assert packets / 4 <= counters["acknowledgements"] <= 1.05 * packets / 4
        # 66 bytes for each four of 42 + 24 + 256.
        assert counters["acknowledgement_bytes"] < 0.06 * predicted_bytes(30_000, 3, 64)


def test_a_window_fills_a_link_of_1_gbit_with_a_round_trip_of_1_ms():
    elements, lanes, workers = 400_000, 256, 4
    window = default_window(wire.frame_bytes(lanes), 65535, 1e9)
    assert window > 1e-3 * 1e9 / 8 / wire.frame_bytes(lanes)
    tensors = tensors_of(2, workers, [elements], "float32")
    network, nodes = ring(tensors, lanes, window, Faults(delay_ns=MS // 2), rate_bps=1e9)
    network.run()
    check_results(nodes)
    bound_ns = predicted_bytes(elements, workers, lanes) * 8
    assert bound_ns < network.now_ns < 1.06 * bound_ns + 2 * (workers - 1) * MS
    assert sum(node.endpoint.counters["retransmitted"] for node in nodes) == 0


@pytest.mark.parametrize("loss", [0.001, 0.01, 0.05])
def test_little_more_is_sent_again_than_was_lost(loss):
    elements, lanes, workers = 300_000, 256, 4
    tensors = tensors_of(3, workers, [elements], "int32")
    window = default_window(wire.frame_bytes(lanes), 65535, 1e9)
    network, nodes = ring(tensors, lanes, window, Faults(loss, delay_ns=MS // 2), 5, rate_bps=1e9)
    lost = count_losses(network, lambda payload: payload[1])
    network.run()
    check_results(nodes)
    again = sum(node.endpoint.counters["retransmitted"] for node in nodes)
    assert lost[DATA] <= again <= 1.25 * lost[DATA] + 8 * workers
    bound_ns = predicted_bytes(elements, workers, lanes) * 8
    assert network.now_ns < (1.3 + 12 * loss) * bound_ns + 30 * MS


def test_a_worker_that_begins_late_finds_what_came_before():
    tensors = tensors_of(4, 3, [60, 60], "int32")
    network, nodes = ring(tensors, 2, 8)
    nodes[1].starts_ns = nodes[1].deadline_ns = 15 * MS  # the first timeout is after 20 ms
    network.run()
    check_results(nodes)
    assert nodes[1].endpoint.counters["early_packets"] >= 8
    for name in ("retransmitted", "duplicates", "late"):  # nor are they taken again in round 2
        assert sum(node.endpoint.counters[name] for node in nodes) == 0
    assert network.now_ns < 120 * MS


def test_the_last_acknowledgement_is_sent_again_between_rounds():
    tensors = tensors_of(5, 2, [8], "int32")
    network, nodes = ring(tensors, 2, 8)
    lost = []

    def lose_last(source, target, payload):
        cumulative = int.from_bytes(payload[20:24], "big")
        if payload[1] == ACKNOWLEDGEMENT and cumulative == 4 and len(lost) < 2:
            lost.append(payload)
            return None
        return payload

    network.tap = lose_last
    network.run()
    check_results(nodes)
    assert len(lost) == 2
    assert sum(node.endpoint.counters["duplicates"] for node in nodes) >= 1


@pytest.mark.parametrize("workers", [2, 3, 5])
def test_a_dead_peer_ends_the_round_within_the_time_to_give_up(workers):
    tensors = tensors_of(6, workers, [4000], "int32")
    timing = replace(TIMING, give_up_ns=1000 * MS)
    network, nodes = ring(tensors, 2, 16, Faults(delay_ns=MS), timing=timing)
    network.run()
    healthy_ns = network.now_ns
    network, nodes = ring(tensors, 2, 16, Faults(delay_ns=MS), timing=timing)
    while nodes[0].endpoint.chunks_done < 100:
        network.step(NEVER)
    nodes[-1].dead = True
    died_ns = network.now_ns
    network.run()
    for node in nodes[:-1]:
        assert isinstance(node.error, RoundTimeout)
        assert "of job 7 after 1 s" in str(node.error)
        assert node.failed_ns == node.endpoint.state.heard_ns + 1000 * MS
        assert node.endpoint.waiting(5)
    # What is on its way around the ring still arrives.
    assert network.now_ns <= died_ns + healthy_ns + 1000 * MS
    before = nodes[0].error
    assert f"from worker {workers - 1} and no acknowledgement" in str(before) or workers > 2
    assert before.missing[0][0] >= 100


OTHER_SHAPES = [(9, "int32", 2, 4), (8, "float32", 2, 4), (8, "int32", 3, 4), (8, "int32", 2, 5)]


@pytest.mark.parametrize("workers", [2, 3, 6])
@pytest.mark.parametrize("other", OTHER_SHAPES)
@pytest.mark.parametrize("loss", [0, 0.3])
@pytest.mark.parametrize("seed", range(5, 10))
def test_all_workers_hear_that_shapes_differ(workers, other, loss, seed):
    """With six workers and seeds 5, 6 and 8, one hears of it while it is still in the round before,
    from a worker whose digest is its own. It names the other digest, not its own, to the next."""
    elements, dtype, lanes, window = other
    peers = addresses(workers)
    nodes = []
    for rank in range(workers):
        odd = rank == workers - 1
        job = RingJob(7, rank, workers, lanes if odd else 2, window if odd else 4, 3, peers, TIMING)
        second = np.ones(elements, dtype) if odd else np.ones(8, np.int32)
        first = [np.ones(8, np.int32)] if lanes == 2 and window == 4 else []
        nodes.append(Node(peers[rank], RingWorker(job), [*first, second]))
    network = FlowNetwork(nodes, Faults(loss, delay_ns=MS), seed)
    network.run()
    assert [type(node.error) for node in nodes] == [ShapeMismatch] * workers
    assert all(node.endpoint.counters["malformed"] == 0 for node in nodes)
    digests = {node.endpoint.state.digest for node in nodes}
    for node in nodes:
        state = node.endpoint.state
        assert {state.digest, state.other_digest} == digests and len(digests) == 2
    assert f"round {len(first)} of job 7: this worker reduces 8 int32 elements" in str(
        nodes[0].error
    )
    assert f"this worker reduces {elements} {dtype} elements" in str(nodes[-1].error)
    fall_silent(network)


@pytest.mark.parametrize("loss", [0, 0.3])
def test_all_workers_hear_of_another_operation_and_name_both(loss):
    peers = addresses(3)
    jobs = [RingJob(7, rank, 3, 2, 4, 3, peers, TIMING) for rank in range(3)]
    nodes = [Node(peers[job.rank], RingWorker(job), [np.ones(8, np.int32)]) for job in jobs]
    nodes[1].endpoint.agreement = Agreement(OPERATIONS.index("AVG"))
    FlowNetwork(nodes, Faults(loss, delay_ns=MS), seed=3).run()
    assert [type(node.error) for node in nodes] == [ShapeMismatch] * 3
    for node in nodes:
        assert "operation SUM" in str(node.error) and "operation AVG" in str(node.error)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38])
def test_a_result_that_is_not_finite_is_named_and_the_next_round_works(value):
    tensors = tensors_of(8, 3, [20, 20], "float32")
    for mine in tensors:
        mine[0][13] = value
    network, nodes = ring(tensors)
    network.run()
    for node in nodes:
        node.endpoint.finish()
        with pytest.raises(NotFinite, match=r"index 13 of job 7 is (-?inf|nan)"):
            node.endpoint._out = node.results[0]
            node.endpoint.finish()
    with np.errstate(all="ignore"):
        assert nodes[0].results[1].tobytes() == expected([mine[1] for mine in tensors]).tobytes()


def frozen(endpoint):
    """All that a datagram could change, but counters."""
    state, head = endpoint.state, endpoint.head
    held_by_head = [getattr(head, name) for name in ("queued", "done", "error", "chunks_done")]
    names = [name for name, _ in state._fields_ if name not in (*COUNTERS, "endpoint")]
    arrays = (endpoint._taken, endpoint._packets, endpoint._early, endpoint._early_set)
    held = [array.tobytes() for array in (*arrays, endpoint.outbox.frames, endpoint._out)]
    fields = [getattr(state, name) for name in names]
    return held_by_head + fields + [bytes(endpoint.recoveries[0]), *held]


def sent_so_far(seed):
    """A network in the middle of a round, and every datagram that anybody has sent."""
    network, nodes = ring(tensors_of(seed, 3, [90, 90], "int32"), 2, 8, Faults(0.1), seed)
    for _ in range(40 + seed):
        network.step(NEVER)
    return network, nodes


FORGERIES = ("version", "kind", "job", "session", "round", "length", "numbers")


def forged(chance, payload):
    """What nobody can have sent, made of what somebody has."""
    data = bytearray(payload)
    kind = chance.choice(FORGERIES)
    if forge_start(chance, data, kind, (1, 16, 17, 18)):
        pass
    elif data[1] == DATA:
        data[16] |= chance.randrange(1, 256)
    else:
        data[20:24] = chance.randrange(500, 2**32).to_bytes(4, "big")
    return bytes(data)


@pytest.mark.parametrize("seed", range(30))
def test_malformed_and_forged_datagrams_change_nothing(seed):
    network, nodes = sent_so_far(seed)
    refuse_all(network, nodes, forged, frozen, seed)
    network.run()
    check_results(nodes)


@pytest.mark.parametrize("seed", range(10))
def test_random_bytes_and_replays_harm_no_result(seed):
    network, nodes = sent_so_far(seed)
    chance = random.Random(seed)
    for _ in range(300):
        network.step(NEVER)
        node = chance.choice(nodes)
        seen = [payload for other in nodes for payload in other.sent]
        fakes = [chance.randbytes(chance.randrange(60)) for _ in range(3)]
        replay = chance.choice(seen)
        source = node.endpoint.peers[1 if replay[1] == DATA else 0]
        sender = next(n for n in nodes if n.address == source)
        if replay in sender.sent and not node.finished:
            fakes.append(replay)
        deliver(node.endpoint, network.now_ns, [(source, fake) for fake in fakes])
        if all(node.finished for node in nodes):
            break
    network.run()
    check_results(nodes)


def test_data_come_from_the_worker_before_and_acknowledgements_from_the_next():
    _, nodes = ring(tensors_of(9, 3, [12], "int32"), 2, 8)
    for node in nodes:
        node.begin_next(0)
    first, (following, before) = nodes[0].endpoint, nodes[0].endpoint.peers
    header = np.frombuffer(nodes[0].poll(0)[0][1], wire.HEADER, 1).copy()
    header["kind"], header["cumulative"] = ACKNOWLEDGEMENT, 1
    data, acknowledgement = nodes[2].poll(0)[0][1], header.tobytes()
    untouched = frozen(first)
    for source, payload in ((following, data), (before, acknowledgement)):
        assert deliver(first, 1, [(source, payload)]) == 0
        assert frozen(first) == untouched
    assert first.counters["malformed"] == 2
    for source, payload in ((before, data), (following, acknowledgement)):
        assert deliver(first, 1, [(source, payload)]) == 1


@pytest.mark.parametrize("came_ns", [3 * MS, MS])
def test_the_time_that_an_acknowledgement_was_held_back_is_not_the_networks(came_ns):
    """Even if it claims to have been held back for longer than the whole way took."""
    _, nodes = ring(tensors_of(9, 3, [12], "int32"), 2, 8)
    first, held_back = nodes[0].endpoint, 200
    nodes[0].begin_next(0)
    sent = nodes[0].poll(0)
    header = np.frombuffer(sent[0][1], wire.HEADER, 1).copy()
    header["kind"], header["cumulative"], header["delay"] = ACKNOWLEDGEMENT, 1, held_back
    assert deliver(first, came_ns, [(first.peers[0], header.tobytes())]) == 1
    on_the_way_ns = came_ns - held_back * wire.DELAY_UNIT_NS
    assert first.recoveries[0].srtt_ns == max(0, on_the_way_ns)


@pytest.mark.parametrize(("units", "delay"), [(200, 200), (255, 255), (256, 255), (600, 255)])
def test_an_acknowledgement_tells_at_most_255_units_for_which_it_was_held_back(units, delay):
    _, nodes = ring(tensors_of(9, 3, [12], "int32"), 2, 16)
    for node in nodes:
        node.begin_next(0)
    nodes[0].poll(0)
    data = nodes[2].poll(0)[0][1]
    assert deliver(nodes[0].endpoint, 0, [(nodes[0].endpoint.peers[1], data)]) == 1
    sent = [payload for _, payload in nodes[0].poll(units * wire.DELAY_UNIT_NS)]
    (acknowledgement,) = [payload for payload in sent if payload[1] == ACKNOWLEDGEMENT]
    assert np.frombuffer(acknowledgement, wire.HEADER, 1)["delay"] == delay


def test_an_acknowledgement_names_the_attempt_that_came():
    _, nodes = ring(tensors_of(9, 3, [12], "int32"), 2, 16)
    for node in nodes:
        node.begin_next(0)
    nodes[0].poll(0)
    data = nodes[2].poll(0)[0][1]
    for attempt in (3, 1):
        header = np.frombuffer(data, wire.HEADER, 1).copy()
        header["attempt"] = attempt
        repeated = header.tobytes() + data[wire.HEADER_BYTES :]
        deliver(nodes[0].endpoint, 0, [(nodes[0].endpoint.peers[1], repeated)])
        sent = [payload for _, payload in nodes[0].poll(0)]
        (acknowledgement,) = [payload for payload in sent if payload[1] == ACKNOWLEDGEMENT]
        assert np.frombuffer(acknowledgement, wire.HEADER, 1)["attempt"] == attempt


def test_what_was_not_sent_cannot_be_acknowledged():
    """The window holds packets that wait for what is to come: those were never sent."""
    _, nodes = ring(tensors_of(9, 3, [12], "int32"), 2, 8)
    first = nodes[0].endpoint
    nodes[0].begin_next(0)
    sent = nodes[0].poll(0)
    assert len(sent) == 2
    header = np.frombuffer(sent[0][1], wire.HEADER, 1).copy()
    header["kind"], header["cumulative"] = ACKNOWLEDGEMENT, 3
    before = frozen(first)
    for cumulative, bitmap in ((3, b""), (1, bytes([2] + [0] * 7)), (0, bytes(7)), (0, bytes(16))):
        header["cumulative"] = cumulative
        payload = header.tobytes() + bitmap
        assert deliver(first, 1, [(first.peers[0], payload)]) == 0
        assert frozen(first) == before
    assert first.counters["malformed"] == 4
    header["cumulative"] = 2
    assert deliver(first, 1, [(first.peers[0], header.tobytes())]) == 1
    assert first.in_flight == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"job": 65536}, "job is 65536; it must be 0 to 65535"),
        ({"rank": 2}, "rank is 2; it must be 0 to 1"),
        ({"workers": 0}, "workers is 0; it must be 1 to 65535"),
        ({"lanes": 0}, "lanes is 0; it must be 1 to 16370"),
        ({"window": 4097}, "window is 4097; it must be 1 to 4096"),
        ({"session": -1}, "session is -1; it must be 0 to 4294967295"),
        ({"peers": [("a", 1)]}, "peers has 1 addresses; it must have 2"),
        ({"peers": [("a", 1), ("a", 1)]}, "peers has an address twice"),
    ],
)
def test_impossible_numbers_are_refused(change, message):
    usual = {"job": 1, "rank": 0, "workers": 2, "lanes": 4, "window": 8, "session": 0}
    usual |= {"peers": addresses(2)}
    with pytest.raises(ValueError, match=message):
        RingJob(**(usual | change))


def test_the_header_has_at_most_24_bytes_and_counters_are_explained():
    assert wire.HEADER_BYTES == 24
    endpoint = RingWorker(RingJob(1, 0, 1, 4, 8, 0, addresses(1)))
    assert list(endpoint.counters) == list(COUNTERS)
    assert all(unit in ("packets", "bytes") and meaning for unit, meaning in COUNTERS.values())
