"""Writes P4Info, which describes a program to its control plane (P4Runtime specification section
6)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from p4native.common.p4info_messages import new_message
from p4native.compiler import ast, types
from p4native.compiler.backend import ir
from p4native.compiler.backend.control_names import given_name, key_name
from p4native.compiler.backend.lower import Compilation
from p4native.compiler.backend.p4info_annotations import annotate, document, string_pairs
from p4native.compiler.backend.p4info_ids import Symbols, member_numbers, written_id
from p4native.compiler.backend.p4info_order import in_order, visible
from p4native.compiler.backend.p4info_types import TypeSpecs, bitwidth
from p4native.compiler.backend.places import leaf_fields
from p4native.compiler.backend.scope import TableSite, ValueSetSite
from p4native.compiler.backend.storage import Unsupported
from p4native.compiler.source import Position
from p4native.compiler.typed import Instance, TypedProgram

Message = Any
MATCH_KINDS = {"exact": 2, "lpm": 3, "ternary": 4, "range": 5, "optional": 6}
TABLE_ONLY, DEFAULT_ONLY = 1, 2
NOTIFY_CONTROL = 1
PACKAGE_FIELDS = frozenset({"name", "version", "organization", "contact", "url", "arch"})
UNITS = {"bytes": 1, "packets": 2, "packets_and_bytes": 3}
PACKAGE_ANNOTATIONS = frozenset({"pkginfo", "platform_property"})
PROFILE_ANNOTATIONS = frozenset({"max_group_size", "selector_size_semantics", "max_member_weight"})


def p4info(typed: TypedProgram, work: Compilation) -> Message:
    """Returns the P4Info message. What the message cannot express is reported in the unit's
    diagnostics."""
    builder = Builder(typed, work)
    try:
        builder.build()
    except Unsupported as problem:
        work.unit.report(problem)
    return builder.info


class Builder:
    def __init__(self, typed: TypedProgram, work: Compilation) -> None:
        self.typed = typed
        self.unit = work.unit
        self.info = new_message("P4Info")
        self.symbols = Symbols()
        self.specs = TypeSpecs(self.info, typed)
        self.tables, self.actions = in_order(typed, work.unit)

    def build(self) -> None:
        self.info.pkg_info.arch = "v1model"
        self._package()
        self._name_everything()
        self.symbols.number_all()
        for site in self.tables:
            self._table(site)
        for name, declaration in self.actions.items():
            self._action(name, declaration)
        for instance in self.unit.externs:
            self._extern(instance)
        for header in filter(visible, self._controller_headers()):
            self._controller_header(header)
        for values in self.unit.value_sets:
            self._value_set(values)
        for name, shape in self.unit.digests.items():
            self._digest(name, shape)

    # ------------------------------------------------------------------- names

    def _name_everything(self) -> None:
        for site in self.unit.tables:
            self.symbols.add("table", site.table.name, site.declaration)
        for name, declaration in self.unit.control_plane_actions.items():
            self.symbols.add("action", name, declaration)
        for instance in self.unit.externs:
            node = instance.node if isinstance(instance.node, ast.Declaration) else None
            self.symbols.add(_extern_kind(instance), instance.name, node)
        for header in self._controller_headers():
            self.symbols.add("controller_header", header.name, header)
        for values in self.unit.value_sets:
            self.symbols.add("value_set", values.name, values.declaration)
        for name in self.unit.digests:
            self.symbols.add("digest", name, None)

    def _controller_headers(self) -> list[ast.StructDeclaration]:
        return [
            d
            for d in self.typed.tree.declarations
            if isinstance(d, ast.StructDeclaration) and d.annotation("controller_header")
        ]

    def _package(self) -> None:
        """Fills in the package's description from `@pkginfo(...)`, `@brief` and `@description` on
        main."""
        node = self.typed.main.node if self.typed.main is not None else None
        annotations = getattr(node, "annotations", ())
        annotate(self.typed, self.info.pkg_info, annotations, PACKAGE_ANNOTATIONS)
        document(self.info.pkg_info, annotations)
        for annotation in annotations:
            if annotation.name == "pkginfo":
                for key, value in string_pairs(annotation):
                    if key in PACKAGE_FIELDS:
                        setattr(self.info.pkg_info, key, value)

    def _preamble(
        self,
        message: Message,
        kind: str,
        name: str,
        annotations: Iterable[ast.Annotation],
        hidden: frozenset[str] = frozenset(),
    ) -> None:
        preamble = message.preamble
        preamble.id = self.symbols.number(kind, name)
        preamble.name = name
        preamble.alias = self.symbols.alias(name)
        annotate(self.typed, preamble, annotations, hidden)
        document(preamble, annotations)

    # ------------------------------------------------------------------ tables

    def _table(self, site: TableSite) -> None:
        table, declaration = site.table, site.declaration
        message = self.info.tables.add()
        self.specs.announce()
        self._preamble(message, "table", table.name, declaration.annotations)
        self._match_fields(message, site)
        self._action_refs(message, site)
        self._default_action(message, site)
        message.size = site.size
        if table.profile is not None:
            message.implementation_id = self.symbols.number("action_profile", table.profile.name)
        attached = [
            (_extern_kind(instance), instance.name)
            for instance in self.unit.externs
            if (array := self.unit.arrays.get(id(instance))) and array.table == table.name
        ]
        for kind, name in sorted(attached):
            message.direct_resource_ids.append(self.symbols.number(kind, name))
        if table.support_timeout:
            message.idle_timeout_behavior = NOTIFY_CONTROL
        if table.entries is not None and declaration.entries_constant:
            message.is_const_table = True
        if table.entries and hasattr(message, "has_initial_entries"):
            message.has_initial_entries = True

    def _match_fields(self, message: Message, site: TableSite) -> None:
        keys = site.declaration.keys
        numbers = member_numbers([written_id(k) for k in keys])
        for number, key in zip(numbers, keys, strict=True):
            if key.match_kind.name == "selector":
                continue
            field = message.match_fields.add()
            field.id = number
            field.name = key_name(self.typed, key)
            annotate(self.typed, field, key.annotations)
            document(field, key.annotations)
            shape = self.typed.type_of[key.expression]
            if not isinstance(shape, types.Error):
                field.bitwidth = _key_width(shape)
            field.match_type = MATCH_KINDS[key.match_kind.name]
            self._name_type(field, shape, key.position)

    def _action_refs(self, message: Message, site: TableSite) -> None:
        listed = site.declaration.actions
        for index, action in enumerate(site.table.actions):
            entry = message.action_refs.add()
            entry.id = self.symbols.number("action", action.name)
            if index >= len(listed):
                entry.annotations.append("@defaultonly")
                entry.scope = DEFAULT_ONLY
                continue
            annotations = listed[index].annotations
            annotate(self.typed, entry, annotations)
            names = {a.name for a in annotations}
            if "tableonly" in names:
                entry.scope = TABLE_ONLY
            elif "defaultonly" in names:
                entry.scope = DEFAULT_ONLY

    def _default_action(self, message: Message, site: TableSite) -> None:
        action = site.table.default_action
        assert action is not None
        number = self.symbols.number("action", action.name)
        if site.table.default_constant:
            message.const_default_action_id = number
        initial = message.initial_default_action
        initial.action_id = number
        numbers = self._parameter_numbers(action.name)
        values = zip(numbers, site.table.default_arguments, action.parameters, strict=False)
        for parameter, value, (_, width) in values:
            argument = initial.arguments.add()
            argument.param_id = parameter
            argument.value = value.to_bytes(max(1, (width + 7) // 8), "big")

    def _parameter_numbers(self, name: str) -> list[int]:
        declaration = self.unit.control_plane_actions.get(name)
        parameters = declaration.parameters if declaration is not None else ()
        return member_numbers([written_id(p) for p in parameters if not p.direction])

    def _name_type(self, message: Message, shape: types.Type, where: Position) -> None:
        """Names a key's or parameter's user-defined type and describes it in type_info."""
        self.specs.announce()
        if isinstance(shape, types.NewType):
            message.type_name.name = self.specs.new_type(shape, where)
        elif isinstance(shape, types.SerializableEnum):
            self.specs.serializable_enum(shape)
        elif isinstance(shape, types.Error):
            self.specs.errors()

    # ----------------------------------------------------------------- actions

    def _action(self, name: str, declaration: ast.ActionDeclaration | None) -> None:
        message = self.info.actions.add()
        annotations = declaration.annotations if declaration is not None else ()
        self._preamble(message, "action", name, annotations)
        in_tables = any(name == a.name for site in self.unit.tables for a in site.table.actions)
        if declaration is None or not in_tables:
            return
        shape = self.typed.type_of_declaration[declaration]
        assert isinstance(shape, types.Action)
        data = [p for p in shape.parameters if not p.direction]
        numbers = self._parameter_numbers(name)
        for number, parameter in zip(numbers, data, strict=True):
            self._parameter(message.params.add(), number, parameter)

    def _parameter(self, message: Message, number: int, parameter: types.ParameterType) -> None:
        declaration = parameter.declaration
        assert declaration is not None
        message.id = number
        message.name = given_name(declaration)
        annotate(self.typed, message, declaration.annotations)
        document(message, declaration.annotations)
        shape = parameter.type
        message.bitwidth = bitwidth(shape)
        self._name_type(message, shape, declaration.position)
        if isinstance(shape, types.Enum):
            message.type_name.name = shape.declaration.name

    # ----------------------------------------------------------------- externs

    def _extern(self, instance: Instance) -> None:
        kind = _extern_kind(instance)
        if kind.startswith("direct") and self.unit.arrays[id(instance)].table is None:
            return
        message = {
            "counter": self.info.counters,
            "direct_counter": self.info.direct_counters,
            "meter": self.info.meters,
            "direct_meter": self.info.direct_meters,
            "register": self.info.registers,
            "action_profile": self.info.action_profiles,
        }[kind].add()
        annotations = getattr(instance.node, "annotations", ())
        if kind == "action_profile":
            self._profile(message, instance, annotations)
            return
        self._preamble(message, kind, instance.name, annotations)
        array = self.unit.arrays[id(instance)]
        if kind.endswith(("counter", "meter")):
            message.spec.unit = UNITS[array.unit] if "counter" in kind else _meter_unit(array)
        if array.table is not None:
            message.direct_table_id = self.symbols.number("table", array.table)
            return
        message.size = array.size
        self._index_type(message, instance)
        if kind == "register":
            assert isinstance(instance.type, types.Extern)
            spec = self.specs.spec(instance.type.arguments[0], array.position)
            message.type_spec.CopyFrom(spec)

    def _index_type(self, message: Message, instance: Instance) -> None:
        self.specs.announce()
        assert isinstance(instance.type, types.Extern)
        for argument in instance.type.arguments[int(instance.declaration.name == "register") :]:
            if isinstance(argument, types.NewType) and instance.node is not None:
                name = self.specs.new_type(argument, instance.node.position)
                message.index_type_name.name = name

    def _profile(
        self, message: Message, instance: Instance, annotations: Iterable[ast.Annotation]
    ) -> None:
        name = instance.name
        self._preamble(message, "action_profile", name, annotations, PROFILE_ANNOTATIONS)
        for table in sorted((site.table for site in self.tables), key=lambda t: t.name):
            if table.profile is not None and table.profile.name == name:
                message.table_ids.append(self.symbols.number("table", table.name))
        size = instance.arguments.get("size")
        assert isinstance(size, int)
        message.size = size
        message.with_selector = instance.declaration.name == "action_selector"
        if not message.with_selector:
            return
        for annotation in annotations:
            given = annotation.arguments[0] if annotation.arguments else None
            if annotation.name == "max_group_size" and isinstance(given, ast.IntLiteral):
                message.max_group_size = given.value
            elif annotation.name == "max_member_weight" and isinstance(given, ast.IntLiteral):
                message.sum_of_members.max_member_weight = given.value
            elif annotation.name == "selector_size_semantics":
                assert isinstance(given, ast.StringLiteral)
                getattr(message, given.value.lower()).SetInParent()

    # -------------------------------------------------------------- the others

    def _controller_header(self, header: ast.StructDeclaration) -> None:
        annotation = header.annotation("controller_header")
        assert annotation is not None
        given = annotation.arguments[0]
        assert isinstance(given, ast.StringLiteral)
        message = self.info.controller_packet_metadata.add()
        message.preamble.id = self.symbols.number("controller_header", header.name)
        message.preamble.name = message.preamble.alias = given.value
        annotate(self.typed, message.preamble, header.annotations)
        shape = self.typed.type_of_declaration[header]
        assert isinstance(shape, types.Header)
        fields = list(leaf_fields(shape))
        numbers = member_numbers([written_id(f.declaration) for _, f in fields])
        for number, (name, field) in zip(numbers, fields, strict=True):
            assert field.declaration is not None
            if not visible(field.declaration):
                continue
            entry = message.metadata.add()
            entry.id, entry.name = number, name
            annotate(self.typed, entry, field.declaration.annotations)
            entry.bitwidth = bitwidth(field.type)
            self._name_type(entry, field.type, field.declaration.position)

    def _value_set(self, site: ValueSetSite) -> None:
        message = self.info.value_sets.add()
        self._preamble(message, "value_set", site.name, site.declaration.annotations)
        message.size = site.size
        if not isinstance(site.element, types.Struct):
            match = message.match.add()
            match.id, match.bitwidth = 1, types.width_bits(site.element) or 0
            match.match_type = MATCH_KINDS["exact"]
            return
        fields = site.element.fields
        numbers = member_numbers([written_id(f.declaration) for f in fields])
        for number, field in zip(numbers, fields, strict=True):
            match = message.match.add()
            match.id, match.name = number, given_name(field.declaration, field.name)
            match.bitwidth = types.width_bits(field.type) or 0
            match.match_type = MATCH_KINDS[_match_annotation(field)]

    def _digest(self, name: str, shape: types.Type) -> None:
        message = self.info.digests.add()
        self._preamble(message, "digest", name, ())
        where = self.unit.program.learn_lists[0].position
        message.type_spec.CopyFrom(self.specs.spec(shape, where))


def _extern_kind(instance: Instance) -> str:
    kind = instance.declaration.name
    return "action_profile" if kind == "action_selector" else kind


def _match_annotation(field: types.Field) -> str:
    """Returns the kind that `@match(kind)` gives to a field of a value set's struct, by default
    "exact"."""
    annotation = field.declaration.annotation("match") if field.declaration else None
    return annotation.text[0] if annotation and annotation.text else "exact"


def _meter_unit(array: ir.Array) -> int:
    return {"bytes": 1, "packets": 2}[array.unit]


def _key_width(shape: types.Type) -> int:
    if isinstance(shape, types.Enum):
        return 32
    return bitwidth(shape)
