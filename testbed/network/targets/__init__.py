"""Kinds of switch a scenario can choose; each starts a program and is filled over P4Runtime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from testbed.network.process import NodeProcess
from testbed.network.programming import Entries
from testbed.network.statistics import SwitchStatistics


@dataclass(frozen=True)
class SwitchSetting:
    """Where a target starts its switch: ports are P4 port -> interface; scratch holds Unix sockets."""

    name: str
    device_id: int
    ports: Mapping[int, str]
    scratch: Path
    pcap_dir: Path | None


class Target(Protocol):
    """How one kind of switch is started and asked for its statistics."""

    def command(self, setting: SwitchSetting) -> list[str]: ...

    def grpc_address(self, setting: SwitchSetting) -> str: ...

    def statistics(self, setting: SwitchSetting, process: NodeProcess) -> SwitchStatistics: ...


@dataclass(frozen=True)
class NativeTarget:
    """`python -m switch` with compiled BMv2 JSON and its P4Info (text protobuf)."""

    program_json: Path
    p4info: Path


class RunningSwitch:
    """A switch that answered on P4Runtime and has its pipeline."""

    name: str
    process: NodeProcess

    def install(self, entries: Entries) -> None:
        """Insert all table entries and groups; NodeFailed with the switch's own message when refused."""
        raise NotImplementedError

    def read_counter(self, counter: str) -> dict[int, tuple[int, int]]:
        """index -> (packets, bytes) of an indirect counter, by its P4Info name or a unique last part."""
        raise NotImplementedError
