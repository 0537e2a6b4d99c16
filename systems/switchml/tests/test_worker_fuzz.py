"""Results that no switch sent, at a worker and its model; once more under the sanitizers.

Each is one that the worker could have had, changed: other tags, slots, kinds, exponents, lengths,
many of one slot in a batch, the same again, in any order, also after `restore`.
"""

import random

import numpy as np
import pytest
from simulation import MS, TIMING
from switch_model import HEADER, OPENING

from agglab.hosts.errors import ShapeMismatch
from agglab.hosts.wire import Batch
from agglab.systems.switchml.verification.nodes import WorkerPair
from agglab.systems.switchml.verification.packets import AGGREGATOR
from agglab.systems.switchml.worker import Job, Worker

TAG_STEPS = (0, 0, 0, 0, 1, 2, -1, -2, 7, 2**31, 2**31 - 1)
INPUTS = (0.0, 1.5, -3e38, 1e-45, 3.4e38, -2.5e-7, 1e10)
NOT_FINITE = (float("inf"), float("nan"))


def result_of(chance, worker, last):
    """What answers a slot's packet, or what differs from it in one or more ways."""
    if last and chance.random() < 0.2:
        return chance.choice(last)
    index = chance.randrange(len(worker.slots))
    slot = worker.slots[index]
    payload = chance.randbytes(4 * worker.job.lanes)
    if slot["kind"] == OPENING:
        own = worker.datagram(index)[HEADER.size :]
        payload = own if chance.random() < 0.99 else own[:-1] + chance.randbytes(1)
    kind, tag = int(slot["kind"]) | 0x80, int(slot["tag"])
    version, job, exponent, attempt = 1, worker.job.job, chance.choice((0, 1, 9, 127, 254, 255)), 0
    if chance.random() < 0.4:
        tag = (tag + chance.choice(TAG_STEPS)) % 2**32
    if chance.random() < 0.1:
        kind, attempt = chance.choice((0, 1, 0x80, 0x81, 0x82, 0x83, 0xFF)), chance.randrange(256)
    if chance.random() < 0.05:
        version, job = chance.choice(((0, job), (2, job), (1, job ^ 0x100)))
    if chance.random() < 0.05:
        index = chance.choice((len(worker.slots), 0x7FFF, 0xFFFF))
    datagram = HEADER.pack(version, kind, job, index, exponent, attempt, tag) + payload
    if chance.random() < 0.05:
        datagram = datagram[: chance.randrange(len(datagram))]
    return datagram


def tensor(chance, more=()):
    size = chance.randrange(1, 60)
    if chance.random() < 0.5:
        return np.array([chance.randrange(-(2**31), 2**31) for _ in range(size)], np.int32)
    return np.array([chance.choice(INPUTS + more) for _ in range(size)], np.float32)


def forged_round(chance, pair, now_ns):
    """A round to its end, or to the disagreement about its shape (None)."""
    pair.begin(now_ns, tensor(chance), in_place=False)
    last = []
    while not pair.over:
        batch = [result_of(chance, pair.real, last) for _ in range(chance.randrange(1, 40))]
        last = [*last, *batch][-20:]
        now_ns += chance.choice((0, 1, MS, 30 * MS))
        sent = pair.take(now_ns, batch)
        pair.check_counters()
        if sent is None:
            assert pair.model.disagreed
            return None
    return now_ns


@pytest.mark.parametrize("seed", range(60))
def test_forged_results_do_to_a_worker_what_they_do_to_its_model(seed):
    chance = random.Random(seed)
    window = chance.choice((1, 2, 5, 20))
    first_tag = chance.choice((1, 0, 2**32 - 2))
    job = Job(chance.randrange(4), 1 + seed % 3, 1 + seed % 4, 20, window, first_tag)
    pair = WorkerPair("worker", AGGREGATOR, job, TIMING)
    now_ns = 0
    for _ in range(2):
        now_ns = forged_round(chance, pair, now_ns)
        if now_ns is None:
            break


def test_results_of_packets_that_were_not_sent_yet_are_not_taken():
    """All of a round in one batch, as only somebody who guesses the tags can send it."""
    worker = Worker(Job(3, 2, 1, 2, 2), TIMING)
    out = np.zeros(100, np.int32)
    worker.begin(0, np.arange(100, dtype=np.int32), out)
    worker.poll(0)
    ahead = [HEADER.pack(1, 0x80, 3, 1, 0, 0, tag) + bytes([9] * 4) for tag in range(1, 51)]
    assert worker.on_datagrams(MS, Batch.of(ahead, 1)) == 1
    assert worker.counters["malformed"] == 49
    assert worker.chunks_done == 1 and worker.poll(MS).tolist() == [1]


@pytest.mark.parametrize("seed", range(10))
def test_a_thawed_worker_takes_forged_results_as_the_first_time(seed):
    chance = random.Random(f"restore {seed}")
    worker = Worker(Job(1, 2, 2, 8, 8), TIMING)
    values = tensor(chance, NOT_FINITE)
    worker.begin(0, values, np.empty_like(values))
    worker.poll(0)
    frozen = worker.snapshot()
    batches = []
    for _ in range(4):
        batches.append([result_of(chance, worker, []) for _ in range(30)])
    ends = []
    for _ in range(2):
        worker.restore(frozen)
        for batch in batches:
            if not worker.done:
                worker.on_datagrams(MS, Batch.of(batch, 2))
                try:
                    worker.poll(MS)
                except ShapeMismatch:
                    break
        ends.append(worker.snapshot())
    assert ends[0] == ends[1]
