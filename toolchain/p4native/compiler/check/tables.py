"""Checks tables (keys, actions, default action, entries and other properties), and keysets in
general."""

from __future__ import annotations

from p4native.compiler import ast, types
from p4native.compiler.check.arguments import ArgumentChecker, pair
from p4native.compiler.check.calls import CallChecker
from p4native.compiler.check.coerce import Coercion
from p4native.compiler.check.context import Context, Frame, did_you_mean
from p4native.compiler.check.entries import check_order
from p4native.compiler.check.equality import same_expression
from p4native.compiler.check.hints import of_call
from p4native.compiler.check.typerefs import TypeResolver
from p4native.compiler.typed import BoundArgument, TypedProgram, Value

_KEY_TYPES = (
    types.Bits,
    types.Boolean,
    types.Enum,
    types.SerializableEnum,
    types.Error,
    types.NewType,
    types.Varbit,
)


# Of the language (largest_priority_wins, priority_delta, size) and of v1model.
KNOWN_PROPERTIES = {
    "counters",
    "implementation",
    "largest_priority_wins",
    "meters",
    "priority_delta",
    "size",
    "support_timeout",
}


class TableChecker:
    """The part that checks tables with their keys, actions, entries and other properties, and
    keysets."""

    def __init__(
        self,
        context: Context,
        resolver: TypeResolver,
        coercion: Coercion,
        arguments: ArgumentChecker,
        calls: CallChecker,
    ) -> None:
        self.context = context
        self.resolver = resolver
        self.coercion = coercion
        self.arguments = arguments
        self.calls = calls

    def check_table(self, node: ast.TableDeclaration) -> None:
        with self.context.code(Frame("table", table=node)):
            keys = tuple(self._key(k) for k in node.keys)
            if "actions" not in node.written:
                self.context.error(node, f"table '{node.name}' has no actions")
            self._action_list(node)
            self._default_action(node)
            for entry in node.entries:
                self._entry(node, entry, keys)
            self._priorities(node)
            self._check_duplicates(node)
            for property_ in node.properties:
                self._property(property_)
            check_order(self.context, node)
            self._check_size(node)
        if node.entries and not node.keys:
            self.context.error(node, f"table '{node.name}' has entries, but no key")
        self.context.record(node, types.Table(node))
        self.context.declare(node)

    def _key(self, node: ast.KeyElement) -> types.Type:
        type_ = self.context.check(node.expression)
        kind = self.context.program.match_kinds.get(node.match_kind.name)
        if kind is None:
            known = "there are " + ", ".join(self.context.program.match_kinds)
            self.context.error(
                node.match_kind, f"match kind '{node.match_kind.name}' is not declared", known
            )
        else:
            self.context.program.decl_of[node.match_kind] = kind
            self.context.program.type_of[node.match_kind] = types.MATCH_KIND
        if isinstance(type_, types.Unknown):
            return type_
        if isinstance(type_, types.Integer):
            return self.context.error(
                node.expression, "a key needs a width", "write 8w1, 32w1, ..."
            )
        if not isinstance(type_, _KEY_TYPES):
            return self.context.error(node.expression, f"a key cannot have type {type_}")
        self._key_name(node)
        if node.expression in self.context.program.const_value:
            hint = "remove it from the key"
            self.context.warn(
                node.expression, "mismatch", "this key is the same for all packets", hint
            )
        return type_

    def _key_name(self, node: ast.KeyElement) -> None:
        named = any(a.name == "name" for a in node.annotations)
        if not named and not _nameable(node.expression, self.context.program):
            self.context.error(
                node.expression,
                "the control plane has no name for this key",
                'give it one: ... : exact @name("x");',
            )

    # ---- actions

    def _action_list(self, node: ast.TableDeclaration) -> None:
        seen: dict[ast.Declaration, ast.ActionRef] = {}
        for reference in node.actions:
            action = self._resolve_action(reference)
            if action is None:
                continue
            if action in seen:
                self.context.error(reference, f"action '{reference.name}' is listed twice")
                continue
            seen[action] = reference
            directed = tuple(p for p in self._parameters(action) if p.direction)
            arguments = reference.arguments or ()
            self._bind_action(reference, directed, arguments)

    def _resolve_action(self, reference: ast.ActionRef) -> ast.ActionDeclaration | None:
        entry = self.context.lookup(reference.name, reference.absolute)
        if not isinstance(entry, ast.ActionDeclaration):
            problem = "is not declared" if entry is None else "is not an action"
            hint = self.context.suggest(reference.name) if entry is None else ""
            self.context.error(reference, f"action '{reference.name}' {problem}", hint)
            return None
        self.context.program.decl_of[reference] = entry
        self.calls.warn_deprecated(reference, entry)
        return entry

    def _parameters(self, action: ast.ActionDeclaration) -> tuple[types.ParameterType, ...]:
        type_ = self.context.program.type_of_declaration.get(action)
        return type_.parameters if isinstance(type_, types.Action) else ()

    def _bind_action(
        self,
        reference: ast.ActionRef,
        parameters: tuple[types.ParameterType, ...],
        arguments: tuple[ast.Argument, ...],
    ) -> tuple[BoundArgument, ...] | None:
        paired = pair(parameters, arguments)
        if isinstance(paired, str):
            self.arguments.check_loose(arguments)
            hint = of_call("", reference.name, parameters, arguments)
            self.context.error(reference, f"action '{reference.name}': {paired}", hint)
            return None
        self.calls.match_plain(paired)
        bound = self.arguments.bind_arguments(paired, {}, constant=True)
        self.context.program.actions[reference] = bound
        return bound

    def _listed(self, node: ast.TableDeclaration, reference: ast.ActionRef) -> ast.ActionRef | None:
        """Returns the entry of the table's action list that has the action of `reference`, after
        binding the arguments of `reference`. Returns None after an error."""
        action = self._resolve_action(reference)
        if action is None:
            return None
        for listed in node.actions:
            if self.context.program.decl_of.get(listed) is action:
                self._bind_action(reference, self._parameters(action), reference.arguments or ())
                self._check_repeated(reference, listed)
                return listed
        self.context.error(
            reference, f"'{reference.name}' is not in the actions of table '{node.name}'"
        )
        return None

    def _check_repeated(self, reference: ast.ActionRef, listed: ast.ActionRef) -> None:
        """Checks that `reference` gives parameters with a direction the same arguments as the
        action list."""
        given = {b.parameter.name: b.value for b in self.context.program.actions.get(reference, ())}
        for bound in self.context.program.actions.get(listed, ()):
            name = bound.parameter.name
            if name in given and not same_expression(
                bound.value, given[name], self.context.program
            ):
                self.context.error(
                    given[name] or reference,
                    f"argument '{name}' differs from that in the table's actions",
                )

    def _default_action(self, node: ast.TableDeclaration) -> None:
        if node.default_action is None:
            self._check_no_action()
            return
        listed = self._listed(node, node.default_action)
        if listed is not None and any(a.name == "tableonly" for a in listed.annotations):
            self.context.error(
                node.default_action, "an action marked @tableonly cannot be the default action"
            )

    def _check_no_action(self) -> None:
        """Checks NoAction, the default action of tables that name none, where the program itself
        declares it."""
        entry = self.context.lookup("NoAction", absolute=True)
        declared = entry[0] if isinstance(entry, list) else entry
        if declared is None or (
            isinstance(declared, ast.ActionDeclaration) and not declared.parameters
        ):
            return
        self.context.error(
            declared,
            "tables without default action need NoAction to be an action without parameters",
            "give this another name, or every table a default action",
        )

    # ---- entries

    def _entry(
        self, table: ast.TableDeclaration, node: ast.TableEntry, keys: tuple[types.Type, ...]
    ) -> None:
        self._priority(table, node)
        kinds = [k.match_kind.name for k in table.keys]
        for keyset, key, kind in self._split(node.keyset, keys, kinds):
            self.check_keyset(keyset, key)
            self._kind_of_keyset(keyset, kind)
        listed = self._listed(table, node.action)
        if listed is not None and any(a.name == "defaultonly" for a in listed.annotations):
            self.context.error(
                node.action, "an action marked @defaultonly cannot be used in an entry"
            )

    def _priorities(self, node: ast.TableDeclaration) -> None:
        """Checks which entries have priorities. In tables that match only exactly or by prefix, no
        entry may have one. In other tables, the first entry must have one if any has (P4_16 section
        14.2.1.4)."""
        given = [e for e in node.entries if e.priority is not None]
        if not given or node.entries_constant:
            return
        kinds = {k.match_kind.name for k in node.keys}
        if kinds <= {"exact", "lpm"}:
            place = given[0].priority or given[0]
            self.context.error(place, f"table '{node.name}' has no priorities: no key needs one")
        elif node.entries[0].priority is None:
            self.context.error(
                node.entries[0], "the first entry needs a priority, because another entry has one"
            )

    def _check_duplicates(self, node: ast.TableDeclaration) -> None:
        """Reports const entries with the same key in a table that only matches exactly."""
        if not node.entries_constant or any(k.match_kind.name != "exact" for k in node.keys):
            return
        seen: dict[tuple[Value | None, ...], ast.TableEntry] = {}
        for entry in node.entries:
            written = entry.keyset
            parts = written.elements if isinstance(written, ast.ListExpression) else (written,)
            values = tuple(self.context.program.const_value.get(part) for part in parts)
            if None not in values and values in seen:
                first = seen[values].keyset.position
                self.context.error(written, f"this key already has an entry, at {first}")
            seen.setdefault(values, entry)

    def _priority(self, table: ast.TableDeclaration, node: ast.TableEntry) -> None:
        if node.constant and table.entries_constant:
            self.context.warn(
                node, "mismatch", "'const' has no effect here, because all entries are const"
            )
        if node.priority is None:
            return
        self.resolver.constant_integer(node.priority, "an entry's priority")
        if table.entries_constant:
            self.context.error(
                node.priority, "const entries cannot have priorities: their order decides"
            )

    def _split(
        self, keyset: ast.Expression, keys: tuple[types.Type, ...], kinds: list[str]
    ) -> list[tuple[ast.Expression, types.Type, str]]:
        """Returns (keyset, type, match kind) for each key of an entry. Returns an empty list for a
        single `_` and after an error."""
        parts = keyset.elements if isinstance(keyset, ast.ListExpression) else (keyset,)
        if len(parts) == len(keys):
            return list(zip(parts, keys, kinds, strict=True))
        if isinstance(keyset, ast.DefaultKeyset):
            self.context.program.type_of[keyset] = types.Set(types.DONT_CARE)
            return []
        for part in parts:
            self.context.check(part)
        if keys:
            self.context.error(keyset, f"{len(parts)} keys given, but the table has {len(keys)}")
        return []

    def _kind_of_keyset(self, keyset: ast.Expression, kind: str) -> None:
        problem = ""
        if isinstance(keyset, ast.Mask) and kind in ("exact", "range", "optional"):
            problem = "a mask (&&&)"
        elif isinstance(keyset, ast.Range) and kind in ("exact", "lpm", "ternary", "optional"):
            problem = "a range (..)"
        elif isinstance(keyset, ast.DefaultKeyset) and kind == "exact":
            problem = "'_'"
        if problem:
            self.context.error(keyset, f"{problem} does not fit a key matched by {kind}")
        if isinstance(keyset, ast.Mask) and kind == "lpm":
            self._check_prefix(keyset)

    def _check_prefix(self, keyset: ast.Mask) -> None:
        mask = self.context.program.const_value.get(keyset.mask)
        type_ = self.context.program.type_of.get(keyset.mask)
        if not isinstance(mask, int) or not isinstance(type_, types.Bits):
            return
        inverted = ~mask & ((1 << type_.width) - 1)
        if inverted & (inverted + 1):
            self.context.error(keyset.mask, f"mask {mask:#x} of an lpm key is not a prefix")

    def check_keyset(self, keyset: ast.Expression, key: types.Type) -> None:
        """Checks one keyset against the type of its key."""
        type_ = self.context.check(keyset, key)
        if isinstance(type_, types.Unknown) or isinstance(key, types.Unknown):
            return
        if isinstance(type_, types.Set):
            self._check_set(keyset, type_, key)
            self._check_known_parts(keyset)
            return
        if isinstance(keyset, ast.Call):
            self.context.error(
                keyset, "a call cannot be a key", "put its result into a variable first"
            )
            return
        fine = self.coercion.coerce(keyset, key, "the key")
        if fine and self.context.frame.kind == "table" and not self.context.known(keyset):
            self.context.error(keyset, "an entry's key must be known at compile time")

    def _check_set(self, keyset: ast.Expression, type_: types.Set, key: types.Type) -> None:
        parts: tuple[ast.Expression, ...] = ()
        if isinstance(keyset, ast.Range):
            parts = (keyset.low, keyset.high)
        elif isinstance(keyset, ast.Mask):
            parts = (keyset.value, keyset.mask)
        elif isinstance(type_.element, types.DontCare) or type_.element == key:
            return
        if isinstance(key, types.SerializableEnum):
            key = key.underlying
        if not parts or isinstance(key, (types.Boolean, types.Enum, types.Error)):
            self.context.error(keyset, f"the key has type {key}, but this is {type_}")
            return
        if all(self.coercion.coerce(p, key, "the key") for p in parts):
            self.context.program.type_of[keyset] = types.Set(key)
            self._check_range_order(keyset)

    def _check_known_parts(self, keyset: ast.Expression) -> None:
        if isinstance(keyset, (ast.Range, ast.Mask)) and self.context.frame.kind == "state":
            for part in ast.children(keyset):
                assert isinstance(part, ast.Expression)
                if not self.context.known(part):
                    self.context.error(
                        part, "the parts of a range or a mask must be known at compile time"
                    )

    def _check_range_order(self, keyset: ast.Expression) -> None:
        if isinstance(keyset, ast.Range):
            low = self.context.program.const_value.get(keyset.low)
            high = self.context.program.const_value.get(keyset.high)
            if isinstance(low, int) and isinstance(high, int) and low > high:
                self.context.warn(keyset, "invalid", f"range {low}..{high} is empty")

    # ---- other properties

    def _property(self, node: ast.TableProperty) -> None:
        type_ = self.context.check(node.value)
        if node.name not in KNOWN_PROPERTIES:
            hint = did_you_mean(node.name, KNOWN_PROPERTIES)
            self.context.warn(
                node, "ignore-prop", f"unknown table property '{node.name}', which is ignored", hint
            )
        if node.name in ("size", "priority_delta"):
            self._number_property(node, type_)
        elif node.name == "largest_priority_wins" and not isinstance(
            type_, (types.Boolean, types.Unknown)
        ):
            self.context.error(node.value, f"'{node.name}' must be bool, not {type_}")

    def _check_size(self, node: ast.TableDeclaration) -> None:
        size = node.property("size")
        if size is None:
            return
        reason = "" if node.keys else "no key"
        if node.keys and node.entries_constant:
            reason = "only const entries"
        if reason:
            message = f"the size of table '{node.name}' has no effect: it has {reason}"
            self.context.warn(node, "mismatch", message, "remove it")

    def _number_property(self, node: ast.TableProperty, type_: types.Type) -> None:
        if isinstance(type_, types.Unknown):
            return
        if not isinstance(type_, (types.Bits, types.Integer)):
            self.context.error(node.value, f"'{node.name}' must be a number, not {type_}")
            return
        value = self.context.program.const_value.get(node.value)
        if value is None and not self.context.known(node.value):
            self.context.error(node.value, f"'{node.name}' must be known at compile time")
        lowest = 1 if node.name == "priority_delta" else 0
        if isinstance(value, int) and value < lowest:
            self.context.error(node.value, f"'{node.name}' must be at least {lowest}")


def _nameable(node: ast.Expression, program: TypedProgram) -> bool:
    """Whether the control plane's name of a key can be derived from the expression."""
    constants = program.const_value
    while True:
        if isinstance(node, ast.NameExpression):
            return True
        if isinstance(node, ast.Member):
            node = node.base
        elif isinstance(node, ast.Call) and isinstance(node.callee, ast.Member):
            if node.callee.member != "isValid":
                return False
            node = node.callee.base
        elif isinstance(node, (ast.Index, ast.Slice)):
            node = node.base
        elif isinstance(node, ast.Binary) and node.operator == "&":
            node = node.left if node.right in constants else node.right
        else:
            return node in constants or isinstance(node, ast.TypeExpression)
