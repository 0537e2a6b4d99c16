"""Reads the user's own table entries: the files that p4lang's tutorials call `s1-runtime.json`.

It uses `table_entries`, `multicast_group_entries` and `clone_session_entries` of such a file;
`target`, `p4info` and `bmv2_json` are ignored, because the scenario states them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from agglab.testbed.base.problems import Problem, ScenarioError, Where, nearest
from agglab.testbed.run.programs.entry_values import Wrong, matches, number
from agglab.testbed.systems.plan import CloneSession, Entries, Replica, TableEntry
from p4native.common.files import read_text
from p4native.common.object_names import is_called, matching
from p4native.switch import Action, Program, Table

NOTHING = Entries((), {})
OF_FILE = ("table_entries", "multicast_group_entries", "clone_session_entries")
IGNORED = ("target", "p4info", "bmv2_json")
COMMENTS = ("_", "#", "//", "comment")
"""How a key begins that is a remark for people."""
OF_ENTRY = ("table", "match", "action_name", "action_params", "priority", "default_action")
WITH_PRIORITY = ("ternary", "range")
FILE_MAX_BYTES = 16 << 20
NUMBER_MAX = 32767
"""The largest number of a group or clone session: BMv2's server uses larger numbers for its own
sessions."""
INSTANCE_MAX = 65535
BYTES_MAX = 65535
PORT_MAX = 511
PRIORITY_MAX = 2**31 - 1
Fill = Callable[[str, Entries], Entries]
"""A function that takes a switch and its planned entries, and returns the entries that are written
to the switch."""


def as_planned(switch: str, planned: Entries) -> Entries:
    return planned


def filling(path: str, programs: Mapping[str, Path], target: str = "native") -> Fill:
    """Returns the function that adds the entries of `switch.entries` to the planned entries of each
    switch.

    path: one file for every switch, a folder with `<switch>-runtime.json` for each switch that gets
    entries of the user, or empty. programs: the BMv2 JSON of every switch. Entries that are planned
    for a table that the program lacks are left out, because only the user's own tables matter then.
    Raises ScenarioError with every mistake in the files.
    """
    if not path:
        return as_planned
    described = {json: Program.read(json) for json in dict.fromkeys(programs.values())}
    files = _files(Path(path), list(programs))
    own = {switch: read(file, described[programs[switch]]) for switch, file in files.items()}
    if target == "bmv2":
        _check_whole((files[switch], entries) for switch, entries in own.items())

    def fill(switch: str, planned: Entries) -> Entries:
        tables = described[programs[switch]].tables
        there = tuple(e for e in planned.tables if any(is_called(t, e.table) for t in tables))
        return merged(replace(planned, tables=there), own.get(switch, NOTHING))

    return fill


def _check_whole(read_from: Iterable[tuple[Path, Entries]]) -> None:
    for file, entries in read_from:
        for session_id, session in entries.sessions.items():
            if session.max_bytes:
                where = f"clone_session_entries.{session_id}.packet_length_bytes"
                problem = "BMv2 cannot cut copies"
                raise ScenarioError([Problem(Where(str(file)), where, problem, "0, or native")])


def _files(path: Path, switches: Sequence[str]) -> dict[str, Path]:
    if not path.is_dir():
        return dict.fromkeys(switches, path)
    files = {switch: path / f"{switch}-runtime.json" for switch in switches}
    found = {switch: file for switch, file in files.items() if file.is_file()}
    if not found:
        names = ", ".join(file.name for file in files.values())
        raise ScenarioError(
            [
                Problem(
                    Where(str(path)),
                    "",
                    "has no entries for any of the switches: it has none of these files",
                    names,
                )
            ]
        )
    return found


def merged(planned: Entries, own: Entries) -> Entries:
    """Returns the planned entries and the user's own entries together. The user's entries and
    groups replace planned ones with the same key."""
    kept = tuple(e for e in planned.tables if not any(_replaces(o, e) for o in own.tables))
    sessions = {**planned.sessions, **own.sessions}
    return Entries(kept + own.tables, {**planned.groups, **own.groups}, sessions)


def _replaces(own: TableEntry, planned: TableEntry) -> bool:
    same = len(own.match) == len(planned.match) and all(
        any(is_called(key, name) and own.match[key] == value for key in own.match)
        for name, value in planned.match.items()
    )
    return same and not own.default and is_called(own.table, planned.table)


def load(path: Path) -> dict[str, Any]:
    """Returns the content of a file with entries. Raises ScenarioError if it is no JSON object."""
    where = Where(str(path))
    try:
        content = json.loads(read_text(path, FILE_MAX_BYTES))
        _check_keys("", content, (*OF_FILE, *IGNORED))
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ScenarioError([Problem(where, "", f"cannot be read: {reason}")]) from None
    except Wrong as wrong:
        raise ScenarioError([Problem(where, *wrong.args)]) from None
    return cast(dict[str, Any], content)


def read(path: Path, program: Program) -> Entries:
    """Reads a file's entries and replaces their names by the program's full names. Raises
    ScenarioError."""
    reader = _Reader(Where(str(path)), program)
    entries = reader.file(load(path))
    if reader.problems:
        raise ScenarioError(reader.problems)
    return entries


class _Reader:
    def __init__(self, where: Where, program: Program) -> None:
        self.problems: list[Problem] = []
        self._where, self._program = where, program

    def file(self, content: Mapping[str, Any]) -> Entries:
        try:
            tables = _list("table_entries", content.get("table_entries", []))
            groups = _list("multicast_group_entries", content.get("multicast_group_entries", []))
            sessions = _list("clone_session_entries", content.get("clone_session_entries", []))
        except Wrong as wrong:
            self._note(wrong)
            return NOTHING
        read = [self._tried(self._entry, f"table_entries[{i}]", x) for i, x in enumerate(tables)]
        copies = [
            self._tried(_group, f"multicast_group_entries[{i}]", x) for i, x in enumerate(groups)
        ]
        clones = [
            self._tried(_session, f"clone_session_entries[{i}]", x) for i, x in enumerate(sessions)
        ]
        return Entries(
            tuple(e for e in read if e),
            dict(group for group in copies if group),
            dict(session for session in clones if session),
        )

    def _note(self, wrong: Wrong) -> None:
        self.problems.append(Problem(self._where, *wrong.args))

    def _tried(self, reading: Callable[[str, Any], Any], path: str, content: Any) -> Any:
        try:
            return reading(path, content)
        except Wrong as wrong:
            self._note(wrong)
            return None

    def _entry(self, path: str, content: Any) -> TableEntry:
        _check_keys(path, content, OF_ENTRY)
        table = self._table(f"{path}.table", content.get("table"))
        default = content.get("default_action", False)
        match = content.get("match") or {}
        _check_default(path, table, default, match)
        _check_keys(f"{path}.match", match, [key.name for key in table.keys])
        action = _action(f"{path}.action_name", content.get("action_name"), table)
        return TableEntry(
            table.name,
            {} if default else dict(matches(f"{path}.match", match, table)),
            action.name,
            dict(_parameters(f"{path}.action_params", content.get("action_params", {}), action)),
            _priority(f"{path}.priority", content.get("priority", 0), table, default),
            default,
        )

    def _table(self, path: str, name: Any) -> Table:
        tables = {e: t for e, t in self._program.tables.items() if not _is_hidden(t)}
        return tables[_full_name(path, name, tables)]


def _is_hidden(table: Table) -> bool:
    """Returns whether the compiler made the table, for statements outside the program's tables."""
    return not table.keys and table.const_default and "." not in table.name


