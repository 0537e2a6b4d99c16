"""Reads and validates BMv2 JSON. The translator can rely on what `Program.read` returns."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from p4native.common import files
from p4native.switch.bmv2_json.actions import read_actions
from p4native.switch.bmv2_json.arrays import read_arrays, read_learn_lists, read_value_sets
from p4native.switch.bmv2_json.calculations import read_calculations
from p4native.switch.bmv2_json.headers import MAX_HEADERS_BYTES, read_errors, read_headers
from p4native.switch.bmv2_json.parsers import (
    read_checksums,
    read_deparser,
    read_field_lists,
    read_parser,
)
from p4native.switch.bmv2_json.pipelines import PipelineReader
from p4native.switch.bmv2_json.scope import Scope, claim
from p4native.switch.errors import PipelineError, ProgramError
from p4native.switch.model import (
    Action,
    Calculation,
    Checksum,
    Control,
    Counter,
    Deparser,
    FieldList,
    LearnList,
    Meter,
    Parser,
    Profile,
    Table,
    ValueSet,
)
from p4native.switch.node import Node
from p4native.switch.storage import Field, Header, HeaderType, Register, Stack, Union, UnionStack

VERSION = (2, 24)
PROGRAMS_KEPT = 16
"""How many programs a process keeps as they were read and translated last: a class of students, the
cases of a lab and the switches of a network load few programs many times."""
MAX_STATE_BYTES = 4 << 30
FIELD_BYTES, COUNTER_BYTES, METER_BYTES = 16, 16, 72
"""The largest number of bytes in an instance for each field, counter and meter."""
REQUIRED_FIELDS = ("ingress_port", "packet_length", "instance_type", "egress_spec", "egress_port")


@dataclass(eq=False)
class Program:
    """A whole program. The keys of dictionaries are full names; lists are in the JSON's order."""

    name: str
    tables: dict[str, Table]
    actions: list[Action]
    profiles: dict[str, Profile]
    registers: dict[str, Register]
    counters: dict[str, Counter]
    direct_counters: dict[str, Counter]
    meters: dict[str, Meter]
    direct_meters: dict[str, Meter]
    learn_lists: list[LearnList]
    value_sets: dict[str, ValueSet]
    header_types: dict[str, HeaderType]
    headers: dict[str, Header]
    stacks: dict[str, Stack]
    unions: dict[str, Union]
    union_stacks: dict[str, UnionStack]
    aliases: dict[str, tuple[Header, Field]]
    errors: dict[str, int]
    parser: Parser
    deparser: Deparser
    ingress: Control
    egress: Control
    calculations: dict[str, Calculation]
    checksums: list[Checksum]
    field_lists: dict[int, FieldList]

    @classmethod
    def read(cls, path: str | Path) -> Program:
        """Reads a file. Raises ProgramError with the path of the first node that is wrong."""
        try:
            return cls.of_file(path, files.read_bytes(path))
        except OSError as error:
            reason = error.strerror or str(error)
            raise PipelineError(f"{path}: cannot be read: {reason}") from None

    @classmethod
    def of_file(cls, path: str | Path, content: bytes) -> Program:
        """Makes a program of a file's content that has already been read."""
        try:
            return cls.parse(content.decode())
        except UnicodeDecodeError as error:
            raise PipelineError(f"{path}: cannot be read: {error}") from None
        except ProgramError as error:
            raise ProgramError(str(path), str(error)) from None

    @classmethod
    def parse(cls, text: str) -> Program:
        """Makes a program of JSON text. The same text gives the same object, which nobody
        changes."""
        return _parsed(text)

    def standard_field(self, name: str) -> tuple[Header, Field] | None:
        """Returns a field by the name that the target uses for it, such as
        "intrinsic_metadata.mcast_grp"."""
        if name in self.aliases:
            return self.aliases[name]
        header_name, field_name = name.rsplit(".", 1)
        header = self.headers.get(header_name)
        field = header.type.field(field_name) if header else None
        return (header, field) if header and field else None


