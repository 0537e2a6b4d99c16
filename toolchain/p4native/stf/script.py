"""A .stf script as values: `parse` turns the text into a list of commands, one for each line.

The grammar is that of p4c's packet tests. `check_register` and the operators `&&&` and `..` in keys
are our extensions.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from p4native.stf.formats import Format, FormatError, parse_format
from p4native.stf.frames import Expect, Packet, StfError, parse_frame, parse_named


@dataclass(frozen=True)
class Key:
    """A match key as written: `value`, or `value op operand`, where op is `/`, `&&&` or `..`."""

    name: str
    value: str
    op: str = ""
    operand: str = ""


@dataclass(frozen=True)
class Add:
    line: int
    table: str
    priority: int | None
    keys: tuple[Key, ...]
    action: str
    args: tuple[tuple[str, int], ...]
    handle: str | None


@dataclass(frozen=True)
class AddIndirect:
    """An entry of a table with an action profile, which refers to a member or a group."""

    line: int
    table: str
    priority: int | None
    keys: tuple[Key, ...]
    target: str
    handle: str | None


@dataclass(frozen=True)
class Member:
    """An action with its arguments in an action profile, under a name that the script chooses."""

    line: int
    profile: str
    action: str
    args: tuple[tuple[str, int], ...]
    name: str


@dataclass(frozen=True)
class Group:
    """A group of members of an action selector. The selector distributes packets over them."""

    line: int
    profile: str
    members: tuple[str, ...]
    name: str


@dataclass(frozen=True)
class SetDefault:
    line: int
    table: str
    action: str
    args: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Remove:
    line: int
    handle: str  # "all", or the name an `add ... = name` gave


@dataclass(frozen=True)
class Check:
    """A check such as `check_counter c(i) packets == 3` or `check_register r(i) == 7`."""

    line: int
    kind: str  # "counter" or "register"
    name: str
    index: int
    unit: str
    op: str
    value: int


@dataclass(frozen=True)
class Direct:
    """A command in the syntax of simple_switch_CLI, for multicast groups, mirroring or the values
    of cells."""

    line: int
    verb: str
    name: str
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class SetMeter:
    """A command that sets the rates of a meter, as (units in a microsecond, burst). index: the cell
    of a meter array or, for a direct meter, the name of an entry; None stands for all cells."""

    line: int
    name: str
    index: int | str | None
    rates: tuple[tuple[float, int], ...]


@dataclass(frozen=True)
class Pause:
    line: int
    verb: str  # "wait" (one second passes) or "no_packet" (nothing more has come out)


Command = (
    Packet
    | Expect
    | Add
    | AddIndirect
    | Member
    | Group
    | SetDefault
    | Remove
    | Check
    | Direct
    | SetMeter
    | Pause
)

TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>0[xX][0-9a-fA-F*_]+|0[bB][01*_]+|0[oO][0-7*_]+|[0-9]+)
  | (?P<name>"[^"]+"|[A-Za-z_$][\w$]*(?:\[\d+\]|\.[A-Za-z_$][\w$]*|\.\d+)*)
  | (?P<op>&&&|\.\.|->|[<>=!]=|[:,()=/<>])
)""",
    re.VERBOSE,
)
COMPARE = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
# verb -> (takes a name, least numbers, most numbers)
DIRECT = {
    "mirroring_add": (False, 2, 2),
    "mirroring_add_mc": (False, 2, 2),
    "mirroring_delete": (False, 1, 1),
    "mirroring_get": (False, 1, 1),
    "mc_mgrp_create": (False, 1, 1),
    "mc_node_create": (False, 1, 513),
    "mc_node_update": (False, 1, 513),
    "mc_node_associate": (False, 2, 2),
    "register_read": (True, 1, 1),
    "register_write": (True, 2, 2),
    "register_reset": (True, 0, 0),
    "counter_read": (True, 1, 1),
    "counter_write": (True, 3, 3),
}


OTHER_VERBS = ("packet", "expect", "format", "meter_set_rates", "meter_array_set_rates")


def parse(text: str, formats: Mapping[str, Format] = MappingProxyType({})) -> list[Command]:
    """Returns all commands of a script, in order. formats: those that the script may use beside its
    own. Raises StfError at the first line that is not a command."""
    known = dict(formats)
    commands = []
    for number, verb, rest in _lines(text):
        if verb == "format":
            _add_format(known, number, rest)
        else:
            commands.append(_parse_line(number, verb, rest, known))
    return commands


