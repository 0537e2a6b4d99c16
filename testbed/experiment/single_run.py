"""Runs one scenario once on the backend that it asks for: builds the network, conducts the run and
reads the counters. Stops and removes everything that it has started."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, TextIO

from agglab.testbed.base.scratch import note_elsewhere
from agglab.testbed.results import chunk_latencies, series_table
from agglab.testbed.results.captures import losses, merged
from agglab.testbed.results.captures.dissectors import SCRIPT, of_programs
from agglab.testbed.results.series_table import table
from agglab.testbed.run import segmentation_offload
from agglab.testbed.run.assembly import conductor
from agglab.testbed.run.backend import Backend
from agglab.testbed.run.conductor import Conductor
from agglab.testbed.run.measurements import Measurements, collect, declared_counters
from agglab.testbed.run.outcome import Outcome
from agglab.testbed.run.programs.prepare import Prepared
from agglab.testbed.run.programs.program import Programs
from agglab.testbed.run.programs.program_state import NAME as PROGRAM_FILE
from agglab.testbed.run.programs.program_state import counter_meter, own_counters
from agglab.testbed.run.progress import Progress
from agglab.testbed.run.result_folder import EventLog, RunFolder
from agglab.testbed.run.samples import Record
from agglab.testbed.run.turns import exhaust
from agglab.testbed.scenario import ResolvedScenario
from agglab.testbed.schema.faults import AtChunk
from agglab.testbed.systems.plan import Entries

EVENTS = "events.jsonl"
"""The file of a run's events in its result folder."""


