"""Follows every order in which packets of two workers and a few chunks can be lost, duplicated and
delayed.

The network is a set of packets without an order. A step does one of four things. It delivers any of
these packets, so packets may be late and be overtaken. It loses a packet. It adds a second copy of
one. Or it makes a worker send again what it waits for, as a timer could at any moment. All
sequences of such steps are followed to a stated depth. The switch and the workers are the real
ones, used as functions of their state. Equal states are followed once, and each has a count of the
sequences that lead to it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import wire
from agglab.hosts.tensors import make_tensor
from agglab.hosts.wire import Batch
from agglab.systems.switchml.worker import Job, Worker
from agglab.testbed.run.programs.program import compile_program
from agglab.testbed.systems.summing import plan
from agglab.testbed.virtual.backend import AGGREGATOR
from agglab.testbed.virtual.frames import Address, Framing
from agglab.testbed.virtual.switches import CompiledProgram
from agglab.topologies import rack
from agglab.verification.explore.walk import FaultFound
from p4native.switch import Pipeline

LANES, SLOTS, WORKERS, JOB = 4, 2, 2, 1
FINISH_STEPS_MAX = 1000

Bag = tuple[int, ...]
State = tuple[int, tuple[int, ...], Bag]
"""The numbers of the switch's state, of each worker's state, and of the packets that are on their
way."""


@dataclass(frozen=True)
class Case:
    """One case to follow. copies: the largest number of copies of one packet that may exist at a
    time."""

    window: int
    chunks: int
    copies: int

    def __str__(self) -> str:
        return f"chunks: {self.chunks}, window: {self.window}, copies: {self.copies}"


WIDE, TWO_SLOTS = Case(window=2, chunks=5, copies=2), Case(window=2, chunks=2, copies=1)
ONE_CHUNK = Case(window=1, chunks=1, copies=2)
SET_AGAIN = Case(window=1, chunks=2, copies=1)
"""A case in which a slot carries an opening and two chunks. The second chunk finds what the opening
has left in its set."""


class InvariantViolated(FaultFound):
    """Raised if a sum is wrong or a round can no longer end. steps: the steps that led to this
    state."""

    def __init__(self, what: str) -> None:
        super().__init__("interleaving", what)
        self.steps: list[str] = []

    def __str__(self) -> str:
        return f"{self.text} after: {', '.join(self.steps)}"


@dataclass(frozen=True)
class Packet:
    """A packet on its way. up: whether a worker has sent it. rank: the rank of its sender if `up`,
    else of its receiver."""

    up: bool
    rank: int
    datagram: bytes

    def __str__(self) -> str:
        tag = int.from_bytes(self.datagram[8:12], "big")
        slot = int.from_bytes(self.datagram[4:6], "big")
        way = "from" if self.up else "to"
        return f"slot {slot} tag {tag} {way} worker {self.rank}"


class Numbers:
    """Numbers distinct objects, and finds an object by its number."""

    def __init__(self) -> None:
        self.things: list[object] = []
        self._numbers: dict[object, int] = {}

    def of(self, thing: object) -> int:
        number = self._numbers.setdefault(thing, len(self.things))
        if number == len(self.things):
            self.things.append(thing)
        return number


class Model:
    """The switch and the workers as functions from (state, packet) to (state, packets). Results
    that were computed once are kept."""

    def __init__(self, pipeline: Pipeline, case: Case) -> None:
        self._case = case
        self._pipeline = pipeline
        self._registers = [
            (r.name, index) for r in pipeline.program.registers.values() for index in range(r.size)
        ]
        self.packets, self._switches, self._workers = Numbers(), Numbers(), Numbers()
        self._switch_steps: dict[tuple[int, int], tuple[int, Bag]] = {}
        self._worker_steps: dict[tuple[int, int], tuple[int, Bag]] = {}
        self._awaited: dict[tuple[int, int], Bag] = {}
        graph = rack(WORKERS)
        self._framings = []
        for host in graph.hosts:
            own = Address(host.mac, host.ip, wire.WORKER_PORT_BASE + JOB)
            self._framings.append(Framing(own, AGGREGATOR))
        elements = case.chunks * LANES - 1
        values = [make_tensor(1, JOB, rank, 0, elements, "int32") for rank in range(WORKERS)]
        self._expected = (values[0].astype(np.int64) + values[1]).astype(np.int32)
        self._real = [Worker(Job(JOB, WORKERS, LANES, SLOTS, case.window)) for _ in values]
        self._outs: list[NDArray[np.int32]] = [np.zeros(elements, np.int32) for _ in values]
        self._inputs = values

    def start(self) -> State:
        """Returns the state in which all workers have sent their first packets."""
        bag: list[int] = []
        workers = []
        for rank, worker in enumerate(self._real):
            worker.begin(0, self._inputs[rank], self._outs[rank])
            bag += self._sent(rank)
            workers.append(self._workers.of(worker.snapshot()))
        return self._switches.of(self._read_switch()), tuple(workers), tuple(sorted(bag))

    def _sent(self, rank: int) -> list[int]:
        worker = self._real[rank]
        slots = worker.poll(0).tolist()
        return [self.packets.of(Packet(True, rank, worker.datagram(slot))) for slot in slots]

    def _read_switch(self) -> tuple[int, ...]:
        return tuple(self._pipeline.registers.read(name, index) for name, index in self._registers)

    def packet(self, number: int) -> Packet:
        packet = self.packets.things[number]
        assert isinstance(packet, Packet)
        return packet

    def deliver(self, state: State, number: int) -> State:
        """Takes a packet out of the bag and lets its receiver process it. Returns the state after
        that. Raises InvariantViolated."""
        switch, workers, bag = state
        rank = self.packet(number).rank
        if self.packet(number).up:
            switch, sent = self._switch_step(switch, number)
        else:
            new, sent = self._worker_step(workers[rank], number)
            workers = (*workers[:rank], new, *workers[rank + 1 :])
        return switch, workers, self.with_more(_without(bag, number), sent)

    def with_more(self, bag: Bag, numbers: Bag) -> Bag:
        """Returns the packets of `bag` and these additional packets. There are never more copies of
        a packet than the case allows."""
        more = [n for n in numbers if bag.count(n) < self._case.copies]
        return tuple(sorted([*bag, *more])) if more else bag

    def _switch_step(self, switch: int, number: int) -> tuple[int, Bag]:
        known = self._switch_steps.get((switch, number))
        if known is None:
            cells = self._switches.things[switch]
            assert isinstance(cells, tuple)
            for (name, index), value in zip(self._registers, cells, strict=True):
                self._pipeline.registers.write(name, index, value)
            packet = self.packet(number)
            frame = self._framings[packet.rank].frame(packet.datagram)
            results = []
            for port, copy in self._pipeline.process(packet.rank + 1, frame):
                payload = self._framings[port - 1].payload(copy)
                assert payload is not None, "a host would not take this result"
                results.append(self.packets.of(Packet(False, port - 1, payload)))
            known = self._switches.of(self._read_switch()), tuple(results)
            self._switch_steps[switch, number] = known
        return known

    def _worker_step(self, worker: int, number: int) -> tuple[int, Bag]:
        known = self._worker_steps.get((worker, number))
        if known is None:
            packet = self.packet(number)
            real = self._restored(packet.rank, worker)
            real.on_datagrams(0, Batch.of([packet.datagram], LANES))
            sent = self._sent(packet.rank)
            self._check(packet.rank)
            known = self._workers.of(real.snapshot()), tuple(sent)
            self._worker_steps[worker, number] = known
        return known

    def _restored(self, rank: int, worker: int) -> Worker:
        frozen = self._workers.things[worker]
        assert isinstance(frozen, bytes)
        self._real[rank].restore(frozen)
        return self._real[rank]

    def _check(self, rank: int) -> None:
        """Raises InvariantViolated if one of the results that the worker has received is wrong."""
        window = self._case.window
        for slot, state in enumerate(self._real[rank].slots):
            last = int(state["chunk"]) - (window if state["waiting"] else 0)
            for chunk in range(slot, last + 1, window):
                part = slice(chunk * LANES, (chunk + 1) * LANES)
                if not np.array_equal(self._outs[rank][part], self._expected[part]):
                    raise InvariantViolated(f"worker {rank} has a wrong sum in chunk {chunk}")

    def awaited(self, workers: tuple[int, ...]) -> list[int]:
        """Returns the packets whose results the workers wait for."""
        found: list[int] = []
        for rank, worker in enumerate(workers):
            known = self._awaited.get((rank, worker))
            if known is None:
                real = self._restored(rank, worker)
                slots = np.flatnonzero(real.slots["waiting"]).tolist()
                datagrams = (real.datagram(slot) for slot in slots)
                known = tuple(self.packets.of(Packet(True, rank, d)) for d in datagrams)
                self._awaited[rank, worker] = known
            found += known
        return found


def _without(bag: Bag, number: int) -> Bag:
    at = bag.index(number)
    return bag[:at] + bag[at + 1 :]


def steps(model: Model, state: State) -> Iterator[tuple[str, int, State]]:
    """Yields everything that can happen next, as (what, packet, state after it). Raises
    InvariantViolated."""
    switch, workers, bag = state
    for number in dict.fromkeys(bag):
        try:
            yield "deliver", number, model.deliver(state, number)
        except InvariantViolated as wrong:
            wrong.steps = [f"deliver {model.packet(number)}"]
            raise
        yield "lose", number, (switch, workers, _without(bag, number))
        doubled = model.with_more(bag, (number,))
        if doubled != bag:
            yield "duplicate", number, (switch, workers, doubled)
    for number in model.awaited(workers):
        if number not in bag:
            yield "send again", number, (switch, workers, model.with_more(bag, (number,)))


@dataclass(frozen=True)
class Enumerated:
    """The result of a search. interleavings: the number of sequences of `depth` steps, or of fewer
    if nothing more could happen; None if sequences of all lengths were followed. states: the number
    of different states that these sequences lead to. The round can still end correctly from each of
    them."""

    depth: int
    interleavings: int | None
    states: int


class Enumeration:
    """A breadth-first search. Raises InvariantViolated with the steps from the start."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._before: dict[State, tuple[State, str] | None] = {}
        self._ends_well: set[State] = set()

    def walk(self, depth: int) -> Enumerated:
        """Follows all sequences of this many steps."""
        level = self._start()
        ended = 0
        for _ in range(depth):
            following: Counter[State] = Counter()
            for state, ways in level.items():
                ended += 0 if self._expand(state, ways, following) else ways
            level = following
        self._finish_all()
        return Enumerated(depth, ended + level.total(), len(self._before))

    def exhaust(self) -> Enumerated:
        """Follows all sequences of any length, until no step leads to a new state."""
        level, depth = self._start(), 0
        while level:
            following: Counter[State] = Counter()
            known = set(self._before)
            for state in level:
                self._expand(state, 1, following)
            level = Counter({state: 1 for state in following if state not in known})
            depth += 1 if level else 0
        self._finish_all()
        return Enumerated(depth, None, len(self._before))

    def _start(self) -> Counter[State]:
        start = self._model.start()
        self._before[start] = None
        return Counter({start: 1})

    def _finish_all(self) -> None:
        for state in self._before:
            self._finish(state)

    def _expand(self, state: State, ways: int, following: Counter[State]) -> bool:
        """Follows all steps from a state, and returns whether there was any."""
        moved = False
        try:
            for what, number, after in steps(self._model, state):
                moved = True
                following[after] += ways
                if after not in self._before:
                    self._before[after] = (state, f"{what} {self._model.packet(number)}")
        except InvariantViolated as wrong:
            wrong.steps = [*self._story(state), *wrong.steps]
            raise
        return moved

    def _story(self, state: State) -> list[str]:
        told = []
        while (before := self._before[state]) is not None:
            state, step = before
            told.append(step)
        return told[::-1]

    def _finish(self, start: State) -> None:
        """Checks that the round can end from this state if nothing more is lost and workers send
        again what they wait for."""
        model, state = self._model, start
        seen: list[State] = []
        told: list[str] = []
        try:
            for _ in range(FINISH_STEPS_MAX):
                if state in self._ends_well or not model.awaited(state[1]):
                    self._ends_well.update(seen)
                    return
                seen.append(state)
                switch, workers, bag = state
                if not bag:
                    bag = model.with_more(bag, tuple(model.awaited(workers)))
                told.append(f"deliver {model.packet(bag[0])}")
                state = model.deliver((switch, workers, bag), bag[0])
            raise InvariantViolated("the round does not end")
        except InvariantViolated as wrong:
            wrong.steps = [*self._story(start), *told]
            raise


