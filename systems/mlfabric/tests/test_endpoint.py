"""MLfabric's endpoints: whole jobs over a network that loses, doubles and delays, a server that
dies; and what the judge of asynchronous training finds."""

from __future__ import annotations

import heapq
import random
from copy import copy
from dataclasses import replace
from functools import cache
from itertools import count
from typing import Any

import numpy as np
import pytest

from agglab.hosts.endpoint import Inbox
from agglab.hosts.errors import RoundTimeout
from agglab.hosts.part import SCHEDULER, SERVER, WORKER, Part
from agglab.hosts.workloads import AsyncSgd, InputKey
from agglab.hosts.workloads.async_sgd import COMMITTED, LOST, SCALE
from agglab.systems.mlfabric import endpoint as mlfabric
from agglab.systems.mlfabric.channel import WINDOW
from agglab.systems.mlfabric.wire import Kind, frame_bytes, longest_datagram_bytes
from agglab.testbed.scenario.workloads.async_sgd import judge
from agglab.testbed.systems.base import TrainingBounds
from agglab.testbed.systems.received_arrays import Received

MS, LIMIT_NS, LANES = 1_000_000, 300_000_000_000, 8
WORK = AsyncSgd(12, 4, 24, 2, 6000, 3 * MS, 16)
BOUND, DIVERGENCE = 6, SCALE
PROMISED = TrainingBounds(BOUND, DIVERGENCE)


class Job:
    """All agents of a job, and links that take 1 ms and are as bad as asked for. What is to be
    summed on the way is lost with a chance of its own."""

    def __init__(
        self, work: AsyncSgd = WORK, workers: int = 3, seed: int = 0, **bad: float
    ) -> None:
        self.work, self.chance, self.bad = work, random.Random(seed), bad
        self.now_ns, self._order = 0, count()
        self._events: list[tuple[int, int, Any]] = []
        addresses = [(f"w{rank}", 1) for rank in range(workers)]
        servers, chief = [("s0", 1), ("s1", 1)], ("c", 1)
        peers = {address: [*servers, chief] for address in addresses}
        peers |= {servers[0]: [*addresses, chief, servers[1]]}
        peers |= {servers[1]: [*addresses, chief, servers[0]], chief: [*addresses, *servers]}
        self.agents, self.dead, self.parts = {}, set(), {}
        for place, (address, known) in enumerate(peers.items()):
            role = {"w": WORKER, "s": SERVER, "c": SCHEDULER}[address[0][0]]
            own = {"index": int(address[0][1]) if role == SERVER else 0, "peers": known}
            common = {
                "lanes": LANES,
                "session": 1,
                "servers": 2,
                "order": "shortest",
                "bound": BOUND,
                "group": 3,
                "ahead": 2,
                "divergence": DIVERGENCE,
                "silence_s": 0.3,
                "cells": 4,
                "first_cell": 0,
                "past_switch": [0, 0],
            }
            part = Part(1, role, place, workers, address, 1e7, work, 60.0, {**common, **own})
            self.parts[address] = part
            self.agents[address] = mlfabric.endpoint(part)
        self.workers = addresses

    def begin(self, number: int = 0, late_ms: float = 0) -> None:
        """late_ms: how much later than the others the first worker begins."""
        keys = [InputKey(1, 1, rank, number) for rank in range(len(self.workers))]
        self.inputs = [self.work.inputs(key) for key in keys]
        self.results = [self.work.room(each) for each in self.inputs]
        self._late = []
        for address, values, out in zip(self.workers, self.inputs, self.results, strict=True):
            if late_ms and address == self.workers[0]:
                self._late = [(self.now_ns + late_ms * MS, address, values, out)]
                continue
            self.agents[address].begin(self.now_ns, values, out, None)
            self.at(self.now_ns, address)

    def at(self, when_ns: int, what: Any) -> None:
        heapq.heappush(self._events, (when_ns, next(self._order), what))

    def run(self, kill_s0_at: int | None = None) -> None:
        """Until all workers are done. kill_s0_at: updates that a worker knows of by then."""
        while self._late or not all(self.agents[address].done for address in self.workers):
            if self._late and self._late[0][0] <= self._events[0][0]:
                self.now_ns, address, values, out = self._late.pop()
                self.agents[address].begin(self.now_ns, values, out, None)
                self.at(self.now_ns, address)
            self.now_ns, _, what = heapq.heappop(self._events)
            assert self.now_ns < LIMIT_NS, "it hangs"
            address, *datagram = what if isinstance(what[0], tuple) else (what,)
            agent = self.agents[address]
            if address in self.dead:
                continue
            if datagram:
                source, payload = datagram
                inbox = Inbox(1, agent.longest_bytes)
                inbox.fill([payload], [list(agent.peers).index(source)])
                agent.on_datagrams(self.now_ns, inbox)
            for row in agent.poll(self.now_ns).tolist():
                to = agent.peers[agent.outbox.peer(row)]
                self.send(address, to, agent.outbox.datagram(row))
            if agent.deadline_ns < 2**63 - 1:
                self.at(max(agent.deadline_ns, self.now_ns), address)
            known = max(self.agents[each].chunks_done for each in self.workers)
            if kill_s0_at is not None and known >= kill_s0_at:
                self.dead.add(("s0", 1))

    def send(self, source: Any, to: Any, payload: bytes) -> None:
        lost = self.bad.get("summed" if payload[1] == Kind.SUMMED else "loss", 0.0)
        copies = 1 + (self.chance.random() < self.bad.get("duplicate", 0.0))
        to_replica = (source, to) == (("s0", 1), ("s1", 1))
        for _ in range(copies):
            if self.chance.random() >= lost:
                late_ns = int(self.chance.random() * self.bad.get("late_ms", 0.0) * MS)
                late_ns += to_replica * int(self.bad.get("replica_ms", 0.0) * MS)
                self.at(self.now_ns + MS + late_ns, (to, source, payload))

    def verdict(self, bounds: TrainingBounds = PROMISED) -> Any:
        received = {rank: Received(out) for rank, out in enumerate(self.results)}
        held_out = self.work.held_out(1, 1)
        members = list(range(len(self.workers)))
        return judge(self.work, self.inputs, held_out, members, bounds, received)

    def result(self, rank: int = 0) -> Any:
        return self.results[rank].view(self.work.result)[0]

    def server(self, index: int) -> Any:
        return self.agents[(f"s{index}", 1)]._role


