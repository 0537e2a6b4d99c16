"""Keeps the objects read so far, by name or id. A failed look-up raises an error that names the
place in the JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from p4native.switch.model import (
    Action,
    Calculation,
    Counter,
    FieldList,
    LearnList,
    Meter,
    Profile,
    ValueSet,
)
from p4native.switch.node import Node
from p4native.switch.storage import Field, Header, HeaderType, Register, Stack, Union, UnionStack

T = TypeVar("T")

CORE_ERRORS = (
    "NoError",
    "PacketTooShort",
    "NoMatch",
    "StackOutOfBounds",
    "HeaderTooShort",
    "ParserTimeout",
    "ParserInvalidArgument",
)


@dataclass
class Scope:
    """The objects read so far, to which the rest of the document may refer."""

    header_types: dict[str, HeaderType] = field(default_factory=dict)
    headers: dict[str, Header] = field(default_factory=dict)
    headers_by_id: dict[int, Header] = field(default_factory=dict)
    stacks: dict[str, Stack] = field(default_factory=dict)
    unions: dict[str, Union] = field(default_factory=dict)
    unions_by_id: dict[int, Union] = field(default_factory=dict)
    union_stacks: dict[str, UnionStack] = field(default_factory=dict)
    aliases: dict[str, tuple[Header, Field]] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    registers: dict[str, Register] = field(default_factory=dict)
    counters: dict[str, Counter] = field(default_factory=dict)
    direct_counters: dict[str, Counter] = field(default_factory=dict)
    calculations: dict[str, Calculation] = field(default_factory=dict)
    profiles: dict[str, Profile] = field(default_factory=dict)
    value_sets: dict[str, ValueSet] = field(default_factory=dict)
    meters: dict[str, Meter] = field(default_factory=dict)
    direct_meters: dict[str, Meter] = field(default_factory=dict)
    learn_lists: dict[int, LearnList] = field(default_factory=dict)
    actions: dict[int, Action] = field(default_factory=dict)
    field_lists: dict[int, FieldList] = field(default_factory=dict)

    def find(self, node: Node, what: str, known: Mapping[str, T]) -> T:
        """Returns the object that `node`, a string, names."""
        name = node.text()
        if name not in known:
            raise node.error(f"no {what} is called '{name}'")
        return known[name]

    def header_type(self, node: Node) -> HeaderType:
        return self.find(node, "header type", self.header_types)

    def header(self, node: Node) -> Header:
        return self.find(node, "header", self.headers)

    def stack(self, node: Node) -> Stack:
        return self.find(node, "header stack", self.stacks)

    def union(self, node: Node) -> Union:
        return self.find(node, "header union", self.unions)

    def union_stack(self, node: Node) -> UnionStack:
        return self.find(node, "header union stack", self.union_stacks)

    def field_of(self, node: Node, header_type: HeaderType) -> Field | None:
        """Returns the field of `header_type` that `node` names, or None for the hidden field
        `$valid$`."""
        name = node.text()
        if name == "$valid$":
            return None
        found = header_type.field(name)
        if found is None:
            raise node.error(f"header type '{header_type.name}' has no field '{name}'")
        return found

    def field(self, node: Node) -> tuple[Header, Field]:
        """Reads a [header, field] pair. The hidden field is refused."""
        header_node, field_node = node.elements(2)
        header = self.header(header_node)
        found = self.field_of(field_node, header.type)
        if found is None:
            raise node.error("'$valid$' cannot be used here")
        return header, found


def claim(known: dict[str, T], node: Node, name: str, value: T) -> None:
    """Adds an object under its name. Refuses a name that is in use."""
    if name in known:
        raise node.error(f"'{name}' exists twice")
    known[name] = value


def claim_id(seen: set[int], node: Node) -> int:
    """Returns the id of an object. Refuses an id that was seen before."""
    number = node["id"].integer(0, 2**31 - 1)
    if number in seen:
        raise node["id"].error(f"id {number} exists twice")
    seen.add(number)
    return number
