"""What each switch of a run in virtual time was given, sent and said, as conversations: a system's
own agents ask, and the testbed has judged every result."""

from __future__ import annotations

import io
import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from conversations import Conversation, Step
from tables import Entry, Setup

from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.scenario import load
from agglab.testbed.systems.plan import Entries
from agglab.testbed.virtual.switches import SwitchNode


@dataclass
class Recording:
    """One switch, until its entries or groups change for the first time."""

    setup: Entries | None = None
    steps: list[Step] = field(default_factory=list)
    over: bool = False

    def write_entries(self, entries: Entries) -> None:
        self.over |= bool(self.steps) and entries != self.setup
        self.setup = self.setup if self.steps else entries

    def keep(self, step: Step) -> None:
        if not self.over:
            self.steps.append(step)


@dataclass(frozen=True)
class Recorded:
    """program: its file; defines: what it was compiled with."""

    program: Path
    defines: Mapping[str, object]
    conversation: Conversation

    def flags(self) -> list[str]:
        return [f"-D{name}={value}" for name, value in self.defines.items()]


def recorded(text: str, most: int, folder: Path, patch: pytest.MonkeyPatch) -> dict[str, Recorded]:
    """By switch, the first `most` frames of each. Asserts that every result of the run is right."""
    path, kept = folder / "recorded.yaml", defaultdict[str, Recording](Recording)
    path.write_text(text)
    write_entries = SwitchNode.write_entries
    watched: set[str] = set()

    def write_entries_kept(self: SwitchNode, entries: Entries) -> None:
        def keep(port: int, frame: bytes, out: list[tuple[int, bytes]]) -> None:
            kept[self.name].keep(Step(port, frame, tuple(out)))

        if self.name not in watched:
            watched.add(self.name)
            self.watch(keep)
        kept[self.name].write_entries(entries)
        write_entries(self, entries)

    patch.setattr(SwitchNode, "write_entries", write_entries_kept)
    suite = load(path)
    run(suite, folder / "results", [], io.StringIO())
    metrics = json.loads((folder / "results" / suite.name / "latest/metrics.json").read_text())
    assert metrics["exact"], metrics["reason"]
    programs = suite.points[0].resolved.programs
    found = {}
    for switch, recording in kept.items():
        assert recording.setup
        program, setup = programs[switch], setup_of(recording.setup)
        conversation = Conversation(setup, recording.steps[:most], at_once=1)
        found[switch] = Recorded(program.path, program.parameters, conversation)
    return found


def setup_of(entries: Entries) -> Setup:
    """The testbed's entries, to be written as a script."""
    assert not any(entry.default or entry.priority for entry in entries.tables)
    tables = [Entry(e.table, e.match, e.action, e.parameters) for e in entries.tables]
    copies = {
        group: [(each.port, each.instance) for each in of_group]
        for group, of_group in entries.groups.items()
    }
    return Setup(entries=tables, copies=copies)
