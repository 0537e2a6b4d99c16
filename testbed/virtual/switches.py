"""Implements a switch in virtual time: an instance of the compiled program, connected to its links
(native/switch.c)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from agglab.testbed.base.traffic_counters import NodeStatistics, SwitchStatistics
from agglab.testbed.run.restarted_counters import Count, KeptCounts
from agglab.testbed.systems.plan import Entries, TableEntry
from agglab.testbed.systems.plan.changes import (
    NO_ENTRIES,
    entry_key,
    group_changes,
    session_changes,
    table_changes,
)
from agglab.testbed.virtual.clock import EMITTED, PROCESSED, Clock
from agglab.testbed.virtual.links import LinkDirection
from agglab.testbed.virtual.recordings import SwitchRecording
from p4native.common.object_names import UnresolvedName, full_name, is_called
from p4native.switch import (
    Detail,
    Encoded,
    Exact,
    Key,
    Lpm,
    Match,
    Pipeline,
    Program,
    Range,
    Ternary,
    native_library,
)

NO_HANDLE = -1

Watch = Callable[[int, bytes, list[tuple[int, bytes]]], None]
"""A function that is called with each frame that the program has processed: the port, the frame,
and the (port, frame) of each frame that it sent because of it."""
Place = tuple[str, tuple[Key, ...], str, list[str]]
"""The full name of a table, its keys, the name of an action, and the action's parameters."""


class CompiledProgram:
    """A compiled program that any number of switches run. Its tables, counters and registers are
    found by the last part of their names."""

    def __init__(self, json: Path, detail: Detail = Detail.NOTHING, quick: bool = False) -> None:
        """detail: what instances of the program say about each packet. quick: whether to compile it
        in a quarter of the time, because only a few thousand packets will come."""
        self.program = Program.read(json)
        # A trace costs much more time for each packet than optimised code would save.
        self._library = native_library(self.program, detail, quick or detail is Detail.TRACE)
        self._places: dict[tuple[str, str], Place] = {}
        self._encoded: dict[tuple[object, ...], Encoded] = {}

    def pipeline(self, seed: int) -> Pipeline:
        """Returns a new instance of the program, with empty registers and no entries."""
        return Pipeline(self.program, self._library, seed)

    def add(self, pipeline: Pipeline, entry: TableEntry) -> int:
        """Adds an entry. Returns its handle, or NO_HANDLE for a default entry."""
        if entry.default:
            table, _, action, names = self._place(entry.table, entry.action)
            arguments = [entry.parameters[name] for name in names]
            pipeline.tables.set_default(table, action, arguments)
            return NO_HANDLE
        return pipeline.tables.add_encoded(self._encode(pipeline, entry))

    def _encode(self, pipeline: Pipeline, entry: TableEntry) -> Encoded:
        """Returns an entry in the form that the program takes. The results are cached, because many
        switches have the same entries."""
        content = (*entry.match.items(), None, *entry.parameters.items())
        known = (entry.table, entry.action, entry.priority, content)
        encoded = self._encoded.get(known)
        if encoded is None:
            table, keys, action, names = self._place(entry.table, entry.action)
            arguments = [entry.parameters[name] for name in names]
            match = [_match(key, entry.match) for key in keys]
            encoded = pipeline.tables.encode(table, match, action, arguments, entry.priority)
            self._encoded[known] = encoded
        return encoded

    def _place(self, table: str, action: str) -> Place:
        place = self._places.get((table, action))
        if place is None:
            name = full_name(self.program.tables, table, "table")
            found = self.program.tables[name]
            chosen = next(a for a in found.actions if is_called(a.name, action))
            place = (name, found.keys, chosen.name, [parameter.name for parameter in chosen.params])
            self._places[table, action] = place
        return place


def built(
    jsons: Mapping[str, Path], detail: Detail = Detail.NOTHING, quick: bool = False
) -> dict[str, CompiledProgram]:
    """Returns the compiled program of every switch. Each program is built once. detail, quick: as
    CompiledProgram has them."""
    made = {json: CompiledProgram(json, detail, quick) for json in dict.fromkeys(jsons.values())}
    return {switch: made[json] for switch, json in jsons.items()}


def _match(key: Key, given: Mapping[str, int | tuple[int, int]]) -> Match:
    """Returns what an entry matches for one key of the table. If the entry does not state the key,
    any value matches."""
    value = next((v for name, v in given.items() if is_called(key.name, name)), None)
    if value is None:
        value = (0, (1 << key.bits) - 1 if key.kind == "range" else 0)
    if not isinstance(value, tuple):
        return Exact(value)
    kinds: dict[str, Callable[[int, int], Match]] = {"lpm": Lpm, "range": Range}
    return kinds.get(key.kind, Ternary)(*value)