def exhaust(program: Path, depth: int, out: TextIO) -> None:
    """Follows all cases. depth: the number of steps for the widest case; the other cases are
    followed completely. Raises InvariantViolated."""
    print("two workers: loss, duplication and delay", file=out)
    for case in (WIDE, ONE_CHUNK, TWO_SLOTS, SET_AGAIN):
        begun = time.monotonic()
        done = enumerate_all(program, case, depth if case is WIDE else None)
        took = f"{done.states} states, {time.monotonic() - begun:.0f} s"
        if done.interleavings is None:
            count = f"all orders, of any length (the last new state after {done.depth} steps)"
        else:
            count = f"{done.interleavings} orders of {done.depth} steps"
        print(f"  {case}: {count}, {took}", file=out)


def enumerate_all(program: Path, case: Case, depth: int | None) -> Enumerated:
    """Follows all interleavings of this many steps, or of any length if `depth` is None. Raises
    InvariantViolated."""
    compiled = CompiledProgram(
        compile_program(program, "agglab", {"LANES": LANES, "SLOTS": SLOTS}).json
    )
    graph = rack(WORKERS)
    job = plan.PlacedJob(JOB, tuple(host.name for host in graph.hosts), 0, SLOTS)
    with compiled.pipeline(seed=1) as pipeline:
        entries = plan.job_entries(graph, "s1", [job])
        for entry in entries.tables:
            compiled.add(pipeline, entry)
        for group, replicas in entries.groups.items():
            pipeline.replication.set_multicast_group(group, replicas)
        enumeration = Enumeration(Model(pipeline, case))
        return enumeration.exhaust() if depth is None else enumeration.walk(depth)
