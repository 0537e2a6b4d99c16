"""Parameter servers against independent arithmetic, whatever the network does; bytes and errors."""

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
from agglab.systems.ps import wire
from agglab.systems.ps.agents import (
    COUNTERS,
    SERVER_COUNTERS,
    PsServer,
    PsWorker,
    ServerJob,
    WorkerJob,
    chunks_of_round,
    chunks_of_server,
    predicted_bytes,
)


def worker_address(rank):
    return f"10.0.0.{rank + 1}", 5000


def server_address(index):
    return f"10.0.1.{index + 1}", 6000


def star(tensors, servers=1, lanes=2, window=4, faults=Faults(), seed=0, timing=TIMING, **network):
    """A network of workers that reduce these tensors, a list for each rank, and of servers."""
    workers = len(tensors)
    common = {"job": 7, "workers": workers, "servers": servers, "lanes": lanes, "window": window}
    common["session"] = 3
    nodes = []
    for rank, mine in enumerate(tensors):
        peers = [server_address(index) for index in range(servers)]
        job = WorkerJob(rank=rank, peers=peers, timing=timing, **common)
        nodes.append(Node(worker_address(rank), PsWorker(job), list(mine)))
    for index in range(servers):
        peers = [worker_address(rank) for rank in range(workers)]
        job = ServerJob(rank=index, peers=peers, **common)
        nodes.append(Node(server_address(index), PsServer(job)))
        nodes[-1].deadline_ns = NEVER
    return FlowNetwork(nodes, faults, seed, **network), nodes[:workers], nodes[workers:]


def expected(arrays):
    """In rank order, in the arrays' own arithmetic."""
    total = arrays[0].copy()
    with np.errstate(all="ignore"):
        for array in arrays[1:]:
            total = total + array
    return total


def check_results(workers):
    check_sums(workers, expected)


