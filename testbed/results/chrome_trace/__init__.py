"""Writes what happened in a run as trace events, which Perfetto and Chrome's tracing draw on a time
line: rounds and faults, metrics over time, and, if the run has captures, every packet, what became
of it, and how long each chunk was under way. Only what the files of the result say is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agglab.testbed import systems
from agglab.testbed.results.captures.merged import NAME as CAPTURES
from agglab.testbed.results.chrome_trace.curves import add_series
from agglab.testbed.results.chrome_trace.journal import add_events
from agglab.testbed.results.chrome_trace.packets import add_packets
from agglab.testbed.results.chrome_trace.writer import Span, TraceWriter
from agglab.testbed.results.files import WRONG_SHAPE, NoResults, read_events
from agglab.testbed.results.recorded_scenario import RecordedScenario
from agglab.testbed.systems.messages import Messages
from p4native.common.whole_files import whole_file


@dataclass(frozen=True)
class Written:
    """What a trace holds. events: the number of trace events. has_packets: whether the run has
    captures. complete_until_ns: the time from which on packets are missing because the file would
    be too large; None if none is missing."""

    events: int
    has_packets: bool
    complete_until_ns: int | None


def write(folder: Path, out: Path, span: Span, bytes_max: int) -> Written:
    """Writes the trace of one run. folder: its result folder. span: the part of the run that is
    wanted. bytes_max: packets are left out from where on the file would be longer.

    Raises NoResults for a folder without events, or with damaged files; OSError if the file cannot
    be written.
    """
    events = read_events(folder / "events.jsonl")
    if not events:
        raise NoResults(
            f"{folder}: has no events.jsonl with events; name the folder of one run (that of a "
            "sweep or comparison has a folder for each)"
        )
    captures = folder / "pcap" / CAPTURES
    with whole_file(out) as path, path.open("w", encoding="utf-8") as file:
        writer = TraceWriter(file, span, bytes_max)
        until_ns = None
        try:
            start_ns = add_events(writer, events)
            add_series(writer, folder)
            if captures.is_file():
                until_ns = add_packets(writer, captures, _messages(folder), start_ns)
        except WRONG_SHAPE as error:
            raise NoResults(f"{folder}: its files are damaged: {error!r}") from error
        writer.close({"run": folder.resolve().name})
    return Written(writer.events, captures.is_file(), until_ns)


def _messages(folder: Path) -> Messages | None:
    """Returns how the packets of the run's system are read; None for a user's own system, whose
    code does not run for this."""
    path = folder / "scenario.yaml"
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    name = RecordedScenario(text).value("system", systems.default())
    return systems.find(name).messages if name in systems.built_in() else None
