"""Lowers tables: keys, actions with their run-time data, entries, and the properties of v1model."""

from __future__ import annotations

from collections.abc import Sequence

from p4native.compiler import ast, types
from p4native.compiler.backend import arithmetic, ir
from p4native.compiler.backend.calls import Calls
from p4native.compiler.backend.control_names import given_name, key_name
from p4native.compiler.backend.effects import Effects, effects
from p4native.compiler.backend.expressions import Expressions
from p4native.compiler.backend.objects import (
    PROFILE_KINDS,
    bind_direct,
    counter_of,
    meter_of,
    position_of,
)
from p4native.compiler.backend.places import Value, is_scalar, is_signed, plain, scalar_width
from p4native.compiler.backend.scope import Frame, Scope, TableSite
from p4native.compiler.backend.storage import Unsupported
from p4native.compiler.typed import Instance, qualified

DEFAULT_SIZE = 1024
BMV2_KINDS = {
    "exact": "exact",
    "lpm": "lpm",
    "ternary": "ternary",
    "range": "range",
    "optional": "ternary",
}


class Tables:
    """A pipeline's tables and the actions that they call. Each table is built once, at its first
    application."""

    def __init__(
        self, scope: Scope, expressions: Expressions, calls: Calls, pipeline: ir.Pipeline
    ) -> None:
        self.scope = scope
        self.expressions = expressions
        self.calls = calls
        self.pipeline = pipeline
        self.building_action = False

    # -------------------------------------------------------------------- actions

    def action(
        self, control: Frame, declaration: ast.ActionDeclaration, reference: ast.ActionRef
    ) -> ir.Action:
        """Returns the action in the form in which a table calls it. Tables that list the same
        action share one object, unless the action list gives arguments."""
        bound = [a for a in self.scope.typed.actions[reference] if a.parameter.direction]
        owner = control.instance if self._is_local(control, declaration) else None
        key = (id(owner), declaration, control.block if owner is None else "")
        cache = self.scope.unit.program_actions
        if not bound and key in cache:
            return cache[key]
        action = self._build_action(control, declaration, bound)
        if not bound:
            cache[key] = action
        self.scope.unit.program.actions.append(action)
        return action

    def _is_local(self, control: Frame, declaration: ast.ActionDeclaration) -> bool:
        assert control.instance is not None
        block = control.instance.declaration
        return isinstance(block, ast.ControlDeclaration) and declaration in block.locals

    def action_name(self, control: Frame, declaration: ast.ActionDeclaration) -> str:
        if self._is_local(control, declaration):
            assert control.instance is not None
            return control.instance.name_of(declaration)
        return qualified("", declaration)

    def _build_action(
        self, control: Frame, declaration: ast.ActionDeclaration, bound: Sequence[object]
    ) -> ir.Action:
        name = self.action_name(control, declaration)
        self.scope.unit.control_plane_actions.setdefault(name, declaration)
        frame = Frame(
            control.instance,
            control.block,
            name,
            lexical=control,
            caller=control,
            bindings=control.bindings,
            in_action=True,
            called=declaration,
        )
        shape = self.scope.typed.type_of_declaration[declaration]
        assert isinstance(shape, types.Action)
        data = [p for p in shape.parameters if not p.direction]
        outer, self.scope.position = self.scope.position, declaration.position
        nested, self.building_action = self.building_action, True
        with self.scope.into([]) as body, self.scope.inside(control):
            reach = effects(self.scope.typed, declaration.body) if bound else Effects()
            self.calls.enter(frame, bound, reach)  # type: ignore[arg-type]
            for index, parameter in enumerate(data):
                assert parameter.declaration is not None
                frame.env[parameter.declaration] = self._data_place(index, parameter)
            self.calls.run_body(frame, declaration.body.statements)
        self.scope.position, self.building_action = outer, nested
        parameters = [(given_name(p.declaration), scalar_width(p.type)) for p in data]
        return ir.Action(name, parameters, [], declaration.position, body)

    def _data_place(self, index: int, parameter: types.ParameterType) -> Value:
        shape = parameter.type
        if not is_scalar(shape):
            assert parameter.declaration is not None
            raise Unsupported(
                parameter.declaration.position, f"an action parameter of type {shape}"
            )
        width = scalar_width(shape)
        expr: ir.Expr = ir.ActionData(index, width)
        if isinstance(plain(shape), types.Boolean):
            expr = arithmetic.as_boolean(expr)
        elif is_signed(shape):
            expr = arithmetic.wrap(expr, width, signed=True)
        return Value(shape, expr)

    # --------------------------------------------------------------------- tables

    def build_table(self, control: Frame, declaration: ast.TableDeclaration) -> ir.Table:
        assert control.instance is not None
        table = ir.Table(control.instance.name_of(declaration), declaration.position, [], [])
        outer, self.scope.position = self.scope.position, declaration.position
        with self.scope.inside(control):
            self._properties(table, declaration)
            for reference in declaration.actions:
                action = self.scope.typed.decl_of[reference]
                assert isinstance(action, ast.ActionDeclaration)
                table.actions.append(self.action(control, action, reference))
            self._default_action(control, table, declaration)
        self.scope.unit.tables.append(TableSite(table, declaration, table.size))
        self.scope.position = outer
        return table

    def add_entries(
        self, control: Frame, table: ir.Table, declaration: ast.TableDeclaration
    ) -> None:
        """Adds the constant entries. The keys must have been added before, because entries need
        their match kinds."""
        if "entries" not in declaration.written:
            return
        table.entries = []
        priorities = _priorities(self.scope, declaration)
        kinds = [k for k in declaration.keys if k.match_kind.name != "selector"]
        for entry, priority in zip(declaration.entries, priorities, strict=True):
            keysets = _keysets(entry.keyset, len(declaration.keys))
            keys = [
                self._entry_key(k, self.key_width(key.expression), key.match_kind.name)
                for k, key in zip(keysets, kinds, strict=False)
            ]
            declared = self.scope.typed.decl_of[entry.action]
            assert isinstance(declared, ast.ActionDeclaration)
            action = self._listed(control, table, declaration, declared, entry.action)
            arguments = self._data_arguments(entry.action)
            table.entries.append(ir.Entry(keys, action, arguments, priority, entry.position))
        table.size = max(1, len(table.entries))

    def key_width(self, expression: ast.Expression) -> int:
        return scalar_width(self.expressions.operand_type(expression))

    def _listed(
        self,
        control: Frame,
        table: ir.Table,
        declaration: ast.TableDeclaration,
        action: ast.ActionDeclaration,
        reference: ast.ActionRef,
    ) -> ir.Action:
        """Returns the action that an entry or a default action names. If the table's action list
        has the action, returns it in the form that the list has."""
        for listed, built in zip(declaration.actions, table.actions, strict=False):
            if self.scope.typed.decl_of[listed] is action:
                return built
        return self.action(control, action, reference)

    def _default_action(
        self, control: Frame, table: ir.Table, declaration: ast.TableDeclaration
    ) -> None:
        reference = declaration.default_action
        if reference is None:
            table.default_action = self._no_action(control, table)
            return
        declared = self.scope.typed.decl_of[reference]
        assert isinstance(declared, ast.ActionDeclaration)
        action = self._listed(control, table, declaration, declared, reference)
        if action not in table.actions:
            table.actions.append(action)
        table.default_action = action
        table.default_arguments = self._data_arguments(reference)
        if table.profile is not None:
            self.scope.unit.diagnostics.warning(
                declaration.position,
                f"the default action of {table.name} has no effect on BMv2: the table has an "
                "action profile",
                "the control plane gives it a default member or group",
                "unsupported",
            )
        table.default_constant = declaration.default_constant

    def _no_action(self, control: Frame, table: ir.Table) -> ir.Action:
        """Returns core.p4's NoAction, the default action of tables that name none (section
        14.2.1.3)."""
        for action in table.actions:
            if action.name == "NoAction":
                return action
        declared = next(
            (d for d in self.scope.typed.tree.declarations if d.name == "NoAction"), None
        )
        assert declared is None or isinstance(declared, ast.ActionDeclaration)
        key = (id(None), declared, control.block)
        cache = self.scope.unit.program_actions
        if key not in cache:
            cache[key] = ir.Action("NoAction", [], [], table.position)
            self.scope.unit.program.actions.append(cache[key])
            self.scope.unit.control_plane_actions.setdefault("NoAction", declared)
        table.actions.append(cache[key])
        return cache[key]

    def _data_arguments(self, reference: ast.ActionRef) -> list[int]:
        values: list[int] = []
        for bound in self.scope.typed.actions[reference]:
            if bound.parameter.direction:
                continue
            assert bound.value is not None
            data = arithmetic.as_data(self.expressions.value(bound.value))
            if not isinstance(data, ir.Const):
                raise self.scope.unsupported(bound.value, "an action argument that is not constant")
            values.append(data.value & arithmetic.mask(scalar_width(bound.parameter.type)))
        return values

    # ------------------------------------------------------------------------ keys

    def keys(self, declaration: ast.TableDeclaration, known: ir.Table | None) -> list[ir.Key]:
        """Returns the keys of one application of the table. A computed key is stored in a temporary
        before the application."""
        keys: list[ir.Key] = []
        for element in declaration.keys:
            if element.match_kind.name == "selector":
                continue
            kind = BMV2_KINDS.get(element.match_kind.name)
            if kind is None:
                raise self.scope.unsupported(element, f"the match kind {element.match_kind.name}")
            earlier = known.keys[len(keys)] if known is not None else None
            keys.append(self._key(element, kind, earlier))
        if sum(key.match_kind == "lpm" for key in keys) > 1:
            raise self.scope.unsupported(declaration, "a table with more than one lpm key")
        return keys

    def _key(self, element: ast.KeyElement, kind: str, known: ir.Key | None) -> ir.Key:
        shape = self.expressions.operand_type(element.expression)
        name = key_name(self.scope.typed, element)
        if not is_scalar(shape):
            raise self.scope.unsupported(element.expression, f"a key of type {shape}")
        expr = arithmetic.as_data(self.expressions.value(element.expression))
        if isinstance(expr, ir.FieldRef) and expr.width == scalar_width(shape):
            return ir.Key(kind, name, expr)
        if known is not None:
            self.scope.emit("assign", known.target, expr)
            return known
        bits = types.Bits(max(1, scalar_width(shape)))
        kept = self.expressions.keep(arithmetic.unsigned(expr, bits.width), bits)
        assert isinstance(kept, ir.FieldRef)
        return ir.Key(kind, name, kept)

    def _entry_key(self, keyset: ast.Expression, width: int, kind: str) -> tuple[str, int, int]:
        full = arithmetic.mask(width)
        if isinstance(keyset, ast.DefaultKeyset):
            wide = {"lpm": 0, "range": full}.get(kind, 0)
            if kind == "exact":
                raise self.scope.unsupported(keyset, "a don't-care entry of an exact key")
            return (BMV2_KINDS[kind], 0, wide)
        if isinstance(keyset, ast.Mask):
            value, mask = self._number(keyset.value, full), self._number(keyset.mask, full)
            if kind == "lpm":
                return ("lpm", value & mask, self._prefix_length(keyset, mask, width))
            return (BMV2_KINDS[kind], value & mask, mask)
        if isinstance(keyset, ast.Range):
            return ("range", self._number(keyset.low, full), self._number(keyset.high, full))
        value = self._number(keyset, full)
        other = {"lpm": width, "range": value}.get(kind, full)
        return (BMV2_KINDS[kind], value, other)

    def _prefix_length(self, keyset: ast.Expression, mask: int, width: int) -> int:
        length = mask.bit_count() if hasattr(mask, "bit_count") else bin(mask).count("1")
        if mask != arithmetic.mask(length) << (width - length):
            raise self.scope.unsupported(keyset, "an lpm entry whose mask is not a prefix")
        return length

    def _number(self, expression: ast.Expression, full: int) -> int:
        data = arithmetic.as_data(self.expressions.value(expression))
        if not isinstance(data, ir.Const):
            raise self.scope.unsupported(expression, "an entry that is not constant")
        return data.value & full

    # ------------------------------------------------------------------ properties

    def _properties(self, table: ir.Table, declaration: ast.TableDeclaration) -> None:
        table.size = DEFAULT_SIZE
        for entry in declaration.properties:
            handler = PROPERTIES.get(entry.name)
            if handler is not None:
                handler(self, table, declaration, entry)

    def _size(self, table: ir.Table, _: ast.TableDeclaration, entry: ast.TableProperty) -> None:
        size = self.scope.evaluated(entry.value)
        if not isinstance(size, int):
            raise self.scope.unsupported(entry.value, "a table size not known at compile time")
        table.size = size or DEFAULT_SIZE

    def _counters(self, table: ir.Table, _: ast.TableDeclaration, entry: ast.TableProperty) -> None:
        instance = self.property_instance(entry)
        array = counter_of(self.scope.unit, instance)
        bind_direct(array, table)
        table.counters = True

    def _meters(self, table: ir.Table, _: ast.TableDeclaration, entry: ast.TableProperty) -> None:
        array = meter_of(self.scope.unit, self.property_instance(entry))
        bind_direct(array, table)
        table.meter = array.name

    def _timeout(self, table: ir.Table, _: ast.TableDeclaration, entry: ast.TableProperty) -> None:
        table.support_timeout = self.scope.evaluated(entry.value) is True

    def _implementation(
        self, table: ir.Table, declaration: ast.TableDeclaration, entry: ast.TableProperty
    ) -> None:
        instance = self.property_instance(entry)
        kind = instance.declaration.name
        if kind not in PROFILE_KINDS:
            raise self.scope.unsupported(entry, f"an implementation by {kind}")
        known = self.scope.unit.profiles.get(id(instance))
        if known is None:
            known = self._profile(instance, kind, declaration)
            self.scope.unit.profiles[id(instance)] = known
            self.pipeline.profiles.append(known)
        table.profile = known

    def _profile(
        self, instance: Instance, kind: str, declaration: ast.TableDeclaration
    ) -> ir.ActionProfile:
        size = instance.arguments.get("size")
        selector = None
        if kind == "action_selector":
            algorithm = instance.arguments.get("algorithm")
            assert isinstance(algorithm, ast.EnumMember)
            selector = (algorithm.name, self._selector_input(declaration))
        assert isinstance(size, int)
        return ir.ActionProfile(instance.name, size, selector, position_of(instance))

    def _selector_input(self, declaration: ast.TableDeclaration) -> list[ir.Expr]:
        fields: list[ir.Expr] = []
        for element in declaration.keys:
            if element.match_kind.name == "selector":
                expr = arithmetic.as_data(self.expressions.value(element.expression))
                if not isinstance(expr, ir.FieldRef):
                    raise self.scope.unsupported(element, "a selector key that is not a field")
                fields.append(expr)
        return fields

    def property_instance(self, entry: ast.TableProperty) -> Instance:
        """Returns the object that a property names, or the one that the property constructs
        itself."""
        instance = self.scope.frame.instance
        if instance is not None and entry.value in instance.children:
            return instance.children[entry.value]
        return self.scope.instance_of(entry.value)


