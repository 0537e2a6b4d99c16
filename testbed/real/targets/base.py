"""Defines the interface of every target, and starts a switch of any target."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from agglab.testbed.base.errors import NodeFailed
from agglab.testbed.base.traffic_counters import SwitchStatistics
from agglab.testbed.real.process import NodeProcess
from agglab.testbed.real.rules import PortDrop
from agglab.testbed.systems.plan import Entries
from agglab.testbed.systems.plan.changes import NO_ENTRIES
from p4native.bmv2.errors import ControlError
from p4native.common.processes import exit_in_words

Result = TypeVar("Result")
# How long one question for readiness waits before the program's life is looked at again: twice as
# long each time, since on a slow machine an answer itself takes longer than the first.
QUESTION_S, LONGEST_QUESTION_S = 0.2, 5.0
SILENT = "the switch hangs, or the machine is slow: increase timeouts.start"


@dataclass(frozen=True)
class SwitchSetting:
    """Where a target starts its switch. ports: the interface of each P4 port. scratch: the folder
    for Unix sockets. namespace_pid: a process in the switch's network namespace. drops: losses to
    make at its ports, which only `native` can."""

    name: str
    device_id: int
    ports: Mapping[int, str]
    scratch: Path
    pcap_dir: Path | None
    namespace_pid: int
    drops: tuple[PortDrop, ...] = ()


class Control(Protocol):
    """A session that controls and queries one switch. All methods except `answers` and `close`
    raise ControlError.

    Counters and registers are named as in TableEntry. ValueError is raised for a name that the
    program does not have.
    """

    @property
    def interface(self) -> str:
        """The name of the session's protocol: P4Runtime or Thrift."""

    def answers(self, within_s: float) -> bool:
        """Returns whether the switch answers within `within_s` seconds. The switch may have just
        been started."""

    def begin(self) -> None:
        """Takes control of the switch and ensures that it has its program, without entries."""

    def reset(self) -> None:
        """Loads the program again. Afterwards, there are no entries and no groups, and registers
        and counters are zero."""

    def change(self, old: Entries, new: Entries) -> None:
        """Changes the entries from `old` to `new` by writing the differences."""

    def read_counter(self, counter: str) -> dict[int, tuple[int, int]]:
        """Returns (packets, bytes) by index of an indirect counter."""

    def read_register(self, register: str, indices: Iterable[int]) -> list[int]:
        """Returns the contents of these cells of a register, as unsigned numbers."""

    def close(self) -> None:
        """Ends the session; the switch continues to run."""


class Target(Protocol):
    """A kind of switch. It starts and controls switches of this kind, and reads their
    statistics."""

    def command(self, setting: SwitchSetting) -> list[str]:
        """Returns the arguments that start the switch in its namespace."""

    def control(self, setting: SwitchSetting) -> Control:
        """Returns a session with the switch, which may not answer yet."""

    def likely_cause(self, log_tail: list[str]) -> str:
        """Returns the likely cause why the switch did not start, judging by the last lines of its
        log; empty if they suggest none."""

    def statistics(self, setting: SwitchSetting, process: NodeProcess) -> SwitchStatistics:
        """Returns what the switch counted so far."""


