"""Runs a real switch or worker and its model side by side. If they differ, FaultFound is raised."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.errors import NotFinite, RoundTimeout, ShapeMismatch
from agglab.hosts.wire import Batch
from agglab.systems.switchml.verification import packets
from agglab.systems.switchml.verification.forwarding_model import Out
from agglab.systems.switchml.verification.packets import End
from agglab.systems.switchml.verification.switch_model import (
    COUNTERS,
    NO_JOB,
    OF_FRAMES,
    Decision,
    JobRole,
    SwitchModel,
    same,
)
from agglab.systems.switchml.verification.worker_model import Times, WorkerModel
from agglab.systems.switchml.worker import COUNTERS as WORKER_COUNTERS
from agglab.systems.switchml.worker import Job, Timing, Worker
from agglab.testbed.systems.plan import Entries
from agglab.testbed.virtual.switches import CompiledProgram
from agglab.verification.explore.walk import FaultFound
from p4native.common.object_names import full_name
from p4native.switch import Pipeline

MS = 1_000_000
INDEX = re.compile(r"index (\d+)")


class SwitchPair:
    """A compiled program and the model of the same switch. below: the ports that lead to hosts."""

    def __init__(
        self, name: str, compiled: CompiledProgram, model: SwitchModel, below: Collection[int]
    ) -> None:
        self.name, self._compiled = name, compiled
        self.model, self._below = model, below
        self._pipeline: Pipeline = compiled.pipeline(seed=1)
        self._entries: Entries | None = None
        self._handles: list[tuple[str, int]] = []

    def write_entries(self, entries: Entries, roles: Mapping[int, JobRole]) -> None:
        """Replaces all entries; registers keep their values."""
        tables = self._compiled.program.tables
        for table, handle in self._handles:
            self._pipeline.tables.delete(full_name(tables, table, "table"), handle)
        added = [
            (entry.table, self._compiled.add(self._pipeline, entry)) for entry in entries.tables
        ]
        self._handles = added
        for group in self._entries.groups if self._entries else ():
            self._pipeline.replication.set_multicast_group(group, [])
        for group, replicas in entries.groups.items():
            self._pipeline.replication.set_multicast_group(group, replicas)
        self._entries = entries
        self.model.roles = dict(roles)

    def restart(self) -> None:
        """Restarts the switch with empty registers and with its entries."""
        self.check_counters()
        self._pipeline.close()
        self._pipeline = self._compiled.pipeline(seed=1)
        self.model.empty()
        assert self._entries is not None
        entries, self._entries, self._handles = self._entries, None, []
        self.write_entries(entries, self.model.roles)

    def process(self, port: int, frame: bytes) -> list[Out]:
        """Returns the frames that leave because of this frame. Raises FaultFound if other frames
        should have left."""
        outs = self._pipeline.process(port, frame)
        decision, expected = self.model.process(port, frame)
        outs.sort()
        expected.sort()
        if decision is Decision.FORWARDED:
            self._check_believed(outs)
        as_must_be = len(outs) == len(expected) and all(
            a == b and same(made, must) for (a, made), (b, must) in zip(outs, expected, strict=True)
        )
        if not as_must_be:
            what = f"{packets.described(frame)} at port {port} ({decision.name.lower()})"
            raise FaultFound("switch", f"{self.name}: {what}: {_difference(outs, expected)}")
        return outs

    def _check_believed(self, outs: Sequence[Out]) -> None:
        """Raises FaultFound if the switch forwards a frame that a worker could take for one of the
        aggregator. This check does not use the model."""
        for out, copy in outs:
            if out in self._below and packets.AGGREGATOR_IP in packets.addresses(copy):
                raise FaultFound(
                    "forged", f"{self.name} forwards a result that belongs to no job to port {out}"
                )

    def check_counters(self) -> None:
        """Compares packets and bytes of each counter that the model has. Raises FaultFound."""
        indices = [role.index for role in self.model.roles.values()]
        for last in COUNTERS:
            name = full_name(self._compiled.program.counters, last, "counter")
            for index in [0] if last in OF_FRAMES else [*indices, NO_JOB]:
                got = self._pipeline.counters.read(name, index)
                model = self.model
                must = model.counted[last, index], model.counted_bytes[last, index]
                if got != must:
                    text = (
                        f"{self.name}: {last} of {index} is {got} instead of {must} (packets, "
                        "bytes)"
                    )
                    raise FaultFound("counter", text)

    def close(self) -> None:
        self._pipeline.close()


def _difference(outs: Sequence[Out], expected: Sequence[Out]) -> str:
    def listed(all_of: Sequence[Out]) -> str:
        return ", ".join(f"{packets.described(f)} by port {p}" for p, f in all_of) or "nothing"

    if [(p, packets.described(f)) for p, f in outs] != [
        (p, packets.described(f)) for p, f in expected
    ]:
        return f"sends {listed(outs)}; must send {listed(expected)}"
    for (_, made), (_, must) in zip(outs, expected, strict=True):
        if not same(made, must):
            pairs = enumerate(zip(made, must, strict=False))
            at = next((n for n, (a, b) in pairs if a != b), len(must))
            return f"sends {made.hex()}; must send {must.hex()} (byte {at})"
    return "differs"


class WorkerPair:
    """A real worker of a job and its model."""

    def __init__(self, name: str, own: End, agreed: Job, timing: Timing) -> None:
        self.name, self.own, self._lanes = name, own, agreed.lanes
        self.real = Worker(agreed, timing)
        times = Times(**asdict(timing))
        sizes = agreed.lanes, agreed.window, agreed.first_tag
        self.model = WorkerModel(agreed.job, agreed.workers, *sizes, times)
        self._out: NDArray = np.zeros(0, np.int32)

    def begin(self, now_ns: int, values: NDArray, in_place: bool) -> list[bytes] | None:
        """Starts a round; returns the same as `poll`."""
        given = values.copy()
        self._out = given if in_place else np.zeros_like(values)
        self._sums = np.zeros(values.size, np.int32)
        self._given = given
        self.real.begin(now_ns, given, self._out, self._sums)
        self.model.begin(now_ns, values)
        return self.poll(now_ns)

    @property
    def over(self) -> bool:
        return self.model.over

    @property
    def deadline_ns(self) -> int:
        return self.model.deadline_ns

    def take(self, now_ns: int, datagrams: Sequence[bytes]) -> list[bytes] | None:
        """Handles results that arrived together; returns the same as `poll`."""
        real = self.real.on_datagrams(now_ns, Batch.of(datagrams, self._lanes))
        must = self.model.take(now_ns, datagrams)
        if real != must:
            raise FaultFound(
                "worker",
                f"{self.name} accepts {real} of {len(datagrams)} datagrams instead of {must}",
            )
        if self.real.done != self.model.over:
            raise FaultFound(
                "worker", f"{self.name} regards its round as complete too early or too late"
            )
        return self.poll(now_ns)

    def poll(self, now_ns: int) -> list[bytes] | None:
        """Returns the packets that are sent now; None if the worker ends its round with an error.
        Checks the results of a round that is over. Raises FaultFound."""
        must = self.model.poll(now_ns)
        try:
            queue = self.real.poll(now_ns).tolist()
        except (RoundTimeout, ShapeMismatch) as error:
            if must is not None or isinstance(error, ShapeMismatch) != self.model.disagreed:
                raise FaultFound(
                    "worker", f"{self.name} ends its round with an unexpected error: {error}"
                ) from None
            return None
        if must is None:
            raise FaultFound(
                "worker", f"{self.name} does not end its round with the expected error"
            )
        sent = [(slot, self.real.datagram(slot)) for slot in queue]
        if sent != must:
            raise FaultFound(
                "worker",
                f"{self.name} sends {_all_described(sent)}; must send {_all_described(must)}",
            )
        if self.real.deadline_ns != self.model.deadline_ns:
            ours, theirs = self.real.deadline_ns, self.model.deadline_ns
            raise FaultFound(
                "timer",
                f"{self.name}: its deadline is {ours} ns instead of {theirs} (now {now_ns})",
            )
        if self.real.rto_ns != self.model.rto_ns:
            ours, theirs = self.real.rto_ns, self.model.rto_ns
            raise FaultFound("timer", f"{self.name}: its timeout is {ours} ns instead of {theirs}")
        if self.model.over:
            self._check_over()
        return [datagram for _, datagram in sent]

    def check_counters(self) -> None:
        """Compares everything that the worker counts. Raises FaultFound."""
        counted = self.real.counters
        for name in WORKER_COUNTERS:
            if counted[name] != self.model.counters[name]:
                must = self.model.counters[name]
                raise FaultFound(
                    "counter", f"{self.name}: {name} is {counted[name]} instead of {must}"
                )

    def _check_over(self) -> None:
        self.check_counters()
        try:
            self.real.finish()
            told = False
        except NotFinite as error:
            told = True
            index = INDEX.search(str(error))
            if (int(index[1]) if index else None) != self.model.first_not_finite:
                must = self.model.first_not_finite
                raise FaultFound(
                    "worker", f"{self.name} reports {error}; it is at index {must}"
                ) from None
        if self.real.rounds.exponents.tolist() != self.model.exponents:
            ours, theirs = self.real.rounds.exponents.tolist(), self.model.exponents
            raise FaultFound(
                "worker", f"{self.name} agreed on exponents {ours} instead of {theirs}"
            )
        if told != self.model.not_finite:
            raise FaultFound("worker", f"{self.name}: {'' if told else 'no '}error of Inf or NaN")
        self._compare("sum", self._sums, self.model.sums)
        if not told:
            self._compare("value", self._out, self.model.returned())

    def compare(self, sums: NDArray, values: NDArray) -> None:
        """Compares the result with what the round must return. Raises FaultFound."""
        self._compare("sum", self._sums, sums)
        if not self.model.not_finite:
            self._compare("value", self._out, values)

    def _compare(self, what: str, got: NDArray, must: NDArray) -> None:
        different = np.flatnonzero(got.view(np.uint32) != must.view(np.uint32))
        if different.size:
            first = int(different[0])
            text = f"{self.name}: {what} {first} is {got[first]} instead of {must[first]}"
            raise FaultFound("wrong sum", text)


def _all_described(sent: Sequence[tuple[int, bytes]]) -> str:
    return ", ".join(datagram.hex() for _, datagram in sent) or "nothing"