def parse_formats(text: str) -> dict[str, Format]:
    """Returns the formats of a text that consists of `format` lines. Raises StfError."""
    formats: dict[str, Format] = {}
    for number, verb, rest in _lines(text):
        if verb != "format":
            raise StfError(f"expected `format NAME = PART ...`, found `{verb}`", number)
        _add_format(formats, number, rest)
    return formats


def _lines(text: str) -> Iterable[tuple[int, str, str]]:
    """Yields number, first word and rest of each line that is not empty."""
    for number, raw in enumerate(text.splitlines(), 1):
        words = raw.split("#", 1)[0].split(None, 1)
        if words:
            yield number, words[0].lower(), words[1] if words[1:] else ""


def _add_format(formats: dict[str, Format], line: int, text: str) -> None:
    try:
        added = parse_format(text)
    except FormatError as error:
        raise StfError(str(error), line) from None
    name = added.name.lower()
    if name in formats or name in {*DIRECT, *PARSERS, *OTHER_VERBS}:
        raise StfError(f"`{added.name}` is taken: choose another name for the format", line)
    formats[name] = added


def _parse_line(line: int, verb: str, rest: str, formats: Mapping[str, Format]) -> Command:
    if verb in ("packet", "expect"):
        return parse_frame(line, verb, rest, formats)
    if verb in ("meter_set_rates", "meter_array_set_rates"):
        return _parse_rates(line, verb, rest)
    if verb in formats:
        return parse_named(line, formats[verb], rest)
    tokens = _Tokens(line, rest)
    command: Command
    if verb in DIRECT:
        command = _parse_direct(tokens, verb)
    elif verb in PARSERS:
        command = PARSERS[verb](tokens, verb)
    else:
        raise StfError(f"unknown command `{verb}`", line)
    tokens.end()
    return command


def _parse_rates(line: int, verb: str, rest: str) -> SetMeter:
    """Parses `meter_set_rates NAME INDEX RATE:BURST RATE:BURST`. INDEX is missing if the command is
    for a whole array."""
    one = r"(?P<index>\w+)\s+" if verb == "meter_set_rates" else ""
    found = re.fullmatch(rf"(?P<name>\S+)\s+{one}(?P<rates>(?:[\d.]+:\d+\s*)+)", rest.strip())
    if not found:
        raise StfError(
            f"`{verb}` takes a name{', an index' if one else ''} and RATE:BURST ...", line
        )
    rates = tuple(pair.split(":") for pair in found["rates"].split())
    try:
        values = tuple((float(rate), int(burst)) for rate, burst in rates)
    except ValueError:
        raise StfError(f"`{found['rates'].strip()}` is not a list of rates", line) from None
    index = found["index"] if one else None
    return SetMeter(line, found["name"], int(index) if index and index.isdigit() else index, values)


class _Tokens:
    """The tokens of one line, and a cursor over them."""

    def __init__(self, line: int, text: str):
        self.line = line
        self.items: list[tuple[str, str]] = []
        at, text = 0, text.rstrip()
        while at < len(text):
            found = TOKEN.match(text, at)
            if not found:
                raise StfError(f"unexpected `{text[at:].strip()[0]}`", line)
            kind = found.lastgroup or ""
            self.items.append((kind, found[kind].strip('"')))
            at = found.end()
        self.at = 0

    def peek(self, ahead: int = 0) -> tuple[str, str]:
        at = self.at + ahead
        return self.items[at] if at < len(self.items) else ("end", "end of line")

    def next_is(self, text: str) -> bool:
        return self.peek() == ("op", text)

    def take(self, kind: str, what: str, among: Iterable[str] | None = None) -> str:
        got, text = self.peek()
        if got != kind or (among is not None and text not in among):
            raise StfError(f"expected {what}, found `{text}`", self.line)
        self.at += 1
        return text

    def number(self, what: str = "a number") -> int:
        text = self.take("number", what)
        if "*" in text:
            raise StfError(f"expected {what}, found `{text}`", self.line)
        return _integer(text)

    def end(self) -> None:
        if self.peek()[0] != "end":
            raise StfError(f"unexpected `{self.peek()[1]}`", self.line)


def _integer(text: str) -> int:
    return int(text, 0) if text[:1] == "0" and text[1:2].isalpha() else int(text)


def _parse_add(tokens: _Tokens, verb: str) -> Add:
    table, priority, keys = _parse_match(tokens)
    action, args = _parse_action(tokens)
    handle = _parse_name(tokens, "the entry") if tokens.next_is("=") else None
    return Add(tokens.line, table, priority, keys, action, args, handle)