ALL_BAD = {"loss": 0.2, "summed": 0.5, "duplicate": 0.2, "late_ms": 20.0}


@pytest.mark.long(but=["bad0-0", "bad5-1", "bad3-0", "bad1-1"])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "bad", [{}, {"summed": 1.0}, {"loss": 0.1}, {"duplicate": 0.5}, {"late_ms": 30.0}, ALL_BAD]
)
def test_what_is_committed_is_what_was_computed(bad: dict[str, float], seed: int) -> None:
    job = Job(seed=seed, **bad)
    job.begin()
    job.run()
    verdict = job.verdict()
    assert verdict.right, verdict.first
    assert verdict.measures["training.updates"] == WORK.updates == job.result()["commits"]
    assert verdict.measures["training.delay.max"] <= BOUND
    assert 0 < verdict.measures["training.divergence"] <= DIVERGENCE / SCALE


def test_runs_follow_one_another() -> None:
    job = Job(seed=1, loss=0.1)
    for number in range(3):
        job.begin(number)
        job.run()
        assert job.verdict().right


@pytest.mark.parametrize("replica_heard", [False, True])
def test_a_replica_need_not_have_heard_of_each_run(replica_heard: bool) -> None:
    """It misses three runs in which nothing was replicated."""
    job = Job(seed=1)
    if replica_heard:
        job.begin()
        job.run()
    for address, agent in job.agents.items():
        agent._transport.run += 3 * (address != ("s1", 1))
    job.begin(1)
    job.run()
    assert job.verdict().right and job.server(0).counters["replicas"]
    assert job.agents[("s1", 1)]._transport.run == job.agents[("s0", 1)]._transport.run