@pytest.mark.long
@settings(max_examples=250, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    workers=st.integers(1, 8),
    servers=st.integers(1, 4),
    sizes=st.lists(st.integers(0, 90), min_size=1, max_size=4),
    lanes=st.integers(1, 5),
    window=st.integers(1, 70),
    dtype=st.sampled_from(["int32", "float32"]),
    mishaps=any_mishaps,
    in_place=st.booleans(),
)
def test_the_sum_is_exact_whatever_the_network_does(
    seed, workers, servers, sizes, lanes, window, dtype, mishaps, in_place
):
    tensors, faults = tensors_of(seed, workers, sizes, dtype), mishaps.faults
    gather_ns = mishaps.gather_ns
    network, nodes, others = star(
        tensors, servers, lanes, window, faults, seed, gather_ns=gather_ns
    )
    mishaps.stagger(nodes)
    for node in nodes:
        node.in_place = in_place
    network.run(SLOW_NS)
    check_results(nodes)
    assert all(node.endpoint.counters["malformed"] == 0 for node in [*nodes, *others])
    chunks = sum(chunks_of_round(size, servers, lanes) for size in sizes)
    assert sum(node.endpoint.counters["summed_ever"] for node in others) == chunks
    for counters in [node.endpoint.counters for node in others]:
        results = workers * counters["summed_ever"]
        assert counters["sent"] == results + counters["answered_again"]
    if mishaps.none:
        assert all(node.endpoint.counters["retransmitted"] == 0 for node in nodes)


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("servers", [1, 2, 3])
@pytest.mark.parametrize("elements", [0, 1, 7, 1000])
def test_without_loss_the_bytes_are_as_predicted_and_nothing_is_sent_again(
    workers, servers, elements
):
    tensors = tensors_of(elements, workers, [elements], "int32")
    network, nodes, others = star(tensors, servers, lanes=4, window=32)
    network.run()
    check_results(nodes)
    chunks = max(servers, (elements + 3) // 4)
    assert chunks == chunks_of_round(elements, servers, 4)
    for node in nodes:
        counters = node.endpoint.counters
        assert counters["sent"] == counters["received"] == chunks
        assert counters["bytes_sent"] == counters["bytes_received"] == chunks * (42 + 24 + 16)
        assert counters["bytes_sent"] == predicted_bytes(elements, servers, 4)
        assert counters["retransmitted"] == counters["duplicates"] == counters["late"] == 0
    for index, node in enumerate(others):
        counters, own = node.endpoint.counters, len(range(index, chunks, servers))
        assert own == chunks_of_server(elements, servers, 4, index) == counters["summed_ever"]
        assert counters["sent"] == counters["received"] == workers * own
        assert counters["bytes_sent"] == counters["bytes_received"] == workers * own * 82
        assert counters["answered_again"] == 0


def test_a_window_fills_a_link_of_1_gbit_with_a_round_trip_of_1_ms():
    """As many servers as workers: every link carries the tensor once each way."""
    elements, lanes, workers = 400_000, 256, 4
    window = default_window(wire.frame_bytes(lanes), 65535, 1e9)
    assert window > 1e-3 * 1e9 / 8 / wire.frame_bytes(lanes)
    tensors = tensors_of(2, workers, [elements], "float32")
    faults = Faults(delay_ns=MS // 2)
    network, nodes, _ = star(tensors, workers, lanes, window, faults, rate_bps=1e9)
    network.run()
    check_results(nodes)
    bound_ns = predicted_bytes(elements, workers, lanes) * 8
    assert bound_ns < network.now_ns < 1.05 * bound_ns + 2 * MS
    assert sum(node.endpoint.counters["retransmitted"] for node in nodes) == 0


@pytest.mark.parametrize("loss", [0.001, 0.01, 0.05])
def test_little_more_is_sent_again_than_was_lost(loss):
    """Where one push is lost, all workers lack the result and ask; see the page."""
    elements, lanes, workers = 300_000, 256, 4
    tensors = tensors_of(3, workers, [elements], "int32")
    window = default_window(wire.frame_bytes(lanes), 65535, 1e9)
    faults = Faults(loss, delay_ns=MS // 2)
    network, nodes, _ = star(tensors, workers, lanes, window, faults, 5, rate_bps=1e9)
    pushes = (wire.Kind.PUSH_INT32, wire.Kind.PUSH_FLOAT32)
    lost = count_losses(network, lambda payload: "push" if payload[1] in pushes else "result")
    network.run()
    check_results(nodes)
    again = sum(node.endpoint.counters["retransmitted"] for node in nodes)
    needed = sum(lost.values())
    asked = workers * lost["push"] + lost["result"]
    assert needed <= again <= 1.25 * asked + 8 * workers


def test_a_worker_that_begins_late_finds_its_place_and_nothing_is_sent_again():
    tensors = tensors_of(4, 3, [60], "int32")
    network, nodes, _ = star(tensors, 2, 2, 8)
    nodes[1].starts_ns = nodes[1].deadline_ns = 15 * MS  # the first timeout is after 20 ms
    network.run()
    check_results(nodes)
    assert sum(node.endpoint.counters["retransmitted"] for node in nodes) == 0
    assert network.now_ns < 60 * MS


def test_a_result_of_the_round_before_is_given_to_who_still_lacks_it():
    """One worker never gets its last result while the others begin the next round."""
    tensors = tensors_of(5, 3, [8, 8], "float32")
    network, nodes, (server,) = star(tensors, 1, 2, 4)
    blocked = []

    def lose(source, target, payload):
        first_round = payload[12:14] == bytes(2)
        if target == nodes[0].address and first_round and len(blocked) < 12:
            blocked.append(payload)
            return None
        return payload

    network.tap = lose
    while not server.endpoint.waiting(9):
        network.step(NEVER)
    while len(blocked) < 12:
        network.step(NEVER)
    assert [rank for _, *ranks in server.endpoint.waiting(9) for rank in ranks] == [0] * 4
    assert nodes[1].endpoint.in_flight == 4 and len(nodes[1].results) == 2
    network.run()
    check_results(nodes)
    assert server.endpoint.counters["answered_again"] >= 8


@pytest.mark.parametrize("victim", ["worker", "server"])
def test_a_dead_peer_ends_the_round_within_the_time_to_give_up(victim):
    tensors = tensors_of(6, 3, [4000], "int32")
    timing = replace(TIMING, give_up_ns=1000 * MS)
    network, nodes, others = star(tensors, 2, 2, 16, Faults(delay_ns=MS), timing=timing)
    while nodes[0].endpoint.chunks_done < 100:
        network.step(NEVER)
    dead = nodes[2] if victim == "worker" else others[1]
    dead.dead = True
    network.run()
    for node in nodes:
        if node is dead:
            continue
        assert isinstance(node.error, RoundTimeout)
        heard_ns = max(each.progress_ns for each in node.endpoint.recoveries)
        assert node.failed_ns == heard_ns + 1000 * MS
        servers = "0-1" if victim == "worker" else "1"
        assert str(node.error).endswith(f"of job 7 from servers {servers} after 1 s")
        assert node.error.missing[0][0] >= 100
        assert {index for _, index in node.endpoint.waiting(99)} == (
            {0, 1} if victim == "worker" else {1}
        )
    if victim == "worker":
        assert {rank for _, *ranks in others[0].endpoint.waiting(99) for rank in ranks} == {2}


@pytest.mark.parametrize("silent", [0, 1])
def test_a_server_may_be_silent_for_long_while_another_answers(silent):
    """For longer than workers wait; the other server has chunks for as long as that."""
    tensors = tensors_of(6, 3, [12_000], "int32")
    timing = replace(TIMING, give_up_ns=300 * MS)
    network, nodes, others = star(tensors, 2, 2, 16, Faults(delay_ns=MS), timing=timing)
    while nodes[0].endpoint.chunks_done < 100:
        network.step(NEVER)
    heard_again_ns = network.now_ns + 400 * MS

    def lose(source, target, payload):
        lost = source == others[silent].address and network.now_ns < heard_again_ns
        return None if lost else payload

    network.tap = lose
    while network.now_ns < heard_again_ns:
        network.step(NEVER)
    heard = [node.endpoint.recoveries[silent].progress_ns for node in nodes]
    assert max(heard) < heard_again_ns - 300 * MS, "given up if the other were silent too"
    network.run()
    check_results(nodes)


OTHER_SHAPES = [
    (9, "int32", 2, 4),
    (900, "int32", 2, 4),
    (8, "float32", 2, 4),
    (8, "int32", 3, 4),
    (8, "int32", 1, 4),
    (8, "int32", 2, 9),
]


@pytest.mark.parametrize("workers", [2, 3, 6])
@pytest.mark.parametrize("servers", [1, 3])
@pytest.mark.parametrize("other", OTHER_SHAPES)
@pytest.mark.parametrize("loss", [0, 0.3])
def test_all_workers_hear_that_shapes_differ(workers, servers, other, loss):
    elements, dtype, lanes, window = other
    alike = lanes == 2 and window == 4
    first = [np.ones(8, np.int32)] if alike else []
    tensors = [[*first, np.ones(8, np.int32)] for _ in range(workers)]
    network, nodes, others = star(tensors, servers, 2, 4, Faults(loss, delay_ns=MS), workers)
    odd = nodes[-1]
    odd.endpoint = PsWorker(replace(odd.endpoint.job, lanes=lanes, window=window))
    odd.tensors = [*first, np.ones(elements, dtype)]
    network.run()
    assert [type(node.error) for node in nodes] == [ShapeMismatch] * workers
    words = f"round {len(first)} of job 7: this worker reduces"
    assert f"{words} 8 int32 elements" in str(nodes[0].error)
    assert f"{words} {elements} {dtype} elements" in str(odd.error)
    assert all(node.error is None for node in others)
    fall_silent(network)


@pytest.mark.parametrize("servers", [1, 3])
@pytest.mark.parametrize("loss", [0, 0.3])
def test_all_workers_hear_of_another_operation_and_name_both(servers, loss):
    tensors = [[np.ones(8, np.int32)] for _ in range(3)]
    network, nodes, _ = star(tensors, servers, 2, 4, Faults(loss, delay_ns=MS), servers)
    nodes[1].endpoint.agreement = Agreement(OPERATIONS.index("AVG"))
    network.run()
    assert [type(node.error) for node in nodes] == [ShapeMismatch] * 3
    for node in nodes:
        assert "operation SUM" in str(node.error) and "operation AVG" in str(node.error)


@pytest.mark.parametrize("servers", [1, 3])
@pytest.mark.parametrize("lanes", [1, 3, 40])
@pytest.mark.parametrize("loss", [0, 0.3])
def test_all_workers_hear_that_a_server_has_other_lanes(servers, lanes, loss):
    tensors = [[np.ones(8, np.int32)] for _ in range(3)]
    network, nodes, others = star(tensors, servers, 2, 4, Faults(loss, delay_ns=MS), servers)
    others[-1].endpoint = PsServer(replace(others[-1].endpoint.job, lanes=lanes))
    network.run()
    assert [type(node.error) for node in nodes] == [ShapeMismatch] * 3
    assert "round 0 of job 7: this worker reduces 8 int32 elements" in str(nodes[0].error)
    assert "or a server something else" in str(nodes[0].error)
    fall_silent(network)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38])
def test_a_result_that_is_not_finite_is_named_and_the_next_round_works(value):
    tensors = tensors_of(8, 3, [20, 20], "float32")
    for mine in tensors:
        mine[0][13] = value
    network, nodes, _ = star([mine[:1] for mine in tensors])
    network.run()
    for node, mine in zip(nodes, tensors, strict=True):
        with pytest.raises(NotFinite, match=r"index 13 of job 7 is (-?inf|nan)"):
            node.endpoint.finish()
        node.tensors.append(mine[1])
        node.deadline_ns = network.now_ns
    network.run()
    for node in nodes:
        node.endpoint.finish()
        assert node.results[1].tobytes() == expected([mine[1] for mine in tensors]).tobytes()


def frozen(endpoint):
    """All that a datagram could change, but counters."""
    state, held = endpoint.state, [endpoint.outbox.frames.tobytes()]
    fields = [*state._fields_, *state.common._fields_]
    names = [name for name, _ in fields if name not in (*SERVER_COUNTERS, "common", "endpoint")]
    of_head = ("queued", "done", "error", "chunks_done")
    values = [getattr(state, name) for name in (*names, *of_head)]
    if isinstance(endpoint, PsServer):
        arrays = (endpoint._slots, endpoint._present, endpoint._asked)
    else:
        arrays = (endpoint._pushes, endpoint._out)
        values += [bytes(recovery) for recovery in endpoint.recoveries]
    return values + held + [array.tobytes() for array in arrays]


FORGERIES = ("version", "kind", "job", "session", "round", "zero", "length", "chunk", "chunks")


def forged(chance, payload):
    """What nobody can have sent, made of what somebody has."""
    data = bytearray(payload)
    kind = chance.choice(FORGERIES)
    if forge_start(chance, data, kind, (wire.VERSION, *wire.Kind), more_cuts=[24]):
        pass
    elif kind == "zero":
        data[15] = chance.randrange(1, 256)
    elif kind == "chunk":
        data[16] |= chance.randrange(1, 256)
    else:
        data[20] |= chance.randrange(1, 256)
        data[18] = 255
    return bytes(data)


def in_the_middle(seed):
    tensors = tensors_of(seed, 3, [90, 90], "int32")
    network, nodes, others = star(tensors, 2, 2, 8, Faults(0.1), seed)
    for _ in range(60 + 4 * seed):
        network.step(NEVER)
    return network, nodes, others


@pytest.mark.parametrize("seed", range(30))
def test_malformed_and_forged_datagrams_change_nothing(seed):
    network, nodes, others = in_the_middle(seed)
    refuse_all(network, [*nodes, *others], forged, frozen, seed)
    network.run()
    check_results(nodes)


@pytest.mark.parametrize("seed", range(10))
def test_random_bytes_and_replays_harm_no_result(seed):
    network, nodes, others = in_the_middle(seed)
    chance = random.Random(seed)
    everybody = (*nodes, *others)
    for _ in range(300):
        network.step(NEVER)
        node = chance.choice(everybody)
        sender = chance.choice(others if node in nodes else nodes)
        fakes = [chance.randbytes(chance.randrange(60)) for _ in range(3)]
        fakes += chance.sample(sender.sent, 2)
        deliver(node.endpoint, network.now_ns, [(sender.address, fake) for fake in fakes])
        network.serve(node, [])
        if all(node.finished for node in nodes):
            break
    network.run()
    check_results(nodes)


def test_a_server_sends_each_row_once_however_often_it_is_asked_in_a_batch():
    """Also one that has been told to send a result when the worker's next values come."""
    network, (node,), (server,) = star(tensors_of(1, 1, [40], "int32"), 1, 2, 1)
    network.run()
    pushes = list(node.sent)
    fresh = PsServer(server.endpoint.job)
    assert deliver(fresh, 0, [(node.address, push) for push in pushes]) == 20
    rows = fresh.poll(0).tolist()
    assert len(rows) == 1
    assert fresh.outbox.datagram(rows[0])[16:20] == (19).to_bytes(4, "big")
    assert deliver(fresh, 0, [(node.address, pushes[-1])] * 5) == 0
    assert fresh.poll(0).tolist() == rows and fresh.poll(0).tolist() == []
    assert (fresh.counters["duplicates"], fresh.counters["answered_again"]) == (5, 1)
    assert fresh.counters["sent"] == 2


def test_values_of_a_chunk_that_cannot_follow_are_malformed_and_of_one_before_late():
    network, nodes, (server,) = star(tensors_of(1, 2, [40], "int32"), 1, 2, 4)
    network.run()
    pushes = list(nodes[0].sent)
    fresh = PsServer(server.endpoint.job)
    source = nodes[0].address
    assert deliver(fresh, 0, [(source, pushes[4])]) == 0
    assert fresh.counters["malformed"] == 1
    assert deliver(fresh, 0, [(source, pushes[0])]) == 1
    assert deliver(fresh, 0, [(source, pushes[0]), (source, pushes[4])]) == 0
    assert (fresh.counters["duplicates"], fresh.counters["malformed"]) == (1, 2)
    assert fresh.poll(0).tolist() == [] and fresh.waiting(9) == [[0, 1]]


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        (WorkerJob, {"job": -1}, "job is -1; it must be 0 to 65535"),
        (WorkerJob, {"rank": 2}, "rank is 2; it must be 0 to 1"),
        (ServerJob, {"rank": 3}, "rank is 3; it must be 0 to 2"),
        (WorkerJob, {"workers": 0}, "workers is 0; it must be 1 to 65535"),
        (WorkerJob, {"servers": 0}, "servers is 0; it must be 1 to 65535"),
        (WorkerJob, {"lanes": 16371}, "lanes is 16371; it must be 1 to 16370"),
        (ServerJob, {"window": 0}, "window is 0; it must be 1 to 65535"),
        (ServerJob, {"session": 2**32}, "session is 4294967296; it must be 0 to 4294967295"),
        (WorkerJob, {"peers": [("a", 1)]}, "peers has 1 addresses; it must have 3"),
        (ServerJob, {"peers": [("a", 1), ("a", 1)]}, "peers has an address twice"),
    ],
)
def test_impossible_numbers_are_refused(kind, change, message):
    peers = [("a", 1), ("b", 1), ("c", 1)] if kind is WorkerJob else [("a", 1), ("b", 1)]
    usual = {"job": 1, "rank": 0, "workers": 2, "servers": 3, "lanes": 4, "window": 8}
    with pytest.raises(ValueError, match=message):
        kind(**(usual | {"session": 0, "peers": peers} | change))


