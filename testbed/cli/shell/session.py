"""A network that is up, and the run on it, which goes on only when it is told to."""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from io import StringIO
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, cast

from agglab.testbed.base.errors import AgentFailed, NodeFailed
from agglab.testbed.base.scratch import note_elsewhere
from agglab.testbed.cli.shell.news import News, Tail
from agglab.testbed.cli.shell.packets import Packets
from agglab.testbed.cli.shell.refused import Refused
from agglab.testbed.experiment.single_run import EVENTS, Experiment
from agglab.testbed.run.backend import Backend
from agglab.testbed.run.conductor import Conductor
from agglab.testbed.run.fault import reached
from agglab.testbed.run.programs.prepare import Prepared, compile_points
from agglab.testbed.run.result_folder import RunFolder
from agglab.testbed.scenario import Point, ResolvedScenario
from agglab.testbed.scenario.faults import at_chunk
from agglab.testbed.schema.faults import AtChunk, Claim, Fault
from agglab.testbed.virtual import NeverEnds, VirtualBackend
from p4native.stf.described import by_program

if TYPE_CHECKING:  # it needs packages that virtual time does not
    from agglab.testbed.real.backend import MininetBackend

Say = Callable[[str], None]
TRACE, PREFIX = "trace", "agglab-shell-"
NO_TIME = "only in virtual time, where time stands still: use --set backend=virtual"
NO_HOSTS = "only on real links, where hosts run programs: use --set backend=mininet"