def test_a_worker_may_begin_when_the_run_is_over() -> None:
    job = Job(seed=1)
    job.begin()
    job.run()
    job.begin(1, late_ms=20_000)
    job.run()
    verdict = job.verdict()
    assert verdict.right, verdict.first
    assert job.result(0)["commits"] == WORK.updates == job.result(1)["commits"]


def test_the_last_model_is_not_taken_from_a_server_that_was_started_again() -> None:
    """By a worker that has never heard the server, and so does not know that it is another."""
    job = Job(seed=1)
    job.begin(late_ms=1)
    [(_, *late)] = job._late
    job._late = []
    job.run()
    job.agents[("s0", 1)] = mlfabric.endpoint(job.parts[("s0", 1)])
    job._late = [(job.now_ns, *late)]
    with pytest.raises(RoundTimeout):
        job.run()
    assert not job.agents[job.workers[0]].done


@pytest.mark.long
def test_a_late_worker_without_mistakes_ends_the_run_too() -> None:
    work = replace(WORK, features=4, samples=2, batch=1, rate=SCALE, updates=20)
    job = Job(work, workers=2)
    job.begin(late_ms=20_000)
    job.run()
    assert job.verdict().right and job.result()["commits"] < 20


@pytest.mark.parametrize("seed", range(2))
def test_training_goes_on_from_the_replica(seed: int) -> None:
    job = Job(seed=seed, **(ALL_BAD if seed % 2 else {}))
    job.begin()
    job.run(kill_s0_at=6)
    verdict = job.verdict()
    assert verdict.right, verdict.first
    assert job.agents[("c", 1)].counters["takeovers"] == 1
    log = job.result()["log"][: WORK.updates]
    assert set(log["epoch"]) == {0, 1} and (np.diff(log["epoch"].astype(int)) >= 0).all()
    accounts = np.concatenate([job.result(rank)["account"] for rank in range(3)])
    assert (accounts["outcome"] == COMMITTED).sum() == WORK.updates


def killed(divergence: int) -> Job:
    """A server that keeps this bound, dead after it had committed what its replica, far away, did
    not have yet."""
    job = Job(seed=1, replica_ms=25.0)
    role = job.server(0)
    role.job = replace(role.job, divergence=divergence)
    job.begin()
    job.run(kill_s0_at=8)
    return job


def test_what_a_dead_server_takes_along_is_within_the_bound() -> None:
    job = killed(3 * SCALE)
    verdict = job.verdict(TrainingBounds(BOUND, 3 * SCALE))
    assert verdict.right, verdict.first
    log = job.result()["log"][: WORK.updates]
    replicated = log["version"][log["epoch"] == 0].max()
    taken = verdict.measures["training.taken"]
    assert taken == job.server(0).store.version - replicated > 0
    assert 0 < verdict.measures["training.gap"] <= 3
    assert verdict.measures["training.lost"] >= taken


def test_a_server_that_was_too_far_ahead_when_it_died_is_found() -> None:
    job = killed(100 * SCALE)
    assert job.verdict(TrainingBounds(BOUND, None)).measures["training.gap"] > 2
    assert "when the server died" in str(job.verdict(TrainingBounds(BOUND, 2 * SCALE)).first)


def test_a_server_that_is_started_again_is_not_believed() -> None:
    """It has forgotten all; the scheduler takes it for silent."""
    job = Job(seed=2)
    fresh = Job(seed=3).agents[("s0", 1)]
    job.begin()
    steps, known = job.agents[job.workers[0]], 0
    original = job.send

    def send(source: Any, to: Any, payload: bytes) -> None:
        nonlocal known
        original(source, to, payload)
        if known == 0 and steps.chunks_done >= 5:
            known = 1
            job.agents[("s0", 1)] = fresh

    job.send = send  # type: ignore[method-assign]
    job.run()
    assert known and job.verdict().right
    assert job.agents[("c", 1)].counters["takeovers"] == 1