def test_a_server_begins_no_round_and_is_always_done():
    _, _, (server,) = star(tensors_of(1, 2, [4], "int32"))
    with pytest.raises(TypeError, match="a server begins no round"):
        server.endpoint.begin(0, np.zeros(1), np.zeros(1))
    assert server.endpoint.done and server.endpoint.listens
    assert server.endpoint.deadline_ns == NEVER


def test_the_header_has_at_most_24_bytes_and_counters_are_explained():
    assert wire.HEADER_BYTES == 24 and wire.frame_bytes(4) == HEADERS_BYTES + 24 + 16
    _, nodes, others = star(tensors_of(1, 2, [4], "int32"))
    assert list(nodes[0].endpoint.counters) == list(COUNTERS)
    assert list(others[0].endpoint.counters) == list(SERVER_COUNTERS)
    assert all(meaning for _, meaning in SERVER_COUNTERS.values())


def rounds_of_pushes(rounds):
    """Two workers' pushes, 20 a round, in order, and a server that has heard none of them."""
    tensors = [[np.arange(40, dtype=np.int32)] * rounds for _ in range(2)]
    network, nodes, (server,) = star(tensors, 1, 2, 4)
    network.run()
    fresh = PsServer(server.endpoint.job)
    return fresh, [[(node.address, payload) for payload in node.sent] for node in nodes]