def _check_default(path: str, table: Table, default: Any, match: Any) -> None:
    if not isinstance(default, bool):
        place = f"{path}.default_action"
        raise Wrong(place, f"{default!r} is not a truth value", "true or false")
    if default and match:
        raise Wrong(f"{path}.match", "a default action has no match keys", "no `match`")
    if default and table.const_default:
        problem = f"the program makes the default action of {table.name} constant"
        raise Wrong(f"{path}.default_action", problem, "false")
    if not default and not table.keys:
        problem = f"{table.name} has no key, so it takes a default action only"
        raise Wrong(path, problem, "`default_action: true`")


def _full_name(path: str, name: Any, known: Mapping[str, Any]) -> str:
    found = matching(known, name) if isinstance(name, str) else []
    if len(found) != 1:
        problem = "is ambiguous" if found else f"does not exist{nearest(str(name), known)}"
        raise Wrong(path, f"{name!r} {problem}", ", ".join(known))
    return found[0]


def _action(path: str, name: Any, table: Table) -> Action:
    actions = {action.name: action for action in table.actions}
    return actions[_full_name(path, name, actions)]


def _parameters(path: str, given: Any, action: Action) -> Iterator[tuple[str, int]]:
    names = [parameter.name for parameter in action.params]
    _check_keys(path, given, names)
    for parameter in action.params:
        if parameter.name not in given:
            raise Wrong(path, f"lacks {parameter.name!r}", ", ".join(names))
        value = given[parameter.name]
        yield parameter.name, number(f"{path}.{parameter.name}", value, parameter.bits)