class _Counts(ctypes.Structure):
    """The fields of `struct switch_counts` of native/switch.h."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("received", "processed", "unheard", "waiting")]


class _Functions(ctypes.Structure):
    """The fields of `struct program`."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("lock", "unlock", "process")]


def _of_entries(pipeline: Pipeline | None, table: str) -> dict[int, Count]:
    """Returns the counts of a table's entries, in the order of the entries."""
    if pipeline is None:
        return {}
    entries = pipeline.tables.entries(table)
    counters = pipeline.counters
    return {n: counters.read_entry(table, entry.handle) for n, entry in enumerate(entries)}


class SwitchNode:
    """One switch. Each frame takes `delay_ns` to pass through it, one after the other.

    A program that is stopped loses its registers and entries. Its counts so far are kept.
    """

    def __init__(
        self,
        clock: Clock,
        name: str,
        compiled: CompiledProgram,
        seed: int,
        delay_ns: int = 0,
    ) -> None:
        self.name = name
        self._clock, self._library = clock, clock.library
        self._compiled, self._seed = compiled, seed
        self._next_program = compiled
        self.address: int = self._library.switch_new(clock.address, delay_ns, id(self))
        if not self.address:
            raise MemoryError
        self._state = _Counts.from_address(self.address)
        self._ports: dict[int, LinkDirection] = {}
        self._pipeline: Pipeline | None = None
        self.entries = NO_ENTRIES
        """The entries and groups that the switch has."""
        self._handles: dict[tuple[object, ...], int] = {}
        self._kept = KeptCounts()
        self._drops: dict[str, int] = {}
        self._recording: SwitchRecording | None = None
        self._run(compiled.pipeline(seed))

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            self._library.switch_free(self.address)

    def connect(self, port: int, out: LinkDirection, into: LinkDirection) -> None:
        """Connects a port to a link in both directions."""
        self._ports[port] = out
        if not self._library.switch_connect(self.address, port, out.address):
            raise MemoryError
        into.end_at(self._library.switch_receive, self.address, port)

    def receive(self, port: int, frame: bytes) -> None:
        """Handles a frame that has arrived at a port."""
        self._library.switch_receive_copy(self.address, port, frame, len(frame))

    def watch(self, watch: Watch) -> None:
        """Makes the clock call `watch` after each frame that the program has processed."""
        emitted: list[tuple[int, bytes]] = []

        def processed(port: int, frame: bytes) -> None:
            watch(port, frame, list(emitted))
            emitted.clear()

        self._clock.answer(PROCESSED, id(self), processed)
        self._clock.answer(EMITTED, id(self), lambda port, frame: emitted.append((port, frame)))
        self._library.switch_watch(self.address, 1)

    def record(self, recording: SwitchRecording) -> None:
        """Records from now on what the switch receives, sends and says."""

        def watch(port: int, frame: bytes, sent: list[tuple[int, bytes]]) -> None:
            now_ns = self._clock.now_ns
            recording.processed(now_ns, port, frame, sent)
            recording.said(now_ns, self._pipeline.take_messages() if self._pipeline else ())

        self.watch(watch)
        self._recording = recording

    @property
    def ports(self) -> Iterable[int]:
        """The numbers of the ports that are connected to links."""
        return self._ports

    def _run(self, pipeline: Pipeline | None) -> None:
        """Makes this instance of the program process the frames that arrive. If `pipeline` is None,
        arriving frames are dropped."""
        self._pipeline = pipeline
        if pipeline is None:
            self._library.switch_start(self.address, None, None)
            return
        names = ("pl_lock", "pl_unlock", "pl_process")
        functions = _Functions(*(pipeline.function_address(name) for name in names))
        self._library.switch_start(self.address, pipeline.handle, ctypes.byref(functions))

    def write_entries(self, entries: Entries) -> None:
        """Makes these the only entries and groups, changing only what differs. Registers keep their
        values. Does nothing for a stopped switch, whose entries are written when it has been
        started again."""
        if self._pipeline is None:
            return
        for kind, entry in table_changes(self.entries, entries):
            if kind != "INSERT":
                self._remove(self._pipeline, entry)
            if kind != "DELETE":
                self._handles[entry_key(entry)] = self._compiled.add(self._pipeline, entry)
        for kind, group, replicas in group_changes(self.entries, entries):
            self._pipeline.replication.set_multicast_group(
                group, [] if kind == "DELETE" else replicas
            )
        for kind, number, session in session_changes(self.entries, entries):
            copies = () if kind == "DELETE" else session.replicas
            self._pipeline.replication.set_clone_session(number, copies, session.max_bytes)
        self.entries = entries

    def _remove(self, pipeline: Pipeline, entry: TableEntry) -> None:
        handle = self._handles.pop(entry_key(entry))
        assert handle != NO_HANDLE, "default entries stay for the whole run"
        table = full_name(self._compiled.program.tables, entry.table, "table")
        pipeline.tables.delete(table, handle)

    def stop(self) -> None:
        """Stops the switch as if its process had been killed."""
        if self._pipeline is not None:
            self._put_aside(self._pipeline)
        self.close()
        self._handles, self.entries = {}, NO_ENTRIES

    def close(self) -> None:
        """Frees the program. Afterwards the switch cannot be queried."""
        if self._pipeline is not None:
            self._pipeline.close()
        self._run(None)

    def flush_recording(self) -> None:
        """Writes all that has been recorded to the files, if there is a recording."""
        if self._recording is not None:
            self._recording.flush()

    def end_recording(self) -> None:
        """Closes the files of a recording, if there is one."""
        if self._recording is not None:
            self._recording.close()

    def set_program(self, compiled: CompiledProgram) -> None:
        """Gives the switch another program, which it has from its next start on. Counts then begin
        at zero."""
        self._next_program = compiled

    def start(self) -> None:
        """Starts a stopped switch again, with empty state."""
        assert self._pipeline is None
        if self._compiled is not self._next_program:
            self._compiled, self._kept = self._next_program, KeptCounts()
        self._run(self._compiled.pipeline(self._seed))

    def restart(self) -> None:
        """Replaces the program by a new, empty instance. Does nothing for a stopped switch."""
        if self._pipeline is not None:
            self.stop()
            self.start()

    def _put_aside(self, pipeline: Pipeline) -> None:
        program = self._compiled.program
        for name in (*program.counters, *program.direct_counters):
            self._kept.keep(name, self._cells(pipeline, name))
        for reason, count in pipeline.drops().items():
            self._drops[reason] = self._drops.get(reason, 0) + count

    def _cells(self, pipeline: Pipeline | None, counter: str) -> dict[int, Count]:
        program = self._compiled.program
        if direct := program.direct_counters.get(counter):
            return _of_entries(pipeline, str(direct.table))
        size = program.counters[counter].size
        if pipeline is None:
            return dict.fromkeys(range(size), (0, 0))
        return {index: pipeline.counters.read(counter, index) for index in range(size)}

    def counters(self, last: str) -> dict[int, Count] | None:
        """Returns the counts since the beginning, by index; None if there is no counter of this
        name."""
        program = self._compiled.program
        known = [*program.counters, *program.direct_counters]
        try:
            name = full_name(known, last, "counter")
        except UnresolvedName:
            return None
        return self._kept.total(name, self._cells(self._pipeline, name))

    def registers(self, last: str, indices: list[int]) -> list[int] | None:
        """Returns these cells of a register; None if there is no such register or no such cell, or
        if the switch is stopped."""
        if self._pipeline is None:
            return None
        try:
            name = full_name(self._compiled.program.registers, last, "register")
        except UnresolvedName:
            return None
        if max(indices, default=0) >= self._compiled.program.registers[name].size:
            return None
        return self._pipeline.registers.read_many(name, indices)

    def _sent(self) -> dict[str, int]:
        """Returns how many frames left in each direction, without directions in which none left."""
        sent = {
            out.name: self._library.switch_sent(self.address, port)
            for port, out in self._ports.items()
        }
        return {name: count for name, count in sent.items() if count}

    def account(self) -> NodeStatistics:
        """Returns what happened to the frames that arrived, and what was sent."""
        counts = self._state
        return NodeStatistics(
            self.name,
            counts.received,
            counts.processed,
            counts.unheard,
            self._sent(),
            waiting=counts.waiting,
        )

    def statistics(self) -> SwitchStatistics:
        """Returns the statistics of the switch: drops by reason, and under `stopped` the frames
        that arrived while no program ran."""
        drops = dict(self._drops)
        for reason, count in (self._pipeline.drops() if self._pipeline else {}).items():
            drops[reason] = drops.get(reason, 0) + count
        return SwitchStatistics(
            self.name, 0.0, 0, {"pipeline_drops": drops, "stopped": self._state.unheard}
        )