def test_a_result_is_not_sent_to_who_has_gone_on_since_in_the_same_batch():
    server, (first, second) = rounds_of_pushes(1)
    assert deliver(server, 0, [first[0], second[0], first[4]]) == 3
    rows = server.poll(0).tolist()
    assert [server.outbox.peer(row) for row in rows] == [1]
    assert server.waiting(9) == [[4, 1]]


def test_a_result_that_is_sent_again_names_the_attempt_that_it_answers():
    server, (first, second) = rounds_of_pushes(1)
    deliver(server, 0, [first[0], second[0]])
    server.poll(0)
    address, push = second[0]
    for attempt in (3, 1):
        header = np.frombuffer(push, wire.HEADER, 1).copy()
        header["attempt"] = attempt
        deliver(server, 0, [(address, header.tobytes() + push[wire.HEADER_BYTES :])])
        (row,) = server.poll(0).tolist()
        assert np.frombuffer(server.outbox.datagram(row), wire.HEADER, 1)["attempt"] == attempt


def test_no_round_begins_before_the_one_before_is_complete():
    server, (first, second) = rounds_of_pushes(2)
    for index in range(20):
        assert server.counters["malformed"] == max(0, index - 1)
        if index:
            assert deliver(server, 0, [first[20]]) == 0
        assert deliver(server, 0, [first[index], second[index]]) == 2
        server.poll(0)
    assert deliver(server, 0, [first[20]]) == 1


def test_a_result_of_another_server_than_the_chunks_is_malformed():
    network, nodes, (_, other) = star(tensors_of(1, 2, [40], "int32"), 2, 2, 4)
    while not any(payload[1] == wire.Kind.RESULT for payload in other.sent):
        network.step(NEVER)
    result = other.sent[0]
    worker = nodes[0].endpoint
    before = frozen(worker)
    assert deliver(worker, network.now_ns, [(worker.peers[0], result)]) == 0
    assert frozen(worker) == before and worker.counters["malformed"] == 1
    assert deliver(worker, network.now_ns, [(worker.peers[1], result)]) == 1
