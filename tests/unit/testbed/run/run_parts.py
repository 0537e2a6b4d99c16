"""What the parts of a run are tested with: a small scenario, and a backend that only remembers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agglab.testbed.base.processor_time import Usage
from agglab.testbed.base.worker_id import WorkerId
from agglab.testbed.run.agent_group import AgentGroup
from agglab.testbed.run.backend import Command
from agglab.testbed.run.outcome import JobResult
from agglab.testbed.run.programs.user_entries import as_planned
from agglab.testbed.run.roster import Roster
from agglab.testbed.run.scheduler import RunClock, Scheduler
from agglab.testbed.run.table_writer import TableWriter
from agglab.testbed.scenario import ResolvedScenario, load
from agglab.testbed.systems.plan import Entries

TEXT = """
name: parts
system: {system}
backend: virtual
topology: {{workers: 4}}
switch: {{{switch}}}
workload: {{{work}, on_failure: {on_failure}, give_up: 2s}}
{more}
"""
TWO_ROUNDS = "elements: 400, dtype: int32, rounds: 2"
S = 1_000_000_000


def resolved(
    folder: Path,
    more: str = "",
    system: str = "switchml",
    on_failure: str = "fail",
    switch: str = "",
    work: str = TWO_ROUNDS,
) -> ResolvedScenario:
    switch = switch or ("lanes: 16, slots: 16" if system == "switchml" else "lanes: 16")
    text = TEXT.format(system=system, more=more, on_failure=on_failure, switch=switch, work=work)
    (folder / "parts.yaml").write_text(text)
    (point,) = load(folder / "parts.yaml").points
    return point.resolved


class FakeBackend:
    """Remembers what it was asked for; `now` is its clock, in nanoseconds."""

    def __init__(self) -> None:
        self.now = 0
        self.asked: list[tuple[Any, ...]] = []
        self.used = Usage(0.0, {}, {}, 0.0, 0.0)
        self.carried: dict[str, int] = {}

    def now_ns(self) -> int:
        return self.now

    def write_entries(self, switch: str, entries: Entries) -> None:
        self.asked.append(("write_entries", switch, entries))

    def start_worker(self, worker: WorkerId, configuration: Mapping[str, Any]) -> None:
        self.asked.append(("start", worker.name))

    def command(self, worker: WorkerId, command: Command) -> None:
        self.asked.append((worker.name, command["command"]))

    def usage(self) -> Usage:
        return self.used

    def carried_bytes(self) -> dict[str, int]:
        return dict(self.carried)

    def taken(self) -> list[tuple[Any, ...]]:
        """What it was asked for since it was last asked this."""
        taken, self.asked = self.asked, []
        return taken


class Parts:
    """The lower parts of a run with one job, around a FakeBackend."""

    def __init__(self, scenario: ResolvedScenario) -> None:
        self.resolved = scenario
        self.backend: Any = FakeBackend()
        self.clock = RunClock(self.backend.now_ns)
        self.scheduler = Scheduler(self.backend.now_ns)
        self.told: list[dict[str, Any]] = []
        self.table_writer = TableWriter(self.backend, scenario.system, scenario.graph, as_planned)
        self.roster = Roster(scenario, self.table_writer, self.tell)
        self.job = scenario.jobs[0]
        self.result = JobResult(self.job)
        self.group = AgentGroup(self.result, self.backend, self.clock, self.roster, start_s=10.0)
        self.ended: list[BaseException | None] = []

    def tell(self, event: str, **content: Any) -> None:
        self.told.append({"event": event, **content})
        self.scheduler.post(self.told[-1])

    def begin(self, steps: Callable[[], Any]) -> None:
        """Run a process of the job; how it ends is in `ended`."""

        def watched() -> Any:
            try:
                yield from steps()
                self.ended.append(None)
            except Exception as error:
                self.ended.append(error)

        self.scheduler.add("tested", watched(), self.job.number)

    def event(self, event: str, rank: int, **content: Any) -> None:
        """An agent says something."""
        said = {"event": event, "job": self.job.number, "rank": rank, **content}
        self.group.note(said)
        self.scheduler.post(said)
        self.scheduler.deliver()

    def wait(self, seconds: float) -> None:
        self.backend.now += round(seconds * S)
        self.scheduler.expire()