def test_silence_may_last_as_long_as_the_packets_of_all_others() -> None:
    frame_bits = 8 * frame_bytes(longest_datagram_bytes(LANES))
    for agent in Job(workers=3).agents.values():
        holds_ns = {channel.recovery.hold_ns for channel in agent._transport._channels}
        assert holds_ns == {round(3 * WINDOW * frame_bits / 1e7 * 1e9)}


def test_a_run_ends_in_time() -> None:
    work = replace(WORK, updates=500, time_ns=60 * MS)
    job = Job(work)
    job.begin()
    job.run()
    assert job.verdict().right and 3 < job.result()["commits"] < 500
    assert job.now_ns < 400 * MS


def test_workers_without_mistakes_end_a_run_too() -> None:
    """Once the model is right about all documents there is nothing to send."""
    work = replace(WORK, features=4, samples=2, batch=1, rate=SCALE, updates=20)
    job = Job(work, workers=2)
    job.begin()
    job.run()
    assert job.verdict().right and job.result()["commits"] < 20


# What the judge finds.


def changed(job: Job, change: Any) -> Any:
    for rank in range(len(job.workers)):
        change(job.result(rank))
    return job.verdict()


@cache
def run_once() -> Job:
    job = Job(seed=5)
    job.begin()
    job.run()
    assert job.verdict().right
    return job


def finished() -> Job:
    """With results of its own."""
    job = copy(run_once())
    job.results = [result.copy() for result in job.results]
    return job


def test_a_wrong_weight_is_found() -> None:
    job = finished()
    job.result(1)["model"][7] += 1
    verdict = job.verdict()
    assert (verdict.first.rank, verdict.first.index, verdict.wrong_results) == (1, 7, 1)


@pytest.mark.parametrize("field", ["read", "step", "rank", "version"])
def test_a_log_that_tells_another_story_is_found(field: str) -> None:
    job = finished()
    assert not changed(job, lambda run: run["log"][field].__setitem__(12, 1)).right


def test_an_update_that_is_too_old_is_found() -> None:
    oldest = finished().verdict().measures["training.delay.max"]
    assert not finished().verdict(TrainingBounds(oldest - 1, DIVERGENCE)).right


def test_a_replica_too_far_behind_is_found() -> None:
    assert not finished().verdict(TrainingBounds(BOUND, 100)).right


def test_a_worker_that_tells_another_log_is_found() -> None:
    job = finished()
    job.result(2)["log"]["at_ns"][3] += 1
    assert not job.verdict().right


@pytest.mark.parametrize("outcome", [LOST, COMMITTED])
def test_an_account_that_differs_from_the_log_is_found(outcome: int) -> None:
    job = finished()
    account = job.result(0)["account"]
    places = np.flatnonzero((account["outcome"] == COMMITTED) == (outcome == LOST))
    account["outcome"][places[0]] = outcome
    job.result(0)["steps"] = max(job.result(0)["steps"], places[0] + 1)
    assert not job.verdict().right


@pytest.mark.parametrize("seed", range(3))
def test_what_nobody_sends_changes_nothing(seed: int) -> None:
    """Random bytes, and packets of the job with other bytes at some places."""
    chance, job = random.Random(seed), Job(seed=seed)
    original = job.send

    def send(source: Any, to: Any, payload: bytes) -> None:
        original(source, to, payload)
        noise = chance.randbytes(chance.randrange(120))
        cut = payload[: chance.randrange(len(payload))]
        head = bytearray(payload)
        head[chance.choice((0, 2, 3, 4, 5, 6, 7))] ^= 1 + chance.randrange(255)
        job.at(job.now_ns + MS, (to, source, chance.choice((noise, cut, bytes(head)))))

    job.send = send  # type: ignore[method-assign]
    job.begin()
    job.run()
    assert job.verdict().right
    assert sum(agent.counters["malformed"] for agent in job.agents.values()) > 20
