"""A worker that reduces in pieces against one with whole arrays: the same packets and the same
results."""

import ctypes

import numpy as np
import pytest
from simulation import MS, TIMING, Simulation, make_network
from switch_model import Faults

from agglab.hosts.errors import NotFinite
from agglab.hosts.pieces import Pieces, Room
from agglab.hosts.tensor_parts import TensorParts
from agglab.hosts.wire import Batch, Chunk, Kind
from agglab.systems.switchml.fixed_point import FixedPoint
from agglab.systems.switchml.worker import Job, Worker

ELEMENTS = 1000
Take = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p
)


class Kept:
    """Pieces whose results and sums are put into arrays."""

    def __init__(self, inputs, elements):
        self.results = np.full(inputs.elements, 77, inputs.dtype)
        self.sums = np.full(inputs.elements, 77, np.int32)
        self.taken = []
        self.function = Take(self.take)
        address = ctypes.cast(self.function, ctypes.c_void_p).value
        self.pieces = Pieces(inputs, address, 0, Room(elements, inputs.dtype, True))

    def take(self, output, first, count, results, sums):
        self.taken.append((first, count))
        for array, address in ((self.results, results), (self.sums, sums)):
            ctypes.memmove(array.ctypes.data + first * array.itemsize, address, count * 4)


def tensors(dtype, workers):
    return [TensorParts(3, 0, rank, 0, ELEMENTS, dtype) for rank in range(workers)]


def run(job, dtype, seed, floats, in_pieces):
    """One lossy round. Returns results, sums, counters and every packet sent, for each worker."""
    faults = Faults(loss=0.05, duplicate=0.05, reorder=0.1, delay_ns=MS, extra_ns=5 * MS)
    network = make_network(job, faults, seed)
    made = tensors(dtype, job.workers)
    simulation = Simulation(
        job, [[each.part(0, ELEMENTS)] for each in made], network, floats=[floats] * job.workers
    )
    sent = []
    send = network.send
    network.send = lambda up, rank, packet: (sent.append((rank, packet)), send(up, rank, packet))
    kept = [Kept(each, job.values_per_chunk(np.dtype(dtype))) for each in made]
    if in_pieces:
        for participant, own in zip(simulation.participants, kept, strict=True):
            begin_in_pieces(participant, own)
    simulation.run(limit_ns=60_000 * MS)
    counters = [each.worker.counters for each in simulation.participants]
    if in_pieces:
        return [k.results for k in kept], [k.sums for k in kept], counters, sent, kept
    results = [each.results[0] for each in simulation.participants]
    return results, [each.sums[0] for each in simulation.participants], counters, sent, kept


def begin_in_pieces(participant, own):
    worker = participant.worker
    worker.begin = lambda now_ns, *arrays: worker.begin_in_pieces(now_ns, own.pieces)


SETTINGS = {
    "int32": ("int32", FixedPoint()),
    "float32": ("float32", FixedPoint()),
    "fixed point": ("float32", FixedPoint(scale_log2=20, noise_key=9)),
}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("seed", range(4))
def test_packets_results_and_sums_are_those_of_a_worker_with_arrays(name, seed):
    dtype, floats = SETTINGS[name]
    job = Job(5, 3, 4, 6, 6)
    *whole, _ = run(job, dtype, seed, floats, in_pieces=False)
    *pieces, kept = run(job, dtype, seed, floats, in_pieces=True)
    if dtype == "int32":
        whole[1] = pieces[1] = []  # the results are the sums
    for one, other in zip(whole[:2], pieces[:2], strict=True):
        assert [a.tobytes() for a in one] == [a.tobytes() for a in other]
    assert whole[2:] == pieces[2:]
    step = job.values_per_chunk(np.dtype(dtype))
    chunks = [(first, min(step, ELEMENTS - first)) for first in range(0, ELEMENTS, step)]
    assert [sorted(own.taken) for own in kept] == [chunks] * 3


def test_a_chunk_without_a_usable_exponent_is_not_handed_over():
    """Every exponent but that of chunk 1 is usable."""
    job = Job(0, 1, 4, 2, 1)
    worker = Worker(job, TIMING)
    inputs = TensorParts(3, 0, 0, 0, 12, "float32")
    own = Kept(inputs, 4)
    worker.begin_in_pieces(0, own.pieces)
    for exponent in (130, 255, 130, 0):
        worker.poll(0)
        sent = Chunk.parse(worker.datagram(0), 4)
        fields = {"kind": sent.kind, "job": 0, "slot": 0, "tag": sent.tag, "result": True}
        fields |= {"values": (0,) * len(sent.values), "shapes": sent.shapes}
        answer = Chunk(**fields, exponent=exponent).emit()
        worker.on_datagrams(0, Batch.of([answer], 4))
    assert worker.done and sent.kind == Kind.SCALED
    assert own.taken == [(0, 4), (8, 4)]
    with pytest.raises(NotFinite, match="Inf or NaN in chunk 1 of job 0"):
        worker.finish()


def test_whole_arrays_may_follow_pieces():
    job = Job(0, 1, 4, 2, 2)
    network = make_network(job, Faults(), 0)
    values = np.arange(30, dtype=np.int32)
    simulation = Simulation(job, [[values, values]], network)
    worker = simulation.participants[0].worker
    own = Kept(TensorParts(3, 0, 0, 0, 30, "int32"), 4)
    begin = worker.begin

    def first(now_ns, *arrays):
        worker.begin = begin
        worker.begin_in_pieces(now_ns, own.pieces)

    worker.begin = first
    simulation.run(limit_ns=1000 * MS)
    assert own.results.tolist() == TensorParts(3, 0, 0, 0, 30, "int32").part(0, 30).tolist()
    assert simulation.participants[0].results[1].tolist() == values.tolist()
