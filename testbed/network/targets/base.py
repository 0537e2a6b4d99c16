"""What every target offers, and how a switch of any target is started."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from testbed.errors import NodeFailed, exit_in_words
from testbed.network.process import NodeProcess
from testbed.plan import Entries
from testbed.statistics import SwitchStatistics

if TYPE_CHECKING:
    from testbed.network.p4runtime import P4RuntimeClient

Result = TypeVar("Result")
# How long one question for readiness waits before the program's life is looked at again.
QUESTION_S = 0.2


@dataclass(frozen=True)
class SwitchSetting:
    """Where a target starts its switch. ports: P4 port -> interface; scratch: for Unix sockets."""

    name: str
    device_id: int
    ports: Mapping[int, str]
    scratch: Path
    pcap_dir: Path | None


class Target(Protocol):
    """How one kind of switch is started and asked for its statistics."""

    @property
    def program_json(self) -> Path:
        """Compiled BMv2 JSON."""

    @property
    def p4info(self) -> Path:
        """P4Info, text protobuf."""

    def command(self, setting: SwitchSetting) -> list[str]:
        """Arguments that start the switch in its namespace, without a program."""

    def grpc_address(self, setting: SwitchSetting) -> str:
        """Where that switch serves P4Runtime."""

    def likely_cause(self, log_tail: list[str]) -> str:
        """A guess from the log's last lines at why it did not start; empty for none."""

    def statistics(self, setting: SwitchSetting, process: NodeProcess) -> SwitchStatistics:
        """What the switch counted so far."""


class RunningSwitch:
    """A switch that answers on P4Runtime and has its pipeline."""

    def __init__(
        self,
        setting: SwitchSetting,
        target: Target,
        process: NodeProcess,
        client: P4RuntimeClient,
    ) -> None:
        self.name = setting.name
        self.process = process
        self._setting = setting
        self._target = target
        self._client = client
        self._filled = Entries((), {})

    def install(self, entries: Entries) -> None:
        """Insert groups and table entries beside those that are there; NodeFailed with the switch's
        words if refused."""
        self._ask(lambda: self._client.insert(entries))
        groups = {**self._filled.groups, **entries.groups}
        self._filled = Entries((*self._filled.tables, *entries.tables), groups)

    def replace(self, entries: Entries) -> None:
        """Make these all that is installed. Only what differs is written, so what stays the same
        goes on working meanwhile; registers stay. NodeFailed if refused."""
        self._ask(lambda: self._client.change(self._filled, entries))
        self._filled = entries

    def reprogram(self) -> None:
        """Give it its program anew: entries are gone, registers and counters zero."""
        self._ask(lambda: self._client.set_pipeline(self._target.program_json.read_bytes()))
        self._filled = Entries((), {})

    def read_counter(self, counter: str) -> dict[int, tuple[int, int]]:
        """index -> (packets, bytes) of an indirect counter.

        counter: its P4Info name, or a last part of it that is unique.
        """
        return self._ask(lambda: self._client.read_counter(counter))

    def read_register(self, register: str, indices: Iterable[int]) -> list[int]:
        """Unsigned contents of these cells; the name is as that of a counter."""
        return self._ask(lambda: self._client.read_register(register, indices))

    def statistics(self) -> SwitchStatistics:
        return self._target.statistics(self._setting, self.process)

    def close(self) -> None:
        """End the P4Runtime session; the program is stopped by the network."""
        self._client.close()

    def _ask(self, question: Callable[[], Result]) -> Result:
        return ask(self.process, question)


def start_switch(
    setting: SwitchSetting, target: Target, process: NodeProcess, timeout_s: float
) -> RunningSwitch:
    """Wait for the started program to answer and give it its pipeline; NodeFailed otherwise."""
    # Imported here: gRPC costs 0.2 s, which validating a scenario need not pay.
    from testbed.network.p4runtime import P4RuntimeClient

    address = target.grpc_address(setting)
    client = P4RuntimeClient(address, setting.device_id, target.p4info)
    try:
        _await_answer(target, process, client, timeout_s)
        ask(process, client.become_primary)
        ask(process, lambda: client.set_pipeline(target.program_json.read_bytes()))
    except BaseException:
        client.close()
        raise
    return RunningSwitch(setting, target, process, client)


def _await_answer(
    target: Target, process: NodeProcess, client: P4RuntimeClient, timeout_s: float
) -> None:
    deadline = time.monotonic() + timeout_s
    while not client.answers(within_s=QUESTION_S):
        status = process.poll()
        if status is not None:
            raise _failed(target, process, f"the switch {exit_in_words(status)} while starting")
        if time.monotonic() > deadline:
            what = f"the switch did not answer on P4Runtime within {timeout_s:g} s"
            raise _failed(target, process, what)


def _failed(target: Target, process: NodeProcess, what: str) -> NodeFailed:
    failure = NodeFailed(process.node, what, process.command, process.log)
    failure.likely_cause = target.likely_cause(failure.log_tail())
    return failure


def ask(process: NodeProcess, question: Callable[[], Result]) -> Result:
    """The answer to a P4Runtime question; a refusal becomes NodeFailed with the switch's words."""
    from testbed.network.p4runtime import P4RuntimeError

    try:
        return question()
    except P4RuntimeError as refused:
        status = process.poll()
        what = str(refused) if status is None else f"the switch {exit_in_words(status)}: {refused}"
        raise NodeFailed(process.node, what, process.command, process.log) from refused


def unix_path(setting: SwitchSetting, kind: str) -> Path:
    """Path of one of the switch's Unix sockets."""
    return setting.scratch / f"{setting.name}.{kind}"


def port_arguments(setting: SwitchSetting) -> list[str]:
    """`-i 1@s1-eth1 -i 2@s1-eth2 ...`"""
    return [word for port, name in setting.ports.items() for word in ("-i", f"{port}@{name}")]