def _priority(path: str, value: Any, table: Table, default: bool) -> int:
    least = int(table.match_type in WITH_PRIORITY and not default)
    most = PRIORITY_MAX if least else 0
    if type(value) is not int or not least <= value <= most:
        allowed = (
            f"{least} to {most}; a larger priority wins"
            if least
            else (f"no priority, because no key of {table.name} needs one")
        )
        raise Wrong(path, f"{value!r} is not a valid priority", allowed)
    return value


def _group(path: str, content: Any) -> tuple[int, tuple[Replica, ...]]:
    _check_keys(path, content, ("multicast_group_id", "replicas"))
    group_id = _integer(path, content, "multicast_group_id", (1, NUMBER_MAX))
    return group_id, _replicas(f"{path}.replicas", content.get("replicas"))


def _session(path: str, content: Any) -> tuple[int, CloneSession]:
    _check_keys(path, content, ("clone_session_id", "replicas", "packet_length_bytes"))
    session_id = _integer(path, content, "clone_session_id", (1, NUMBER_MAX))
    length = _integer(path, content, "packet_length_bytes", (0, BYTES_MAX), default=0)
    return session_id, CloneSession(_replicas(f"{path}.replicas", content.get("replicas")), length)


def _replicas(path: str, content: Any) -> tuple[Replica, ...]:
    replicas: list[Replica] = []
    for i, each in enumerate(_list(path, content)):
        place = f"{path}[{i}]"
        _check_keys(place, each, ("egress_port", "instance"))
        replica = Replica(
            _integer(place, each, "egress_port", (0, PORT_MAX)),
            _integer(place, each, "instance", (0, INSTANCE_MAX), default=1),
        )
        if replica in replicas:
            what = f"port {replica.port} with instance {replica.instance} is listed twice"
            raise Wrong(place, what, "each pair of port and instance once")
        replicas.append(replica)
    return tuple(replicas)


def _integer(
    path: str, content: Mapping[str, Any], key: str, bounds: tuple[int, int], default: Any = None
) -> int:
    value = content.get(key, default)
    least, most = bounds
    if type(value) is not int or not least <= value <= most:
        raise Wrong(f"{path}.{key}", f"{value!r} is out of range", f"{least} to {most}")
    return value


def _check_keys(path: str, content: Any, known: Sequence[str]) -> None:
    if not isinstance(content, dict):
        raise Wrong(path, f"{type(content).__name__} is not a JSON object", "{...}")
    for name in content:
        if name not in known and not name.startswith(COMMENTS):
            what = f"unknown key {name!r}{nearest(name, known)}"
            raise Wrong(path, what, ", ".join(known) or "none")


def _list(path: str, content: Any) -> list[Any]:
    if not isinstance(content, list):
        raise Wrong(path, f"{type(content).__name__} is not a JSON list", "[...]")
    return content
