"""The worker against the switch model: exact sums whatever the network does, and its errors."""

import random
from collections import Counter

import numpy as np
import pytest
import quantise_model
from simulation import MS, TIMING, Simulation, int_tensors, make_network, wrapped_sum
from switch_model import Faults

from agglab.hosts.errors import NotFinite, RoundTimeout
from agglab.hosts.wire import Batch, Chunk, Kind, Shape
from agglab.systems.switchml.worker import Job, Timing, Worker

SEEDS = 3000
FIRST_TAGS = (1, 0, 2**31 - 2, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 3, 2**32 - 1)
PARTS = 6


def faults_of(seed):
    """Something different for every seed, from no faults to awful ones."""
    return Faults(
        loss=(0, 0.01, 0.05, 0.2)[seed % 4],
        duplicate=(0, 0.05, 0.3)[seed % 3],
        reorder=(0, 0.1, 0.5)[seed // 3 % 3],
        delay_ns=(50_000, MS, 30 * MS)[seed // 5 % 3],
        jitter_ns=(0, MS)[seed // 7 % 2],
        extra_ns=(5 * MS, 300 * MS)[seed // 11 % 2],
    )


def job_of(seed):
    workers, lanes, window = 1 + seed % 4, 1 + seed % 5, 1 + seed // 2 % 9
    first_tag = FIRST_TAGS[seed // 13 % len(FIRST_TAGS)]
    return Job(seed % 65536, workers, lanes, window + seed % 3, window, first_tag)


def run_seed(seed, tensors, job=None, faults=None):
    job = job or job_of(seed)
    network = make_network(job, faults or faults_of(seed), seed)
    simulation = Simulation(job, tensors, network, skew_ns=seed % 5 * 10 * MS)
    simulation.run(limit_ns=60_000 * MS, gather_ns=seed % 2 * MS // 2)
    return simulation


def float_tensors(seed, workers, sizes):
    """Random magnitudes over the whole of float32's range, denormals and zeros included."""
    chance = random.Random(seed)

    def value():
        magnitude = 2.0 ** chance.choice((chance.randrange(-149, 122), -20, 3, 121))
        return np.float32(chance.choice((0, 1, 1, 1)) * chance.uniform(-1, 1) * magnitude)

    def tensor(size):
        return np.array([value() for _ in range(size)], np.float32)

    return [[tensor(size) for size in sizes] for _ in range(workers)]


def expected_sums(arrays, lanes, workers):
    """Integer sums and float results, chunk by chunk, from the fractions model."""
    sums, results = [], []
    for start in range(0, arrays[0].size, lanes):
        chunks = [array[start : start + lanes].tolist() for array in arrays]
        exponent = max(map(quantise_model.chunk_exponent, chunks))
        for column in zip(*chunks, strict=True):
            total = sum(quantise_model.quantise(x, exponent, workers) for x in column)
            sums.append(total)
            results.append(quantise_model.dequantise(total, exponent, workers))
    return np.array(sums, np.int32), np.array(results, np.float32)


@pytest.mark.long(but=["0"])
@pytest.mark.parametrize("part", range(PARTS))
def test_every_integer_sum_is_exact_under_loss_duplication_reordering_and_delay(part):
    happened = Counter()
    for seed in range(part, SEEDS, PARTS):
        job = job_of(seed)
        sizes = [seed * 7 % 61, 1 + seed * 5 % 23]
        tensors = int_tensors(seed, job.workers, sizes)
        simulation = run_seed(seed, tensors)
        happened += simulation.network.switch.counters
        for round in range(len(sizes)):
            expected = wrapped_sum([mine[round] for mine in tensors])
            for participant in simulation.participants:
                np.testing.assert_array_equal(participant.results[round], expected, str(seed))
                happened.update(participant.worker.counters)
    names = "stale duplicate complete retransmitted timeouts duplicates late"
    assert all(happened[name] for name in names.split()), happened
    assert happened["refused"] == happened["malformed"] == 0


@pytest.mark.long(but=["0", "5", "4"])
@pytest.mark.parametrize("part", range(PARTS))
def test_every_float_sum_is_that_of_the_fractions_model(part):
    for seed in range(part, SEEDS // 10, PARTS):
        job = job_of(seed)
        sizes = [1 + seed * 7 % 41, seed * 5 % 23]
        tensors = float_tensors(seed, job.workers, sizes)
        simulation = run_seed(seed, tensors)
        for round in range(len(sizes)):
            arrays = [mine[round] for mine in tensors]
            sums, results = expected_sums(arrays, job.lanes, job.workers)
            for participant in simulation.participants:
                np.testing.assert_array_equal(participant.sums[round], sums, str(seed))
                np.testing.assert_array_equal(participant.results[round], results, str(seed))


def test_rounds_of_different_dtypes_and_sizes_follow_on_the_same_slots():
    for seed in range(40):
        job = Job(3, 3, 4, 6, 5)
        integers = int_tensors(seed, 3, [21, 4, 37])
        floats = float_tensors(seed, 3, [50, 1])
        tensors = [[i[0], f[0], i[1], f[1], i[2]] for i, f in zip(integers, floats, strict=True)]
        simulation = run_seed(seed, tensors, job, Faults(0.05, 0.1, 0.2, MS, MS, 80 * MS))
        for round in (0, 2, 4):
            expected = wrapped_sum([mine[round] for mine in tensors])
            for participant in simulation.participants:
                np.testing.assert_array_equal(participant.results[round], expected)
        for round in (1, 3):
            expected, _ = expected_sums([mine[round] for mine in tensors], 4, 3)
            for participant in simulation.participants:
                np.testing.assert_array_equal(participant.sums[round], expected)


def test_in_place_gives_the_same_sums():
    tensors = float_tensors(1, 2, [50])
    _, results = expected_sums([mine[0] for mine in tensors], 4, 2)
    job = Job(0, 2, 4, 3, 3)
    workers = [Worker(job, TIMING) for _ in range(2)]
    for worker, (tensor,) in zip(workers, tensors, strict=True):
        worker.begin(0, tensor, tensor)
    exchange(workers, make_network(job, Faults(), 0))
    for tensor in tensors:
        np.testing.assert_array_equal(tensor[0], results)


def exchange(workers, network):
    """Lossless rounds, begun by the caller."""
    for rank, worker in enumerate(workers):
        send(worker, rank, network)
    while not all(worker.done for worker in workers):
        for rank, datagrams in network.step().items():
            worker = workers[rank]
            worker.on_datagrams(network.now_ns, Batch.of(datagrams, worker.job.lanes))
            send(worker, rank, network)


def send(worker, rank, network):
    for slot in worker.poll(network.now_ns):
        network.send(True, rank, worker.datagram(slot))


def lonely(values, give_up_s=10, **job):
    """A worker of a two-worker job whose round has begun at time 0."""
    arguments = {"job": 0, "workers": 2, "lanes": 2, "slots": 11, "window": 11, **job}
    worker = Worker(Job(**arguments), Timing(give_up_ns=round(give_up_s * 1e9)))
    worker.begin(0, values, np.empty_like(values))
    return worker


def result_of(worker, index, **changes):
    """The result that slot `index` waits for, all lanes zero, unless changed."""
    sent = Chunk.parse(worker.datagram(index), worker.job.lanes)
    fields = {"kind": sent.kind, "job": sent.job, "slot": sent.slot, "tag": sent.tag}
    fields |= {"values": (0,) * len(sent.values), "shapes": sent.shapes, "result": True}
    return Chunk(**(fields | changes)).emit()


def give(worker, *datagrams, now_ns=0):
    return worker.on_datagrams(now_ns, Batch.of(datagrams, worker.job.lanes))


def test_giving_up_names_the_missing_chunks_and_slots_as_ranges():
    worker = lonely(np.zeros(2 * 2562, np.int32), window=128, slots=128)
    worker.poll(0)
    give(worker, result_of(worker, 0))
    worker.poll(0)
    for _ in range(10):
        give(worker, *(result_of(worker, slot) for slot in range(128)))
        worker.poll(0)
    give(worker, *(result_of(worker, slot) for slot in (0, *range(11, 128))))
    worker.poll(0)
    for slot in (0, *range(11, 128)):
        while worker.slots["waiting"][slot]:
            give(worker, result_of(worker, slot), now_ns=5)
            worker.poll(5)
    with pytest.raises(RoundTimeout) as error:
        worker.poll(10_000_000_005)
    assert str(error.value) == "no result for chunks 1281-1290 (slots 1-10) of job 0 after 10 s"
    assert error.value.missing == [(1281, 1290)]


def test_giving_up_names_single_chunks_and_cuts_long_lists():
    worker = lonely(np.zeros(2 * 40, np.int32), give_up_s=2.5, window=40, slots=40, job=7)
    worker.poll(0)
    give(worker, result_of(worker, 0))
    worker.poll(0)
    give(worker, *(result_of(worker, slot) for slot in range(0, 40, 2)))
    with pytest.raises(RoundTimeout) as error:
        worker.poll(2_500_000_000)
    assert str(error.value) == (
        "no result for chunk 1 (slot 1), chunk 3 (slot 3), chunk 5 (slot 5), chunk 7 (slot 7), "
        "chunk 9 (slot 9), chunk 11 (slot 11), chunk 13 (slot 13), chunk 15 (slot 15) "
        "and 12 more ranges of job 7 after 2.5 s"
    )
    assert error.value.missing == [(chunk, chunk) for chunk in range(1, 40, 2)]


def test_any_awaited_result_puts_off_giving_up():
    worker = lonely(np.zeros(4, np.int32), give_up_s=1)
    worker.poll(0)
    worker.poll(999_999_999)
    give(worker, result_of(worker, 0), now_ns=999_999_999)
    worker.poll(1_999_999_998)
    with pytest.raises(RoundTimeout):
        worker.poll(1_999_999_999)


def test_foreign_and_malformed_results_are_counted_and_change_nothing():
    worker = lonely(np.arange(44, dtype=np.int32), job=5)
    worker.poll(0)
    good = result_of(worker, 3)
    wrong = [
        b"",
        good[:11],
        good[:-1],
        good + b"\0",
        good * 20,
        bytes([2]) + good[1:],
        worker.datagram(3),
        result_of(worker, 3, job=6),
        result_of(worker, 3, slot=11),
        result_of(worker, 3, slot=65535),
        result_of(worker, 3, kind=Kind.SCALED),
        result_of(worker, 3, kind=Kind.OPENING, values=(), shapes=2 * (Shape(44, 2, 2, 11, 0, 0),)),
        result_of(worker, 3, tag=2),
        result_of(worker, 3, tag=2**31),
        good[:1] + b"\x83" + good[2:],
    ]
    before = worker.slots.copy()
    for datagram in wrong:
        assert give(worker, datagram) == 0
    np.testing.assert_array_equal(worker.slots, before)
    assert worker.counters["malformed"] == len(wrong)
    assert give(worker, good) == 1


def test_noise_never_changes_a_sum():
    chance = random.Random(5)
    tensors = int_tensors(9, 2, [300])
    expected = wrapped_sum([mine[0] for mine in tensors])
    job = Job(1, 2, 3, 8, 8)
    network = make_network(job, Faults(), 0)
    workers = [Worker(job, TIMING) for _ in tensors]
    outs = [np.empty_like(mine[0]) for mine in tensors]
    for worker, mine, out in zip(workers, tensors, outs, strict=True):
        worker.begin(0, mine[0], out)
        send(worker, workers.index(worker), network)
    while not all(worker.done for worker in workers):
        for rank, datagrams in network.step().items():
            noise = [chance.randbytes(chance.randrange(40)) for _ in range(3)]
            noise += [b"\1\x80\0\1" + chance.randbytes(20) for _ in range(3)]
            give(workers[rank], *noise, *datagrams, now_ns=network.now_ns)
            send(workers[rank], rank, network)
    for out in outs:
        np.testing.assert_array_equal(out, expected)


def test_duplicate_and_late_results_are_counted_and_ignored():
    worker = lonely(np.arange(10, dtype=np.int32), window=2, slots=2)
    worker.poll(0)
    first = result_of(worker, 1, values=(1, 1))
    assert give(worker, first, first) == 1
    assert worker.counters["duplicates"] == 1
    worker.poll(0)
    second = result_of(worker, 1, values=(2, 2))
    assert give(worker, first, second, first) == 1
    assert (worker.counters["duplicates"], worker.counters["late"]) == (2, 1)


def test_an_idle_slot_still_tells_duplicates_from_late_results():
    worker = lonely(np.arange(2, dtype=np.int32), first_tag=9)
    worker.poll(0)
    give(worker, result_of(worker, 0))
    worker.poll(0)
    result = result_of(worker, 0)
    assert give(worker, result, result, result_of(worker, 0, tag=9)) == 1
    assert (worker.counters["duplicates"], worker.counters["late"]) == (1, 1)
    assert worker.done


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_no_elements_are_an_opening_and_no_more(dtype):
    worker = lonely(np.empty(0, dtype))
    assert not worker.done and worker.poll(0).tolist() == [0]
    give(worker, result_of(worker, 0))
    assert worker.done and worker.poll(0).size == 0 and worker.deadline_ns == 2**63 - 1


def test_a_float_round_sends_one_opening_for_each_slot_in_use_and_no_more():
    worker = lonely(np.ones(6, np.float32))
    assert worker.poll(0).tolist() == [0, 1, 2]
    sent = [Chunk.parse(worker.datagram(slot), 2) for slot in range(3)]
    assert {(chunk.kind, chunk.exponent) for chunk in sent} == {(Kind.OPENING, 127)}
    assert {chunk.shapes for chunk in sent} == {2 * (Shape(6, 2, 2, 11, Kind.SCALED, 0),)}


def test_an_int_round_opens_slot_0_alone():
    worker = lonely(np.ones(6, np.int32))
    assert worker.poll(0).tolist() == [0, 1, 2]
    sent = [Chunk.parse(worker.datagram(slot), 2) for slot in range(3)]
    assert [chunk.kind for chunk in sent] == [Kind.OPENING, Kind.INT32, Kind.INT32]
    assert sent[0].shapes == 2 * (Shape(6, 2, 2, 11, Kind.INT32, 0),)


def test_exponents_travel_one_window_ahead_and_the_last_window_announces_none():
    values = np.array([1, 1, 2, 2, 4, 4, 8], np.float32)
    worker = lonely(values, window=2, slots=2)
    worker.poll(0)
    give(worker, *(result_of(worker, slot, exponent=140) for slot in range(2)))
    worker.poll(0)
    sent = [Chunk.parse(worker.datagram(slot), 2) for slot in range(2)]
    assert [(chunk.kind, chunk.exponent) for chunk in sent] == [
        (Kind.SCALED, 129),
        (Kind.SCALED, 130),
    ]
    give(worker, *(result_of(worker, slot, exponent=140) for slot in range(2)))
    worker.poll(0)
    assert [Chunk.parse(worker.datagram(slot), 2).exponent for slot in range(2)] == [0, 0]
    assert worker.rounds.exponents.tolist() == [140] * 4


def float_round(first, second, lanes=4):
    """One float round of two workers; gives the workers."""
    job = Job(3, 2, lanes, 4, 2)
    workers = [Worker(job, TIMING) for _ in range(2)]
    for worker, values in zip(workers, (first, second), strict=True):
        worker.begin(0, np.array(values, "f4"), np.empty(len(values), np.float32))
    network = make_network(job, Faults(), 0)
    exchange(workers, network)
    return workers, network


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_not_finite_input_ends_the_round_with_an_error_everywhere_and_the_next_round_works(bad):
    values = np.ones(30, np.float32)
    values[22] = bad
    workers, network = float_round(values, np.ones(30))
    own = r"^Inf or NaN in chunk 5 of job 3: this worker's index 22$"
    with pytest.raises(NotFinite, match=own):
        workers[0].finish()
    with pytest.raises(NotFinite, match=r"^Inf or NaN in chunk 5 of job 3: not at this worker"):
        workers[1].finish()
    out = np.empty(9, np.float32)
    for worker in workers:
        worker.begin(network.now_ns, np.full(9, 1.5, np.float32), out)
    exchange(workers, network)
    workers[0].finish()
    assert out.tolist() == [3.0] * 9


def test_a_sum_beyond_float32_is_an_error_naming_its_index():
    values = np.full(10, 3e38, np.float32)
    values[:9] = 1e38
    workers, _ = float_round(values, values)
    for worker in workers:
        with pytest.raises(NotFinite, match=r"the sum at index 9 \(chunk 2 of job 3\) is beyond"):
            worker.finish()


def test_the_largest_floats_add_when_the_sum_fits():
    workers, _ = float_round([3e38, -3e38], [-2e38, 3e38])
    workers[0].finish()
    np.testing.assert_allclose(workers[0].rounds.out, [1e38, 0], rtol=1e-6)


def test_a_worker_alone_in_its_job_gets_its_own_values():
    tensors = int_tensors(4, 1, [100])
    simulation = run_seed(3, tensors, Job(0, 1, 8, 4, 4))
    np.testing.assert_array_equal(simulation.participants[0].results[0], tensors[0][0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"job": 65536}, "job is 65536; it must be 0 to 65535"),
        ({"lanes": 0}, "lanes is 0"),
        ({"workers": 0}, "workers is 0"),
        ({"window": 5}, "window is 5; it must be 1 to 4"),
        ({"slots": 65537}, "slots is 65537"),
        ({"first_tag": -1}, "first_tag is -1"),
    ],
)
def test_impossible_numbers_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Job(**({"job": 1, "workers": 2, "lanes": 4, "slots": 4, "window": 4} | changes))