def _parse_add_indirect(tokens: _Tokens, verb: str) -> AddIndirect:
    table, priority, keys = _parse_match(tokens)
    target = tokens.take("name", "the name of a member or a group")
    handle = _parse_name(tokens, "the entry") if tokens.next_is("=") else None
    return AddIndirect(tokens.line, table, priority, keys, target, handle)


def _parse_match(tokens: _Tokens) -> tuple[str, int | None, tuple[Key, ...]]:
    table = tokens.take("name", "a table name")
    priority = tokens.number("a priority") if tokens.peek()[0] == "number" else None
    keys = []
    while tokens.peek(1) == ("op", ":"):
        keys.append(_parse_key(tokens))
    return table, priority, tuple(keys)


def _parse_name(tokens: _Tokens, what: str) -> str:
    tokens.take("op", "`=`", "=")
    return tokens.take("name", f"a name for {what}")


def _parse_member(tokens: _Tokens, verb: str) -> Member:
    profile = tokens.take("name", "the name of an action profile")
    action, args = _parse_action(tokens)
    return Member(tokens.line, profile, action, args, _parse_name(tokens, "the member"))


def _parse_group(tokens: _Tokens, verb: str) -> Group:
    profile = tokens.take("name", "the name of an action selector")
    members = []
    while tokens.peek()[0] == "name":
        members.append(tokens.take("name", "the name of a member"))
    return Group(tokens.line, profile, tuple(members), _parse_name(tokens, "the group"))


def _parse_key(tokens: _Tokens) -> Key:
    name = tokens.take("name", "a key name")
    tokens.take("op", "`:`")
    value = tokens.take("number", "a value")
    if tokens.peek()[1] in ("/", "&&&", "..", "->"):
        op = tokens.take("op", "an operator").replace("->", "..")
        return Key(name, value, op, tokens.take("number", "a value"))
    return Key(name, value)


def _parse_action(tokens: _Tokens) -> tuple[str, tuple[tuple[str, int], ...]]:
    action = tokens.take("name", "an action")
    args: list[tuple[str, int]] = []
    tokens.take("op", "`(`", "(")
    while not tokens.next_is(")"):
        if args:
            tokens.take("op", "`,` or `)`", ",")
        name = tokens.take("name", "an argument name")
        tokens.take("op", "`:`", ":")
        args.append((name, tokens.number()))
    tokens.take("op", "`)`")
    return action, tuple(args)


def _parse_set_default(tokens: _Tokens, verb: str) -> SetDefault:
    table = tokens.take("name", "a table name")
    return SetDefault(tokens.line, table, *_parse_action(tokens))


def _parse_check(tokens: _Tokens, verb: str) -> Check:
    """Parses a check. A check_counter without a condition only checks that the counter exists."""
    name = tokens.take("name", "a name")
    tokens.take("op", "`(`", "(")
    index = tokens.number("an index")
    tokens.take("op", "`)`", ")")
    kind = verb.removeprefix("check_")
    if tokens.peek()[0] == "end" and kind == "counter":
        return Check(tokens.line, kind, name, index, "packets", ">=", 0)
    unit = "value"
    if kind == "counter":
        unit = tokens.take("name", "`packets` or `bytes`", ("packets", "bytes"))
    op = tokens.take("op", "a comparison", COMPARE)
    return Check(tokens.line, kind, name, index, unit, op, tokens.number())


def _parse_direct(tokens: _Tokens, verb: str) -> Direct:
    named, least, most = DIRECT[verb]
    name = tokens.take("name", "a name") if named else ""
    numbers = []
    while tokens.peek()[0] == "number":
        numbers.append(tokens.number())
    if not least <= len(numbers) <= most:
        raise StfError(
            f"`{verb}` takes {least} number{'s' * (least != 1)}, not {len(numbers)}", tokens.line
        )
    return Direct(tokens.line, verb, name, tuple(numbers))


def _parse_remove(tokens: _Tokens, verb: str) -> Remove:
    return Remove(tokens.line, tokens.take("name", "`all` or the name of an entry"))


def _parse_pause(tokens: _Tokens, verb: str) -> Pause:
    return Pause(tokens.line, verb)


PARSERS: dict[str, Callable[[_Tokens, str], Command]] = {
    "add": _parse_add,
    "add_indirect": _parse_add_indirect,
    "member": _parse_member,
    "group": _parse_group,
    "setdefault": _parse_set_default,
    "remove": _parse_remove,
    "check_counter": _parse_check,
    "check_register": _parse_check,
    "wait": _parse_pause,
    "no_packet": _parse_pause,
}
