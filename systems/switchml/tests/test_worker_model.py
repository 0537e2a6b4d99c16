"""The worker in C against the one in plain Python, step by step; the reference's known faults,
planted."""

import random

import numpy as np
import pytest
from simulation import MS, TIMING, make_network
from switch_model import HEADER, INT32, OPENING, Faults

from agglab.systems.switchml.verification.nodes import WorkerPair
from agglab.systems.switchml.verification.packets import AGGREGATOR
from agglab.systems.switchml.verification.worker_model import WorkerModel
from agglab.systems.switchml.worker import Job


def tensor_of(seed, size):
    generator = np.random.default_rng(seed)
    if seed % 2:
        return generator.integers(-(2**31), 2**31, size, np.int32)
    scale = np.exp2(generator.integers(-150, 120, size).astype(np.float64))
    return (generator.standard_normal(size) * scale).astype(np.float32)


@pytest.mark.long(but=["3"])
@pytest.mark.parametrize("part", range(4))
def test_the_native_step_and_the_python_model_agree_packet_by_packet(part):
    for seed in range(part, 160, 4):
        chance = random.Random(seed)
        job = Job(2, 1 + seed % 3, 1 + seed % 4, 20, 1 + seed % 20, (1, 2**32 - 2)[seed % 5 == 0])
        faults = Faults(0.1 * (seed % 3), 0.1, 0.2, (MS, 60 * MS)[seed % 7 == 0], MS, 150 * MS)
        network = make_network(job, faults, seed)
        pairs = [WorkerPair("worker", AGGREGATOR, job, TIMING) for _ in range(job.workers)]
        for _ in range(2):
            run_round(pairs, network, chance, seed)


def run_round(pairs, network, chance, seed):
    size = chance.randrange(1, 100)
    for rank, pair in enumerate(pairs):
        values = tensor_of(seed + 2 * rank, size)
        transmit(pair.begin(network.now_ns, values, in_place=False), rank, network)
    while not all(pair.over for pair in pairs):
        due_ns = min(pair.deadline_ns for pair in pairs)
        if network.next_ns() <= due_ns:
            arrived = network.step(chance.choice((0, MS)))
        else:
            network.now_ns, arrived = due_ns, {}
        for rank, pair in enumerate(pairs):
            datagrams = [damaged(chance, data) for data in arrived.get(rank, [])]
            transmit(pair.take(network.now_ns, datagrams), rank, network)
            pair.check_counters()


def damaged(chance, datagram):
    """Now and then a byte of the header other, or the end cut off."""
    if chance.random() > 0.05:
        return datagram
    if chance.random() < 0.3:
        return datagram[: chance.randrange(len(datagram))]
    index = chance.randrange(HEADER.size)
    return datagram[:index] + chance.randbytes(1) + datagram[index + 1 :]


def transmit(datagrams, rank, network):
    for datagram in datagrams:
        network.send(True, rank, datagram)


def contribution(tag, value):
    return HEADER.pack(1, INT32, 0, 0, 0, 0, tag) + value.to_bytes(4, "big")


def sum_after_stale_packet(check_tags):
    """A's packet of tag 1 comes a second time while the chunk of tag 3 (same set) is being
    summed."""
    switch = make_network(Job(0, 2, 1, 1, 1), Faults(), 0, check_tags).switch
    for tag, values in ((1, (10, 20)), (2, (1, 2))):
        for worker, value in enumerate(values):
            switch.process(worker, contribution(tag, value))
    late = ((1, contribution(3, 60)), (0, contribution(1, 10)), (0, contribution(3, 60)))
    results = [result for packet in late for result in switch.process(*packet)]
    return int.from_bytes(results[0][1][HEADER.size :], "big"), switch.counters["stale"]


def test_a_stale_packet_does_not_turn_120_into_70():
    assert sum_after_stale_packet(check_tags=True) == (120, 1)


def test_without_the_tag_check_the_stale_packet_does_turn_120_into_70():
    assert sum_after_stale_packet(check_tags=False)[0] == 70


def lossy_first_window(wrong):
    """Three workers, 64 chunks, window 8, 1 % loss (the reference's failing case): how many of 100
    runs delivered a wrong sum."""
    failures = 0
    for seed in range(100):
        job = Job(0, 3, 1, 8, 8)
        network = make_network(job, Faults(loss=0.01), seed)
        models = [WorkerModel(0, 3, 1, 8, 1, TIMING) for _ in range(3)]
        inputs = np.arange(64, dtype=np.int32) + 1000 * np.arange(3, dtype=np.int32)[:, None]
        for rank, (model, values) in enumerate(zip(models, inputs, strict=True)):
            model.begin(0, values)
            transmit_model(model, values, rank, network, wrong)
        while not all(model.over for model in models):
            network_step(models, inputs, network, wrong)
        failures += any((model.sums != inputs.sum(0)).any() for model in models)
    return failures


def network_step(models, inputs, network, wrong):
    due_ns = min(model.deadline_ns for model in models)
    if network.next_ns() <= due_ns:
        arrived = network.step()
    else:
        network.now_ns, arrived = due_ns, {}
    for rank, model in enumerate(models):
        model.take(network.now_ns, arrived.get(rank, []))
        transmit_model(model, inputs[rank], rank, network, wrong)


def transmit_model(model, values, rank, network, wrong):
    """wrong: the known fault of the public SwitchML client: the timer of a packet of the first
    window remembers the next packet's values."""
    for number, datagram in model.poll(network.now_ns):
        slot = model.slots[number]
        if wrong and slot.attempt and slot.chunk < len(model.slots) and slot.kind != OPENING:
            datagram = datagram[: HEADER.size] + values[slot.chunk + 1].astype(">i4").tobytes()
        network.send(True, rank, datagram)


def test_a_lost_packet_of_the_first_window_is_resent_with_its_own_values():
    assert lossy_first_window(wrong=False) == 0


def test_resending_the_next_packets_values_in_the_first_window_gives_wrong_sums():
    assert lossy_first_window(wrong=True) > 10