@lru_cache(PROGRAMS_KEPT)
def _parsed(text: str) -> Program:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProgramError("", f"is not JSON: {error}") from None
    return read_program(Node(document))


def check_version(root: Node) -> None:
    meta = root.get("__meta__")
    version = meta.get("version") if meta else None
    if version is None:
        return
    major, minor = (n.integer(0, 2**31) for n in version.elements(2))
    if major != VERSION[0] or minor > VERSION[1]:
        raise version.error(f"must be {VERSION[0]}.0 to {VERSION[0]}.{VERSION[1]}")


def read_program(root: Node) -> Program:
    """Reads the whole document. Objects are read before those that refer to them."""
    root.members()
    check_version(root)
    scope = Scope()
    read_headers(root, scope)
    read_errors(root, scope)
    for node in root.list("extern_instances"):
        raise node.error("extern instances are not supported")
    read_arrays(root, scope)
    read_value_sets(root, scope)
    read_learn_lists(root, scope)
    read_calculations(root, scope)
    read_field_lists(root, scope)
    actions = read_actions(root, scope)
    tables: dict[str, Table] = {}
    controls: dict[str, Control] = {}
    for node in root.list("pipelines"):
        control = PipelineReader(scope, tables).read(node)
        claim(controls, node, control.name, control)
    name = root.get("program")
    program = Program(
        name=name.text() if name else "",
        tables=tables,
        actions=actions,
        profiles=scope.profiles,
        registers=scope.registers,
        counters=scope.counters,
        direct_counters=scope.direct_counters,
        meters=scope.meters,
        direct_meters=scope.direct_meters,
        learn_lists=list(scope.learn_lists.values()),
        value_sets=scope.value_sets,
        header_types=scope.header_types,
        headers=scope.headers,
        stacks=scope.stacks,
        unions=scope.unions,
        union_stacks=scope.union_stacks,
        aliases=scope.aliases,
        errors=scope.errors,
        parser=read_parser(the_one(root, "parsers", "parser"), scope),
        deparser=read_deparser(the_one(root, "deparsers", "deparser"), scope),
        ingress=needed(controls, root, "ingress"),
        egress=needed(controls, root, "egress"),
        calculations=scope.calculations,
        checksums=read_checksums(root, scope),
        field_lists=scope.field_lists,
    )
    check_standard_fields(program, root)
    check_memory(program, root)
    return program


def the_one(root: Node, key: str, name: str) -> Node:
    """Returns the element called `name` of the array `key`. The switch requires that there is
    one."""
    found = [n for n in root.list(key) if n["name"].text() == name]
    if len(found) != 1:
        raise Node(None, key).error(f"must have exactly one element called '{name}'")
    return found[0]


def needed(controls: dict[str, Control], root: Node, name: str) -> Control:
    if name not in controls:
        raise root["pipelines"].error(f"lacks the pipeline '{name}'")
    return controls[name]


def check_memory(program: Program, root: Node) -> None:
    """Refuses a program whose instances would allocate too much memory."""
    packet = sum(
        h.type.max_bits // 8 + FIELD_BYTES * len(h.type.fields) for h in program.headers.values()
    )
    if packet > MAX_HEADERS_BYTES:
        raise root["headers"].error(
            f"the headers have more than {MAX_HEADERS_BYTES} bytes together"
        )
    cells = sum(r.size * max(r.bytes, 8) for r in program.registers.values())
    cells += sum(c.size for c in program.counters.values()) * COUNTER_BYTES
    cells += sum(m.size for m in program.meters.values()) * METER_BYTES
    if cells > MAX_STATE_BYTES:
        raise root.error(
            f"registers, counters and meters have more than {MAX_STATE_BYTES >> 30} GiB together"
        )


def check_standard_fields(program: Program, root: Node) -> None:
    for name in REQUIRED_FIELDS:
        found = program.standard_field(f"standard_metadata.{name}")
        if found is None:
            raise root["headers"].error(f"lacks the field 'standard_metadata.{name}'")
        if found[1].wide:
            raise root["headers"].error(f"'standard_metadata.{name}' is wider than 64 bits")
