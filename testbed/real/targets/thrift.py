"""Controls BMv2's simple_switch over Thrift, through simple_switch_CLI."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agglab.testbed.base.kernel import network_namespace
from agglab.testbed.real.targets.base import SwitchSetting
from agglab.testbed.systems.plan import CloneSession, Entries, Replica, TableEntry
from agglab.testbed.systems.plan.changes import group_changes, session_changes, table_changes
from p4native.bmv2 import thrift_cli
from p4native.bmv2.errors import ControlError
from p4native.bmv2.thrift_cli import ThriftCli
from p4native.common.object_names import full_name

# BMv2's own default; every switch has a network namespace, and so a loopback, of its own.
THRIFT_PORT = 9090
LEAST_URGENT = 2**31 - 1
"""The number of the lowest priority. Over Thrift, the smallest number is the highest priority."""
FIRST_SESSION_GROUP = 32768
"""The difference between the number of a clone session and that of the multicast group that has its
copies. It is the same as over P4Runtime."""
PROBE_S = 0.01
_WORD = re.compile(r"[\w.$\[\]:+-]+", re.ASCII)
Value = int | tuple[int, int]


class ThriftControl:
    """The Control (targets.base) over Thrift. program_json: the program with which the switch was
    started."""

    interface = "Thrift"

    def __init__(self, setting: SwitchSetting, program_json: Path) -> None:
        self._namespace_pid = setting.namespace_pid
        self._json = program_json
        self._cli: ThriftCli | None = None
        self._handles: dict[tuple[str, frozenset[tuple[str, Value]], int], int] = {}
        self._nodes: dict[int, dict[int, int]] = {}

    def answers(self, within_s: float) -> bool:
        """Returns whether the Thrift port is open within that time. BMv2 opens it when the program
        and all ports are ready."""
        deadline = time.monotonic() + within_s
        with network_namespace(self._namespace_pid):
            while not _is_open(THRIFT_PORT):
                if time.monotonic() > deadline:
                    return False
                time.sleep(PROBE_S)
        return True

    def begin(self) -> None:
        self._names = ProgramNames(json.loads(self._json.read_text()))
        with network_namespace(self._namespace_pid):
            self._cli = ThriftCli(THRIFT_PORT)

    def reset(self) -> None:
        self._command("reset_state")
        self._handles.clear()
        self._nodes.clear()

    def change(self, old: Entries, new: Entries) -> None:
        for kind, group, replicas in group_changes(old, new):
            self._change_group(kind, group, replicas)
        for kind, number, session in session_changes(old, new):
            self._change_session(kind, number, session)
        for kind, entry in table_changes(old, new):
            self._change_entry(kind, entry)

    def _change_group(self, kind: str, group: int, replicas: Sequence[Replica]) -> None:
        """Changes a multicast group. BMv2 represents it as one node for each instance, with all
        ports of that instance."""
        if kind == "INSERT":
            self._command(f"mc_mgrp_create {group}")
        nodes = self._nodes.setdefault(group, {})
        wanted = {} if kind == "DELETE" else by_instance(replicas)
        for instance in nodes.keys() - wanted.keys():
            node = nodes.pop(instance)
            self._command(f"mc_node_dissociate {group} {node}")
            self._command(f"mc_node_destroy {node}")
        for instance, ports in wanted.items():
            listed = " ".join(map(str, ports))
            if instance in nodes:
                self._command(f"mc_node_update {nodes[instance]} {listed}")
                continue
            answer = self._command(f"mc_node_create {instance} {listed}")
            nodes[instance] = thrift_cli.handle(answer)
            self._command(f"mc_node_associate {group} {nodes[instance]}")
        if kind == "DELETE":
            self._command(f"mc_mgrp_destroy {group}")

    def _change_session(self, kind: str, number: int, session: CloneSession) -> None:
        group = FIRST_SESSION_GROUP + number
        if kind == "DELETE":
            self._command(f"mirroring_delete {number}")
        self._change_group(kind, group, session.replicas)
        if kind == "INSERT":
            self._command(f"mirroring_add_mc {number} {group}")

    def _change_entry(self, kind: str, entry: TableEntry) -> None:
        key = entry.table, frozenset(entry.match.items()), entry.priority
        table, match, action, arguments = self._names.entry(entry)
        if entry.default and kind == "DELETE":
            self._command(f"table_reset_default {table}")
        elif entry.default:
            self._command(f"table_set_default {table} {action} {arguments}")
        elif kind == "INSERT":
            rank = f" {LEAST_URGENT - entry.priority}" if entry.priority else ""
            answer = self._command(f"table_add {table} {action} {match} => {arguments}{rank}")
            self._handles[key] = thrift_cli.handle(answer)
        elif kind == "MODIFY":
            self._command(f"table_modify {table} {action} {self._handles[key]} => {arguments}")
        else:
            self._command(f"table_delete {table} {self._handles.pop(key)}")

    def read_counter(self, counter: str) -> dict[int, tuple[int, int]]:
        name, size = self._names.array("counter", counter)
        answers = (self._command(f"counter_read {name} {index}") for index in range(size))
        return {index: thrift_cli.counter(answer) for index, answer in enumerate(answers)}

    def read_register(self, register: str, indices: Iterable[int]) -> list[int]:
        name, _ = self._names.array("register", register)
        answers = (self._command(f"register_read {name} {index}") for index in indices)
        return [thrift_cli.register(answer) for answer in answers]

    def close(self) -> None:
        if self._cli is not None:
            self._cli.close()
            self._cli = None

    def _command(self, line: str) -> str:
        if self._cli is None:
            raise ControlError(
                f"the command `{line.strip()}` came after the session with the switch had ended"
            )
        return self._cli.command(line.strip())


def by_instance(replicas: Iterable[Replica]) -> dict[int, list[int]]:
    """Returns the ports of each instance."""
    found: dict[int, list[int]] = {}
    for replica in replicas:
        found.setdefault(replica.instance, []).append(replica.port)
    return found


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class ProgramNames:
    """The names of the objects in BMv2 JSON. An object is found by its full name, or by the last
    part of its name if no other object shares that part."""

    def __init__(self, program: Mapping[str, Any]) -> None:
        types = {each["name"]: each["fields"] for each in program["header_types"]}
        self._fields = {each["name"]: types[each["header_type"]] for each in program["headers"]}
        tables = (table for pipeline in program["pipelines"] for table in pipeline["tables"])
        self._tables = {table["name"]: table for table in tables}
        self._actions = {action["id"]: action for action in program["actions"]}
        self._arrays = {
            kind: {array["name"]: int(array["size"]) for array in program[f"{kind}_arrays"]}
            for kind in ("counter", "register")
        }

    def array(self, kind: str, name: str) -> tuple[str, int]:
        """Returns the full name and the number of cells of a counter or register."""
        full = full_name(self._arrays[kind], name, kind)
        return _spoken(full), self._arrays[kind][full]

    def entry(self, entry: TableEntry) -> tuple[str, str, str, str]:
        """Returns table, match, action and arguments in the form of simple_switch_CLI. Raises
        ValueError if the program lacks one of them; the message has its name."""
        table = self._tables[full_name(self._tables, entry.table, "table")]
        action = full_name(table["actions"], entry.action, f"action of table {entry.table}")
        action_id = table["action_ids"][table["actions"].index(action)]
        arguments = self._arguments(entry, self._actions[action_id]["runtime_data"])
        match = "" if entry.default else " ".join(self._match(entry, table))
        return _spoken(table["name"]), match, _spoken(action), " ".join(arguments)

    def _match(self, entry: TableEntry, table: Mapping[str, Any]) -> Iterator[str]:
        columns = {column["name"]: column for column in table["key"]}
        what = f"key of table {entry.table}"
        given = {full_name(columns, name, what): value for name, value in entry.match.items()}
        for name, column in columns.items():
            bits, kind = self._bits(column["target"]), column["match_type"]
            anything = (0, (1 << bits) - 1 if kind == "range" else 0)
            if name not in given and kind == "exact":
                raise ValueError(f"{what} {name} has no value")
            yield _match_word(given.get(name, anything), kind, bits, name)

    def _bits(self, target: Sequence[str]) -> int:
        header, name = target
        if name == "$valid$":
            return 1
        return next(int(field[1]) for field in self._fields[header] if field[0] == name)

    @staticmethod
    def _arguments(entry: TableEntry, wanted: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        names = [parameter["name"] for parameter in wanted]
        if sorted(names) != sorted(entry.parameters):
            listed = ", ".join(names) or "none"
            given = ", ".join(entry.parameters) or "none"
            raise ValueError(f"action {entry.action} has the parameters {listed}, not {given}")
        for parameter in wanted:
            name = parameter["name"]
            yield _word(entry.parameters[name], parameter["bitwidth"], f"{entry.action}.{name}")


def _spoken(name: str) -> str:
    """Returns a name as a word of a command. Raises ValueError if the command line would read it as
    several words."""
    if not _WORD.fullmatch(name):
        raise ValueError(f"simple_switch_CLI cannot express the name {name!r}")
    return name


def _match_word(value: Value, kind: str, bits: int, name: str) -> str:
    if (kind == "exact") == isinstance(value, tuple):
        raise ValueError(f"key {name} has the match kind {kind}, for which {value} is not a value")
    if isinstance(value, tuple) and kind == "lpm":
        return f"{_word(value[0], bits, name)}/{value[1]}"
    if isinstance(value, tuple):
        join = "->" if kind == "range" else "&&&"
        return join.join(_word(part, bits, name) for part in value)
    return _word(value, bits, name)


def _word(value: int, bits: int, what: str) -> str:
    if not 0 <= value < 1 << bits:
        raise ValueError(f"{what}: {value} does not fit into {bits} bits")
    return f"{value:#x}"