class Experiment:
    """One run of one scenario. `measure` does everything, and finally removes everything that it
    has started."""

    def __init__(
        self,
        resolved: ResolvedScenario,
        prepared: Prepared,
        folder: RunFolder,
        scratch: Path,
        stream: TextIO,
        whose: str = "",
    ) -> None:
        """whose: the prefix of progress lines if several runs take turns."""
        self.resolved = resolved
        self.prepared = prepared
        self.folder = folder
        self.scratch = scratch
        self.system = resolved.system
        self.sums = folder.path / "sums"  # not in scratch: /run may be small
        self.progress = self._progress(stream, whose)

    def measure(self) -> Measurements:
        """Builds, starts and runs everything, and returns the measurements. Raises NodeFailed or
        AgentFailed if a part fails."""
        return exhaust(self.turns())

    def turns(self) -> Generator[None, None, Measurements]:
        """Does the same as `measure`, but as a generator that yields at each turn of
        `Conductor.turns`. Returns the measurements. The first turn builds everything, and the last
        removes it. Closing the generator also removes it."""
        with self.built() as (backend, run, log):
            outcome = yield from run.turns()
            log.add("end")
            measured = self._collected(backend, outcome)
        # Only a switch that has ended has written all that it captured.
        self._merge_captures(measured)
        return measured

    @contextlib.contextmanager
    def built(
        self, by_hand: bool = False, pause: AtChunk | None = None
    ) -> Iterator[tuple[Backend, Conductor, EventLog]]:
        """Builds the network, and removes it in the end. Yields it with the conductor of the run,
        which has not begun, and the run's log. by_hand, pause: see assembly.conductor."""
        note_elsewhere(self.scratch.parent, self.sums)
        self.sums.mkdir()
        self.scratch.mkdir()
        try:
            with self._backend(by_hand) as backend, self._log(backend) as log:
                log.add("start", scenario=self.resolved.name, seed=self.resolved.seed)
                parts = (self.resolved, backend, log, self.progress, self._fill)
                run = conductor(*parts, by_hand, pause)
                yield backend, run, log
        finally:
            shutil.rmtree(self.sums)
            self.progress.close()

    @property
    def programs(self) -> Programs:
        return self.prepared.programs

    def _fill(self, switch: str, entries: Entries) -> Entries:
        """Adds the scenario's own entries to those of a switch."""
        return self.prepared.fill(switch, entries)

    def _log(self, backend: Backend) -> contextlib.closing[EventLog]:
        return contextlib.closing(EventLog(self.folder.path / EVENTS, backend.now_ns))

    def reload(self, backend: Backend, prepared: Prepared) -> None:
        """Gives the switches other programs, which they have when they are next reprogrammed."""
        self.prepared = prepared
        for switch, program in self._loadable(quick=True).items():
            backend.set_program(switch, program)

    def _loadable(self, quick: bool = False) -> dict[str, Any]:
        """Returns the programs of the switches in the form that the backend takes. quick: whether
        somebody waits for them, so that they are compiled with less optimisation if that can be."""
        log = self.resolved.scenario.switch.log
        if self.resolved.virtual:
            from agglab.testbed.virtual import Wanted, built

            jsons = {switch: program.json for switch, program in self.programs.items()}
            return dict(built(jsons, Wanted(level=log).detail, quick))
        from agglab.testbed.real.targets import choose

        return {
            switch: choose(self.resolved.target, program.json, program.p4info, log)
            for switch, program in self.programs.items()
        }

    def _backend(self, by_hand: bool) -> Backend:
        """Returns a new backend. Its module is imported here, because each backend needs packages
        that the other does not. by_hand: whether somebody at a prompt waits for it."""
        resolved = self.resolved
        if pcaps := self._pcaps:
            pcaps.mkdir(exist_ok=True)
            (pcaps / SCRIPT).write_text(of_programs(self.programs.values()))
        if resolved.virtual:
            from agglab.testbed.virtual import VirtualBackend, Wanted

            wanted = Wanted(pcaps, self.folder.logs, resolved.scenario.switch.log)
            return VirtualBackend(
                resolved.graph,
                resolved.seed,
                self._loadable(quick=by_hand),
                sample_ns=resolved.sample_ns,
                slot_meter=self.system.slot_meter(resolved) if resolved.sample_ns else None,
                counter_meter=counter_meter(self.programs, declared_counters(self.system)),
                wanted=wanted,
            )
        from agglab.testbed.real.backend import MininetBackend

        return MininetBackend(
            resolved.graph,
            resolved.seed,
            resolved.faults,
            self._loadable(),
            self.scratch,
            self.folder.logs,
            self.sums,
            resolved.scenario.timeouts.start_s,
            self._counter_names(),
            pcaps,
            resolved.sample_ns,
            segmentation_offload.carrying(resolved),
        )

    @property
    def _pcaps(self) -> Path | None:
        """The folder of the switches' captures, if the scenario wants them."""
        return self.folder.path / "pcap" if self.resolved.scenario.switch.pcap else None

    def _progress(self, stream: TextIO, whose: str) -> Progress:
        bits = self.system.chunk_bits(self.resolved)
        progress = Progress(stream, whose=whose)
        for job in self.resolved.jobs:
            chunks = self.resolved.chunks(job)
            workers, rounds = len(job.hosts), job.rounds
            progress.add_job(job.number, job.name, workers, rounds, chunks, bits)
        return progress

    def _collected(self, backend: Backend, outcome: Outcome) -> Measurements:
        measured = collect(self.resolved, backend, outcome, self.programs)
        drops = {
            way.direction: {"count": way.dropped_injected, "numbers": list(way.dropped_numbers)}
            for way in measured.statistics.directions
        }
        self.folder.write_json("drops.json", drops)
        self._write_series(measured.record, outcome)
        described = {switch: state.described() for switch, state in measured.programs.items()}
        if any(state["counters"] or state["registers"] for state in described.values()):
            self.folder.write_json(PROGRAM_FILE, described)
        return measured

    def _merge_captures(self, measured: Measurements) -> None:
        if folder := self._pcaps:
            ways = measured.statistics.directions
            merged.merge(folder, losses.interfaces(self.resolved, ways, folder))

    def _write_series(self, record: Record, outcome: Outcome) -> None:
        """Writes the files of metrics over time and of latencies. Writes no file if the run takes
        no samples."""
        resolved = self.resolved
        if not resolved.sample_ns:
            return
        jobs = {job.number: job.name for job in resolved.jobs}
        series = table(record, resolved.graph, jobs, outcome.start_ns)
        self.folder.write(series_table.NAME, "\n".join([*series_table.lines(series), ""]))
        self.folder.write(
            chunk_latencies.NAME, "\n".join([*chunk_latencies.lines(record.latencies, jobs), ""])
        )

    def _counter_names(self) -> set[str]:
        """Returns the names of all counters of the programs: those that the system declares, and
        the programs' own."""
        declared = declared_counters(self.system)
        own = (own_counters(program, declared) for program in self.programs.values())
        return declared.union(*(names.values() for names in own))