class RunningSwitch:
    """A switch that answers and has its program."""

    def __init__(
        self,
        setting: SwitchSetting,
        target: Target,
        process: NodeProcess,
        control: Control,
    ) -> None:
        self.name = setting.name
        self.process = process
        self._setting = setting
        self._target = target
        self._control = control
        self.entries = NO_ENTRIES
        """The entries and groups that the switch has."""

    def write_entries(self, entries: Entries) -> None:
        """Inserts groups and table entries, in addition to those that exist. Raises NodeFailed with
        the switch's message if it refuses them."""
        self._ask(lambda: self._control.change(NO_ENTRIES, entries))
        self.entries = Entries(
            (*self.entries.tables, *entries.tables),
            {**self.entries.groups, **entries.groups},
            {**self.entries.sessions, **entries.sessions},
        )

    def replace(self, entries: Entries) -> None:
        """Makes these the only entries. Only differences are written, so entries that stay the same
        keep working meanwhile. Registers keep their values. Raises NodeFailed if the switch refuses
        the changes."""
        self._ask(lambda: self._control.change(self.entries, entries))
        self.entries = entries

    def reprogram(self, target: Target) -> None:
        """Loads the switch's program again, or the one of another target of the same kind. Entries
        are then removed, and registers and counters are zero."""
        if target == self._target:
            self._ask(self._control.reset)
        else:
            self._control.close()
            self._target, self._control = target, target.control(self._setting)
            self._ask(self._control.begin)
        self.entries = NO_ENTRIES

    def read_counter(self, counter: str) -> dict[int, tuple[int, int]]:
        """Returns (packets, bytes) by index of an indirect counter.

        counter: the counter's name in P4Info, or the last part of the name if no other counter
        shares that part.
        """
        return self._ask(lambda: self._control.read_counter(counter))

    def read_register(self, register: str, indices: Iterable[int]) -> list[int]:
        """Returns the contents of these cells of a register, as unsigned numbers. The register is
        named like a counter in `read_counter`."""
        return self._ask(lambda: self._control.read_register(register, indices))

    def statistics(self) -> SwitchStatistics:
        return self._target.statistics(self._setting, self.process)

    def close(self) -> None:
        """Ends the control session; the network stops the program."""
        self._control.close()

    def _ask(self, question: Callable[[], Result]) -> Result:
        return ask(self.process, question)


def start_switch(
    setting: SwitchSetting, target: Target, process: NodeProcess, timeout_s: float
) -> RunningSwitch:
    """Waits until the started program answers, and gives it its pipeline (the compiled P4 program).
    Raises NodeFailed if that fails."""
    control = target.control(setting)
    try:
        _await_answer(target, process, control, timeout_s)
        ask(process, control.begin, target)
    except BaseException:
        control.close()
        raise
    return RunningSwitch(setting, target, process, control)


def _await_answer(target: Target, process: NodeProcess, control: Control, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    question_s = QUESTION_S
    while not control.answers(within_s=question_s):
        question_s = min(2 * question_s, LONGEST_QUESTION_S)
        status = process.poll()
        if status is not None:
            raise _failed(target, process, f"the switch {exit_in_words(status)} while starting")
        if time.monotonic() > deadline:
            what = f"the switch did not answer on {control.interface} within {timeout_s:g} s"
            raise _failed(target, process, what, otherwise=SILENT)


def _failed(target: Target, process: NodeProcess, what: str, otherwise: str = "") -> NodeFailed:
    failure = NodeFailed(process.node, what, process.command, process.log)
    failure.likely_cause = _likely_cause(process, target, failure.log_tail()) or otherwise
    return failure


def _likely_cause(process: NodeProcess, target: Target | None, said: list[str]) -> str:
    """Returns the cause that the target suspects from the log's last lines, or that the program was
    killed; empty if neither is known."""
    guess = "" if target is None else target.likely_cause(said)
    if not guess and process.poll() == -signal.SIGKILL:
        return "somebody killed it, or the kernel did because memory ran out"
    return guess


def ask(
    process: NodeProcess, question: Callable[[], Result], target: Target | None = None
) -> Result:
    """Returns the answer to a control request. If the switch refuses, raises NodeFailed with the
    switch's message. If `target` is given because the switch has just been started, the error also
    has the cause that the target suspects."""
    try:
        return question()
    except ControlError as refused:
        status = process.poll()
        what = str(refused) if status is None else f"the switch {exit_in_words(status)}: {refused}"
        failure = NodeFailed(process.node, what, process.command, process.log)
        failure.likely_cause = _likely_cause(process, target, [*failure.log_tail(), str(refused)])
        raise failure from refused


def unix_path(setting: SwitchSetting, kind: str) -> Path:
    """Returns the path of one of the switch's Unix sockets."""
    return setting.scratch / f"{setting.name}.{kind}"


def grpc_address(setting: SwitchSetting) -> str:
    """Returns the address at which the switch serves P4Runtime. It is a Unix socket, which works
    across network namespaces."""
    return f"unix:{unix_path(setting, 'grpc')}"


def port_arguments(setting: SwitchSetting) -> list[str]:
    """Returns the arguments for the switch's ports: `-i 1@s1-eth1 -i 2@s1-eth2 ...`."""
    return [word for port, name in setting.ports.items() for word in ("-i", f"{port}@{name}")]
