"""A job of `hosts.worker.Worker`s around the switch model, in virtual time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from switch_model import Faults, JobEntry, Network, SwitchModel

from agglab.hosts.wire import Batch
from agglab.systems.switchml.fixed_point import BY_CHUNK, FixedPoint
from agglab.systems.switchml.worker import Job, Timing, Worker

MS = 1_000_000
NEVER = 2**63 - 1
TIMING = Timing(initial_rto_ns=20 * MS, min_rto_ns=5 * MS, max_rto_ns=200 * MS, slack_ns=2 * MS)


@dataclass
class Participant:
    """A worker with the tensors it reduces, one after the other."""

    worker: Worker
    tensors: list[NDArray]
    starts_ns: int

    def __post_init__(self) -> None:
        self.results: list[NDArray] = []
        self.sums: list[NDArray[np.int32]] = []
        self.deadline_ns = self.starts_ns

    @property
    def finished(self) -> bool:
        return len(self.results) == len(self.tensors) and self.worker.done

    def poll(self, now_ns: int) -> list[bytes]:
        """What to send now; begins the next round once the one before is done."""
        while self.worker.done and not self.finished:
            tensor = self.tensors[len(self.results)]
            self.results.append(np.empty_like(tensor))
            self.sums.append(np.empty(tensor.size, np.int32))
            self.worker.begin(now_ns, tensor, self.results[-1], self.sums[-1])
        datagrams = [self.worker.datagram(slot) for slot in self.worker.poll(now_ns)]
        self.deadline_ns = self.worker.deadline_ns
        return datagrams


class Simulation:
    """Runs the participants' rounds to the end."""

    def __init__(
        self,
        job: Job,
        tensors: list[list[NDArray]],
        network: Network,
        skew_ns: int = 0,
        floats: Sequence[FixedPoint] = (),
    ) -> None:
        self.job, self.network = job, network
        of_each = floats or [BY_CHUNK] * len(tensors)
        self.participants = [
            Participant(Worker(job, TIMING, floats=own), mine, rank * skew_ns)
            for rank, (mine, own) in enumerate(zip(tensors, of_each, strict=True))
        ]

    def run(self, limit_ns: int, gather_ns: int = 0) -> None:
        """Until every worker has every result. Fails the test when the time is not enough."""
        while not all(participant.finished for participant in self.participants):
            due_ns = min(participant.deadline_ns for participant in self.participants)
            now_ns = min(due_ns, self.network.next_ns())
            assert now_ns <= limit_ns, "not finished in time"
            if self.network.next_ns() <= due_ns:
                arrived = self.network.step(gather_ns)
            else:
                self.network.now_ns, arrived = due_ns, {}
            for rank, participant in enumerate(self.participants):
                self._serve(rank, participant, arrived.get(rank))

    def _serve(self, rank: int, participant: Participant, datagrams: list[bytes] | None) -> None:
        now_ns = self.network.now_ns
        if datagrams:
            participant.worker.on_datagrams(now_ns, Batch.of(datagrams, self.job.lanes))
        elif now_ns < participant.deadline_ns:
            return
        for datagram in participant.poll(now_ns):
            self.network.send(True, rank, datagram)


def make_network(job: Job, faults: Faults, seed: int, check_tags: bool = True) -> Network:
    entries = {job.job: JobEntry(job.workers, job.slots)}
    return Network(SwitchModel(job.lanes, entries, check_tags), faults, seed)


def int_tensors(seed: int, workers: int, sizes: list[int]) -> list[list[NDArray]]:
    """Full-range int32 for each worker and round, from a generator that `hosts` does not use."""
    chance = random.Random(seed)
    return [
        [
            np.array([chance.randrange(-(2**31), 2**31) for _ in range(size)], np.int32)
            for size in sizes
        ]
        for _ in range(workers)
    ]


def wrapped_sum(arrays: list[NDArray]) -> NDArray[np.int32]:
    """Sum modulo 2^32, by way of Python's integers."""
    totals = [sum(map(int, values)) for values in zip(*arrays, strict=True)]
    return np.array([(total + 2**31) % 2**32 - 2**31 for total in totals], np.int32)
