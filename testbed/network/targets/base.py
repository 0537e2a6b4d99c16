"""What every target offers, and how a switch of any target is started."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from agglab.testbed.errors import ControlError, NodeFailed, exit_in_words
from agglab.testbed.network.process import NodeProcess
from agglab.testbed.network.rules import PortDrop
from agglab.testbed.plan import Entries
from agglab.testbed.statistics import SwitchStatistics
from agglab.testbed.table_changes import NO_ENTRIES

Result = TypeVar("Result")
# How long one question for readiness waits before the program's life is looked at again: twice as
# long each time, since on a slow machine an answer itself takes longer than the first.
QUESTION_S, LONGEST_QUESTION_S = 0.2, 5.0
SILENT = "it hangs, or the machine is slow: timeouts.start says how long to wait"


@dataclass(frozen=True)
class SwitchSetting:
    """Where a target starts its switch. ports: P4 port -> interface; scratch: for Unix sockets;
    namespace_pid: a process in its network namespace. drops: losses to make at its ports, which
    only `native` can."""

    name: str
    device_id: int
    ports: Mapping[int, str]
    scratch: Path
    pcap_dir: Path | None
    namespace_pid: int
    drops: tuple[PortDrop, ...] = ()


class Control(Protocol):
    """A session that fills and asks one switch. All but `answers` and `close` raise ControlError.

    Names of counters and registers are those of TableEntry; ValueError for one the program lacks.
    """

    @property
    def interface(self) -> str:
        """What it speaks: P4Runtime, Thrift."""

    def answers(self, within_s: float) -> bool:
        """Whether the switch answers within that time, from its very start on."""

    def begin(self) -> None:
        """Take the switch over and see that it has its program, empty."""

    def reset(self) -> None:
        """The program anew: no entries, no groups; registers and counters zero."""

    def change(self, old: Entries, new: Entries) -> None:
        """Turn what `old` filled the switch with into `new`, by what differs."""

    def read_counter(self, counter: str) -> dict[int, tuple[int, int]]:
        """index -> (packets, bytes) of an indirect counter."""

    def read_register(self, register: str, indices: Iterable[int]) -> list[int]:
        """Unsigned contents of these cells."""

    def close(self) -> None:
        """End the session, not the switch."""


class Target(Protocol):
    """How one kind of switch is started, controlled and asked for its statistics."""

    def command(self, setting: SwitchSetting) -> list[str]:
        """Arguments that start the switch in its namespace."""

    def control(self, setting: SwitchSetting) -> Control:
        """A session with that switch, which may not answer yet."""

    def likely_cause(self, log_tail: list[str]) -> str:
        """A guess from the log's last lines at why it did not start; empty for none."""

    def statistics(self, setting: SwitchSetting, process: NodeProcess) -> SwitchStatistics:
        """What the switch counted so far."""


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
        self._filled = NO_ENTRIES

    def write_entries(self, entries: Entries) -> None:
        """Insert groups and table entries beside those that are there; NodeFailed with the switch's
        words if refused."""
        self._ask(lambda: self._control.change(NO_ENTRIES, entries))
        self._filled = Entries(
            (*self._filled.tables, *entries.tables),
            {**self._filled.groups, **entries.groups},
            {**self._filled.sessions, **entries.sessions},
        )

    def replace(self, entries: Entries) -> None:
        """Make these the only entries. Only what differs is written, so what stays the same
        goes on working meanwhile; registers stay. NodeFailed if refused."""
        self._ask(lambda: self._control.change(self._filled, entries))
        self._filled = entries

    def reprogram(self) -> None:
        """Give it its program anew: entries are gone, registers and counters zero."""
        self._ask(self._control.reset)
        self._filled = NO_ENTRIES

    def read_counter(self, counter: str) -> dict[int, tuple[int, int]]:
        """index -> (packets, bytes) of an indirect counter.

        counter: its P4Info name, or a last part of it that is unique.
        """
        return self._ask(lambda: self._control.read_counter(counter))

    def read_register(self, register: str, indices: Iterable[int]) -> list[int]:
        """Unsigned contents of these cells; the name is as that of a counter."""
        return self._ask(lambda: self._control.read_register(register, indices))

    def statistics(self) -> SwitchStatistics:
        return self._target.statistics(self._setting, self.process)

    def close(self) -> None:
        """End the control session; the program is stopped by the network."""
        self._control.close()

    def _ask(self, question: Callable[[], Result]) -> Result:
        return ask(self.process, question)


def start_switch(
    setting: SwitchSetting, target: Target, process: NodeProcess, timeout_s: float
) -> RunningSwitch:
    """Wait for the started program to answer and give it its pipeline; NodeFailed otherwise."""
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
    """The target's guess from its last lines, or that it was killed; empty for none."""
    guess = "" if target is None else target.likely_cause(said)
    if not guess and process.poll() == -signal.SIGKILL:
        return "somebody killed it, or the kernel when memory ran out"
    return guess


def ask(
    process: NodeProcess, question: Callable[[], Result], target: Target | None = None
) -> Result:
    """The answer to a control question; a refusal becomes NodeFailed with the switch's words, and
    with the target's guess at the cause when the switch has just been started."""
    try:
        return question()
    except ControlError as refused:
        status = process.poll()
        what = str(refused) if status is None else f"the switch {exit_in_words(status)}: {refused}"
        failure = NodeFailed(process.node, what, process.command, process.log)
        failure.likely_cause = _likely_cause(process, target, [*failure.log_tail(), str(refused)])
        raise failure from refused


def unix_path(setting: SwitchSetting, kind: str) -> Path:
    """Path of one of the switch's Unix sockets."""
    return setting.scratch / f"{setting.name}.{kind}"


def grpc_address(setting: SwitchSetting) -> str:
    """Where the switch serves P4Runtime: a Unix socket, which namespaces of networks share."""
    return f"unix:{unix_path(setting, 'grpc')}"


def port_arguments(setting: SwitchSetting) -> list[str]:
    """`-i 1@s1-eth1 -i 2@s1-eth2 ...`"""
    return [word for port, name in setting.ports.items() for word in ("-i", f"{port}@{name}")]
