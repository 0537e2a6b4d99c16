"""The interface of a switch on which scripts run (`Engine`), and an implementation with our switch
in virtual time (`Library`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from p4native import switch
from p4native.stf.frames import StfError
from p4native.stf.names import Match


class Engine(Protocol):
    """What a script needs of a switch. Names are the full names in the BMv2 JSON. The entry with
    the larger priority wins."""

    def add(
        self, table: str, keys: list[Match], action: str, args: list[int], priority: int
    ) -> int: ...
    def add_indirect(
        self, table: str, keys: list[Match], group: bool, target: int, priority: int
    ) -> int: ...
    def add_member(self, profile: str, action: str, args: list[int]) -> int: ...
    def add_group(self, profile: str, members: list[int]) -> int: ...
    def set_default(self, table: str, action: str, args: list[int]) -> None: ...
    def remove(self, table: str, handle: int) -> None: ...
    def direct(self, verb: str, name: str, numbers: tuple[int, ...]) -> str: ...
    def set_meter(self, name: str, index: int, rates: tuple[tuple[float, int], ...]) -> None: ...
    def set_direct_meter(
        self, table: str, name: str, handle: int, rates: tuple[tuple[float, int], ...]
    ) -> None: ...
    def counter(self, name: str, index: int) -> tuple[int, int]: ...
    def register(self, name: str, index: int) -> int: ...
    def send(self, port: int, frame: bytes) -> None: ...
    def wait(self) -> None: ...
    def received(self) -> list[tuple[int, bytes]]: ...


class Library:
    """An Engine that uses switch.Pipeline. One packet is processed in each millisecond of virtual
    time."""

    def __init__(self, pipeline: switch.Pipeline, trace: bool = False):
        self.pipeline = pipeline
        self.trace = trace
        self.now_us = 0
        self.nodes: list[tuple[int, Sequence[int]]] = []
        self.groups: dict[int, list[int]] = {}
        self.out: list[tuple[int, bytes]] = []

    def add(
        self, table: str, keys: list[Match], action: str, args: list[int], priority: int
    ) -> int:
        match = [_pipeline_key(k) for k in keys]
        return self.pipeline.tables.add(table, match, action, args, priority=priority)

    def add_indirect(
        self, table: str, keys: list[Match], group: bool, target: int, priority: int
    ) -> int:
        match = [_pipeline_key(k) for k in keys]
        chosen = switch.Group(target) if group else switch.Member(target)
        return self.pipeline.tables.add_indirect(table, match, chosen, priority)

    def add_member(self, profile: str, action: str, args: list[int]) -> int:
        return self.pipeline.profiles.add_member(profile, action, args).number

    def add_group(self, profile: str, members: list[int]) -> int:
        return self.pipeline.profiles.add_group(profile, [switch.Member(m) for m in members]).number

    def set_default(self, table: str, action: str, args: list[int]) -> None:
        self.pipeline.tables.set_default(table, action, args)

    def remove(self, table: str, handle: int) -> None:
        self.pipeline.tables.delete(table, handle)

    def set_meter(self, name: str, index: int, rates: tuple[tuple[float, int], ...]) -> None:
        self.pipeline.meters.write(name, index, _in_seconds(rates))

    def set_direct_meter(
        self, table: str, name: str, handle: int, rates: tuple[tuple[float, int], ...]
    ) -> None:
        self.pipeline.meters.write_entry(table, handle, _in_seconds(rates))

    def counter(self, name: str, index: int) -> tuple[int, int]:
        return self.pipeline.counters.read(name, index)

    def register(self, name: str, index: int) -> int:
        return self.pipeline.registers.read(name, index)

    def send(self, port: int, frame: bytes) -> None:
        self.now_us += 1000
        self.out += self.pipeline.process(port, frame, self.now_us)
        if self.trace:
            print(*self.pipeline.take_messages(), "", sep="\n")

    def wait(self) -> None:
        self.now_us += 1_000_000

    def received(self) -> list[tuple[int, bytes]]:
        out, self.out = self.out, []
        return out

    def direct(self, verb: str, name: str, numbers: tuple[int, ...]) -> str:
        first, *rest = numbers or (0,)
        match verb:
            case "mc_mgrp_create":
                self.groups[first] = []
            case "mc_node_create":
                self.nodes.append((first, rest))
            case "mc_node_update":
                self.nodes[self._node(first)] = (self.nodes[first][0], rest)
                self._write_groups(g for g, handles in self.groups.items() if first in handles)
            case "mc_node_associate":
                if first not in self.groups:
                    raise StfError(f"no multicast group {first} was created")
                self.groups[first].append(self._node(rest[0]))
                self._write_groups([first])
            case "mirroring_add":
                self.pipeline.replication.set_clone_session(first, [(rest[0], 0)])
            case "mirroring_add_mc":
                self.pipeline.replication.set_clone_session(first, self._replicas(rest[0]))
            case "mirroring_delete":
                self.pipeline.replication.set_clone_session(first, [])
            case "register_read":
                return f"{name}[{first}] = {self.register(name, first)}"
            case "register_write":
                self.pipeline.registers.write(name, first, rest[0])
            case "counter_read":
                packets, size = self.counter(name, first)
                return f"{name}[{first}] = {packets} packets, {size} bytes"
            case "counter_write":
                self.pipeline.counters.write(name, first, rest[0], rest[1])
            case _:
                raise StfError(f"`{verb}` is not supported by the switch library")
        return ""

    def _node(self, handle: int) -> int:
        if handle >= len(self.nodes):
            raise StfError(f"no multicast node {handle} was created")
        return handle

    def _write_groups(self, groups: Iterable[int]) -> None:
        for group in groups:
            self.pipeline.replication.set_multicast_group(group, self._replicas(group))

    def _replicas(self, group: int) -> list[tuple[int, int]]:
        if group not in self.groups:
            raise StfError(f"no multicast group {group} was created")
        nodes = [self.nodes[h] for h in self.groups[group]]
        return [(port, rid) for rid, ports in nodes for port in ports]


def _in_seconds(rates: tuple[tuple[float, int], ...]) -> switch.MeterRates:
    if len(rates) != 2:
        raise StfError("the switch library's meters have two rates")
    (committed, burst), (peak, peak_burst) = rates
    return switch.MeterRates(committed * 1e6, burst, peak * 1e6, peak_burst)


def _pipeline_key(match: Match) -> switch.Match:
    if match.kind == "lpm":
        return switch.Lpm(match.value, match.operand)
    if match.kind in ("ternary", "optional"):
        return switch.Ternary(match.value, match.operand)
    if match.kind == "range":
        return switch.Range(match.value, match.operand)
    return switch.Exact(match.value)