class Session:
    """The network of one run of a scenario, from entering the context until leaving it. say: a
    function that prints lines for the user."""

    backend: Backend
    conductor: Conductor
    experiment: Experiment
    news: News

    def __init__(self, point: Point, prepared: Prepared, scratch: Path, say: Say) -> None:
        """scratch: a folder that is removed when the program ends."""
        self.point, self.prepared, self.say = point, prepared, say
        self.is_over = False
        """Whether all jobs have ended."""
        self.traced = False
        """Whether the steps of each packet are shown."""
        self.asked: dict[int, Fault] = {}
        """The faults that were begun at the prompt and have not been lifted, by number."""
        self._scratch, self._numbers = scratch, count()
        self._stack, self._kept = contextlib.ExitStack(), contextlib.ExitStack()
        self._windows: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Session:
        # Not in scratch, which may be small.
        self._results = Path(self._kept.enter_context(tempfile.TemporaryDirectory(prefix=PREFIX)))
        note_elsewhere(self._scratch, self._results)
        self._open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for window in self._windows:
            window.terminate()
        self._stack.close()
        self._kept.close()

    def open_window(self, command: Sequence[str]) -> None:
        """Starts a program with a window, which goes on beside the prompt, but not longer."""
        quiet = subprocess.DEVNULL
        self._windows.append(subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet))

    def _open(self) -> None:
        """Builds the network, waits until the agents are ready, and goes to the moment at which the
        scenario opens the prompt."""
        number = next(self._numbers)
        folder = RunFolder(self._results / str(number))
        unseen = StringIO()  # where the progress of rounds goes
        scratch = self._scratch / f"{number}"
        self.experiment = Experiment(self.resolved, self.prepared, folder, scratch, unseen)
        pause = self._pause()
        built = self._stack.enter_context(self.experiment.built(by_hand=True, pause=pause))
        self.backend, self.conductor, _ = built
        self.news = News(folder, self.backend, self.resolved, self.place)
        self._packets = Packets(self.virtual, self.words) if self.is_virtual else None
        self.is_over, self.asked = False, {}
        self.move()
        if pause is not None:
            self._go_to(pause, Tail(folder.path / EVENTS))

    def _pause(self) -> AtChunk | None:
        """Returns the moment at which the scenario opens the prompt, if it names one."""
        mark = self.resolved.scenario.pause_at
        return None if mark is None else at_chunk(mark, self.resolved.jobs)

    def _go_to(self, pause: AtChunk, events: Tail) -> None:
        """Goes on to this moment. events: the log of the run."""
        while not self.is_over:
            for _ in self.moves():
                if any(reached(json.loads(line), pause) for line in events.new()):
                    return

    @property
    def has_trace(self) -> bool:
        """Whether the switches' programs tell each step."""
        return self.resolved.scenario.switch.log == TRACE

    def use_trace(self) -> None:
        """Makes the programs tell each step, from the next `begin_again` on."""
        scenario = self.resolved.scenario
        traced = replace(scenario, switch=replace(scenario.switch, log=TRACE))
        self.point = replace(self.point, resolved=replace(self.resolved, scenario=traced))

    def begin_again(self) -> None:
        """Replaces the network by a new one, which is as this one was in the beginning."""
        self._stack.close()
        self._open()

    @property
    def resolved(self) -> ResolvedScenario:
        return self.point.resolved

    @property
    def is_virtual(self) -> bool:
        return self.resolved.virtual

    @property
    def virtual(self) -> VirtualBackend:
        """The network in virtual time. Raises Refused on real links."""
        if not self.is_virtual:
            raise Refused(NO_TIME)
        return cast(VirtualBackend, self.backend)

    @property
    def packets(self) -> Packets:
        """The packets in virtual time. Raises Refused on real links."""
        if self._packets is None:
            raise Refused(NO_TIME)
        return self._packets

    @property
    def real(self) -> MininetBackend:
        """The network on real links. Raises Refused in virtual time."""
        if self.is_virtual:
            raise Refused(NO_HOSTS)
        return cast("MininetBackend", self.backend)

    @property
    def hosts(self) -> list[str]:
        return [host.name for host in self.resolved.graph.hosts]

    @property
    def switches(self) -> list[str]:
        return [switch.name for switch in self.resolved.graph.switches]

    def words(self, switch: str, frame: bytes) -> str:
        """Returns a frame in words, as a switch's program reads it."""
        return by_program(self.prepared.programs[switch].json, frame)

    def registers(self, switch: str, name: str, cells: list[int]) -> list[int]:
        """Returns the values of cells of a register, given by its full name. Raises Refused."""
        values = self.backend.registers(switch, name, cells)
        if values is None:
            raise Refused(f"{switch} cannot be read: it is stopped, or its target cannot")
        return values

    # What goes on.

    def move(self) -> None:
        """Goes on to the beginning of the next round, or to the end of all jobs."""
        for _ in self.moves():
            pass

    def moves(self) -> Iterator[bool]:
        """Goes on as `move` does, and yields False whenever the run waits. Raises Refused if all
        jobs have ended, or if a part of the network fails, which ends the run."""
        if self.is_over:
            raise Refused("all jobs have ended; in virtual time, `back` leads to an earlier time")
        try:
            while (rests := self.conductor.move()) is False:
                yield False
            self.is_over = rests is None
        except (NodeFailed, AgentFailed, NeverEnds) as error:
            self.is_over = True
            raise Refused(error.report() if isinstance(error, NodeFailed) else str(error)) from None

    def tell_news(self, packet: str = "") -> None:
        """Prints what has happened since the last time. packet: see News.lines."""
        if self.is_virtual:
            self.virtual.flush_recordings()
        for line in self.news.lines(self.traced, packet):
            self.say(line)

    # Faults and programs.

    def begin(self, faults: Sequence[Fault]) -> None:
        """Begins faults. One that was begun at the prompt and has the same claim is lifted. Raises
        Refused if the network cannot have the faults."""
        claims: Mapping[Claim, int] = {f.action.claim: n for n, f in self.asked.items()}
        for fault in faults:
            try:
                self.backend.expect_fault(fault)
            except ValueError as error:
                raise Refused(str(error)) from None
            if fault.action.claim in claims:
                self.lift(claims[fault.action.claim])
            self.conductor.begin(fault)
            if fault.duration_s is None:
                self.asked[fault.number] = fault

    def place(self, number: int) -> str:
        """Returns where a fault is: the direction of a link if it has only this one, otherwise the
        link, host or switch."""
        action = self.conductor.faults[number].action
        ways: Sequence[str] = getattr(action, "directions", ())
        return ways[0] if len(ways) == 1 else action.target

    def lift(self, number: int) -> None:
        """Ends a fault that was begun at the prompt."""
        del self.asked[number]
        self.conductor.lift(number)

    @property
    def next_fault(self) -> int:
        """The number of the next fault."""
        return len(self.conductor.faults)

    def recompile(self) -> None:
        """Compiles the programs again, for the switches to have when they are next reprogrammed.
        Raises CompileError or ScenarioError."""
        (self.prepared,) = compile_points([self.point])
        self.experiment.reload(self.backend, self.prepared)
