"""Workers that do not reduce alike: every one of them gets an error that names both shapes, none a
sum, whatever the network does."""

import numpy as np
import pytest
from simulation import MS, TIMING
from switch_model import Faults, JobEntry, Network, SwitchModel

from agglab.hosts.agreement import OPERATIONS, PLAIN, Agreement
from agglab.hosts.errors import ShapeMismatch
from agglab.hosts.wire import Batch
from agglab.systems.switchml.worker import Job, Worker

FIRST_TAGS = (0, 1, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1)
LIMIT_NS = 10_000 * MS
ALIKE = {"elements": 24, "dtype": "float32", "lanes": 5, "window": 3, "workers": 3, "round": 2}
OTHER = [
    ({"elements": 20}, "24 float32 elements, another 20 float32 elements"),
    ({"elements": 0}, "24 float32 elements, another 0 float32 elements"),
    ({"elements": 25}, "24 float32 elements, another 25 float32 elements"),
    ({"dtype": "int32"}, "24 float32 elements, another 24 int32 elements"),
    ({"lanes": 4}, "24 float32 elements with lanes 5, another 24 float32 elements with lanes 4"),
    ({"window": 2}, "24 float32 elements with window 3, another 24 float32 elements with window 2"),
    ({"workers": 4}, "with workers 3, another 24 float32 elements with workers 4"),
    (
        {"round": 3},
        "elements with round (modulo 256) 2, another 24 float32 elements with round (modulo 256) 3",
    ),
    (
        {"agreement": Agreement(OPERATIONS.index("AVG"))},
        "24 float32 elements with operation SUM, another 24 float32 elements with operation AVG",
    ),
    (
        {"agreement": Agreement(tensors=2**16 - 1)},
        "24 float32 elements with tensors of digest 0, another 24 float32 elements with tensors of "
        "digest 65535",
    ),
    (
        {"elements": 7, "dtype": "int32", "lanes": 6, "window": 1},
        "24 float32 elements with lanes 5, window 3, another 7 int32 elements with lanes 6, "
        "window 1",
    ),
]


class Participant:
    """A worker in a round of some shape."""

    def __init__(self, shape, first_tag):
        job = Job(4, shape["workers"], shape["lanes"], 8, shape["window"], first_tag)
        self.worker = Worker(job, TIMING)
        self.worker.rounds.begun = shape["round"]
        self.worker.agreement = shape.get("agreement", PLAIN)
        self.values = np.full(shape["elements"], 3, shape["dtype"])
        self.out = np.full(shape["elements"], 7, shape["dtype"])
        self.error = None

    @property
    def ended(self):
        return self.error is not None or self.worker.done

    def poll(self, now_ns):
        if self.ended:
            return []
        try:
            return [self.worker.datagram(slot) for slot in self.worker.poll(now_ns)]
        except ShapeMismatch as error:
            self.error = error
            return []

    @property
    def deadline_ns(self):
        return 2**63 - 1 if self.ended else self.worker.deadline_ns


def run(participants, network):
    """Until every round has ended. Fails the test where the time is not enough."""
    for participant in participants:
        participant.worker.begin(network.now_ns, participant.values, participant.out)
    while not all(p.ended for p in participants):
        for rank, participant in enumerate(participants):
            for datagram in participant.poll(network.now_ns):
                network.send(True, rank, datagram)
        due_ns = min(p.deadline_ns for p in participants)
        next_ns = min(due_ns, network.next_ns())
        assert next_ns < LIMIT_NS or all(p.ended for p in participants), "a round does not end"
        arrived = {}
        if network.next_ns() <= due_ns:
            arrived = network.step()
        else:
            network.now_ns = due_ns
        for rank, datagrams in arrived.items():
            worker = participants[rank].worker
            if not participants[rank].error:
                worker.on_datagrams(network.now_ns, Batch.of(datagrams, worker.job.lanes))


def faults_of(seed):
    return Faults(0.05 * (seed % 4), 0.1 * (seed % 3), 0.25 * (seed % 2), MS, MS, 60 * MS)


def network_of(seed, lanes=5):
    return Network(SwitchModel(lanes, {4: JobEntry(3, 8)}), faults_of(seed), seed)


@pytest.mark.parametrize(("change", "words"), OTHER, ids=lambda value: str(value)[:40])
def test_every_worker_raises_and_names_both_shapes(change, words):
    own = "round 2 of job 4: this worker reduces 24 float32 elements"
    end = "; all workers of a job have to reduce alike"
    for seed in range(60):
        shapes = [ALIKE, ALIKE, ALIKE]
        shapes[seed % 3] = ALIKE | change
        participants = [Participant(shape, FIRST_TAGS[seed % 6]) for shape in shapes]
        run(participants, network_of(seed))
        for rank, participant in enumerate(participants):
            message = str(participant.error)
            assert isinstance(participant.error, ShapeMismatch), (seed, rank)
            assert message.endswith(end)
            if rank != seed % 3:
                assert message.startswith(own) and f"{words};" in message
            else:
                first, _, second = words.partition(", another ")
                assert f", another {second};" not in message, "it is its own"
                assert first.removeprefix("24 float32 elements") in message
            assert not participant.worker.done


def test_three_shapes_are_all_named_by_the_one_in_between():
    participants = [Participant(ALIKE | {"elements": n}, 1) for n in (30, 24, 20)]
    run(participants, network_of(0))
    assert str(participants[1].error) == (
        "round 2 of job 4: this worker reduces 24 float32 elements, another 20 float32 elements "
        "and another 30 float32 elements; all workers of a job have to reduce alike"
    )


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("first_tag", FIRST_TAGS)
def test_workers_that_agree_get_sums_from_any_first_tag(first_tag, dtype):
    for seed in range(30):
        alike = ALIKE | {"dtype": dtype, "elements": seed, "round": 250 + seed % 10}
        participants = [Participant(alike, first_tag) for _ in range(3)]
        network = network_of(seed)
        for size in (seed, 17):
            for participant in participants:
                participant.values = participant.out = np.full(size, 3, dtype)
            run(participants, network)
            for participant in participants:
                assert participant.error is None
                assert participant.out.tolist() == [9] * size


def test_nothing_begins_after_a_disagreement():
    participants = [Participant(ALIKE | {"elements": n}, 1) for n in (3, 3, 4)]
    run(participants, network_of(0))
    for participant in participants:
        with pytest.raises(ShapeMismatch):
            participant.worker.poll(0)
        with pytest.raises(AssertionError, match="a round is under way"):
            participant.worker.begin(0, participant.values, participant.out)