PROPERTIES = {
    "size": Tables._size,
    "counters": Tables._counters,
    "meters": Tables._meters,
    "support_timeout": Tables._timeout,
    "implementation": Tables._implementation,
}


def _keysets(keyset: ast.Expression, count: int) -> tuple[ast.Expression, ...]:
    if isinstance(keyset, ast.ListExpression):
        return keyset.elements
    if isinstance(keyset, ast.DefaultKeyset) and count > 1:
        return (keyset,) * count
    return (keyset,)


def _priorities(scope: Scope, declaration: ast.TableDeclaration) -> list[int]:
    """Returns BMv2's priorities of the entries, of which the smallest wins. Without written
    priorities they follow the order of the entries.

    `@priority(n)` is BMv2's priority itself. With `priority = n`, the largest number wins unless
    `largest_priority_wins` is false. Entries without one continue in steps of `priority_delta`
    (section 14.2.1.4).
    """
    annotated = [_priority_annotation(scope, e) for e in declaration.entries]
    if all(e.priority is None for e in declaration.entries):
        return [p if p is not None else i + 1 for i, p in enumerate(annotated)]
    wins = declaration.property("largest_priority_wins")
    largest = wins is None or scope.constant(wins.value) is not False
    delta = declaration.property("priority_delta")
    step = scope.constant(delta.value) if delta is not None else 1
    assert isinstance(step, int)
    written = _written_priorities(scope, declaration, -step if largest else step)
    if not largest:
        return written
    top = max(written)
    return [top - p + 1 for p in written]


def _written_priorities(scope: Scope, declaration: ast.TableDeclaration, step: int) -> list[int]:
    first = 1 if step > 0 else 1 - step * (len(declaration.entries) - 1)
    values: list[int] = []
    for entry in declaration.entries:
        if entry.priority is not None:
            value = scope.constant(entry.priority)
            assert isinstance(value, int)
            values.append(value)
        else:
            values.append(values[-1] + step if values else first)
        if values[-1] < 0:
            raise Unsupported(
                entry.position,
                f"an entry of priority {values[-1]}",
                "the first priority is too small for so many entries and priority_delta",
            )
    return values


def _priority_annotation(scope: Scope, entry: ast.TableEntry) -> int | None:
    for annotation in entry.annotations:
        if annotation.name == "priority" and annotation.arguments:
            given = annotation.arguments[0]
            if isinstance(given, ast.IntLiteral):
                return given.value
    return None
