"""Checks expressions of every kind. Names, literals, lists, constructor calls and keysets are
checked in this module, and the others by other parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from p4native.compiler import ast, types
from p4native.compiler.check.arguments import ArgumentChecker
from p4native.compiler.check.calls import CallChecker
from p4native.compiler.check.coerce import Coercion
from p4native.compiler.check.context import Context
from p4native.compiler.check.hints import FOREIGN_NAMES, of_packet
from p4native.compiler.check.members import MemberChecker
from p4native.compiler.check.operators import OperatorChecker
from p4native.compiler.check.typerefs import MAX_WIDTH_BITS, TypeResolver, type_parameters
from p4native.compiler.fold import fits, wrap
from p4native.compiler.typed import ConstructionInfo


class ExpressionChecker:
    """The part that finds the type of every kind of expression, with the help of the other
    parts."""

    def __init__(
        self,
        context: Context,
        resolver: TypeResolver,
        coercion: Coercion,
        operators: OperatorChecker,
        members: MemberChecker,
        arguments: ArgumentChecker,
        calls: CallChecker,
    ) -> None:
        self.context = context
        self.resolver = resolver
        self.coercion = coercion
        self.operators = operators
        self.arguments = arguments
        self._checks: dict[type, Callable[[Any, types.Type | None], types.Type]] = {
            ast.IntLiteral: self.check_integer,
            ast.BoolLiteral: self.check_boolean,
            ast.StringLiteral: self.check_string,
            ast.NameExpression: self.check_name,
            ast.TypeExpression: self.check_type_expression,
            ast.ThisExpression: self.check_this,
            ast.Member: members.check_member,
            ast.Index: members.check_index,
            ast.Slice: operators.check_slice,
            ast.PlusSlice: operators.check_plus_slice,
            ast.Call: calls.check_call,
            ast.ConstructorCall: self.check_constructor_call,
            ast.Unary: operators.check_unary,
            ast.Binary: operators.check_binary,
            ast.Cast: operators.check_cast,
            ast.Conditional: operators.check_conditional,
            ast.ListExpression: self.check_list,
            ast.StructExpression: self.check_struct,
            ast.InvalidHeader: self.check_invalid,
            ast.DefaultInitializer: self.check_default,
            ast.Range: self.check_range,
            ast.Mask: self.check_mask,
            ast.DefaultKeyset: self.check_default_keyset,
        }
        context.check = self.check

    def check(self, expression: ast.Expression, expected: types.Type | None = None) -> types.Type:
        """Returns the type of an expression and records it in type_of. The type is Unknown after an
        error.

        expected: the type that the surroundings need, which is only a hint for literals and
        inference.
        """
        result = self._checks[type(expression)](expression, expected)
        self.context.program.type_of[expression] = result
        return result

    # ---- names

    def check_name(self, node: ast.NameExpression, expected: types.Type | None) -> types.Type:
        entry = self.context.lookup(node.name, node.absolute)
        if self.context.frame.table is not None and self.context.frame.table.name == node.name:
            return self.context.error(
                node, f"'{node.name}' means the table itself here", "rename one of them"
            )
        if entry is None:
            hint = FOREIGN_NAMES.get(node.name) or self.context.suggest_value(node.name)
            hint = hint or of_packet(node.name)
            return self.context.error(node, f"'{node.name}' is not declared", hint)
        if isinstance(entry, list):
            found = tuple(
                t
                for f in entry
                if isinstance(t := self.context.program.type_of_declaration.get(f), types.Function)
            )
            return types.Overloads(found)
        self.context.program.decl_of[node] = entry
        if (named := self.resolver.declared_type(entry)) is not None:
            return types.TypeName(named)
        if isinstance(entry, ast.EnumMember):
            self.context.set_constant(node, entry)
        if isinstance(entry, ast.Constant):
            value = self.context.program.const_value.get(entry.value)
            if value is not None:
                self.context.set_constant(node, value)
        return self.context.program.type_of_declaration.get(entry, types.UNKNOWN)

    def check_this(self, node: ast.ThisExpression, expected: types.Type | None) -> types.Type:
        if self.context.frame.extern is None:
            return self.context.error(
                node, "'this' exists only in the methods of an extern instance"
            )
        return self.context.frame.extern

    def check_type_expression(
        self, node: ast.TypeExpression, expected: types.Type | None
    ) -> types.Type:
        named = self.resolver.resolve(node.type_ref, generic=True)
        return named if isinstance(named, types.Unknown) else types.TypeName(named)

    # ---- literals

    def check_integer(self, node: ast.IntLiteral, expected: types.Type | None) -> types.Type:
        if node.width is None:
            self.context.set_constant(node, node.value)
            return types.INTEGER
        if not int(node.signed) <= node.width <= MAX_WIDTH_BITS:
            lowest = 1 if node.signed else 0
            return self.context.error(
                node, f"width {node.width} is outside {lowest}..{MAX_WIDTH_BITS}"
            )
        type_ = types.Bits(node.width, node.signed)
        if not fits(node.value, type_):
            wrapped = wrap(node.value, type_)
            self.context.warn(
                node, "overflow", f"{node.value} does not fit {type_}; it becomes {wrapped}"
            )
        self.context.set_constant(node, wrap(node.value, type_))
        return type_

    def check_boolean(self, node: ast.BoolLiteral, expected: types.Type | None) -> types.Type:
        self.context.set_constant(node, node.value)
        return types.BOOLEAN

    def check_string(self, node: ast.StringLiteral, expected: types.Type | None) -> types.Type:
        self.context.set_constant(node, node.value)
        return types.STRING

    def check_list(self, node: ast.ListExpression, expected: types.Type | None) -> types.Type:
        hints = _hints(expected, len(node.elements))
        elements = [self.check(e, h) for e, h in zip(node.elements, hints, strict=True)]
        for element, type_ in zip(node.elements, elements, strict=True):
            if isinstance(type_, _NOT_IN_LISTS):
                self.context.error(element, f"{type_} cannot be an element of a list")
                return types.UNKNOWN
        if any(isinstance(t, types.Unknown) for t in elements):
            return types.UNKNOWN
        result = types.Tuple(tuple(elements))
        self.context.program.type_of[node] = result
        self.coercion.fold_list(node)
        return result

    def check_struct(self, node: ast.StructExpression, expected: types.Type | None) -> types.Type:
        fields: list[types.Field] = []
        for member in node.members:
            if any(f.name == member.name for f in fields):
                return self.context.error(member, f"member '{member.name}' is given twice")
            wanted = expected.field(member.name) if isinstance(expected, types.StructLike) else None
            type_ = self.check(member.value, wanted.type if wanted else None)
            fields.append(types.Field(member.name, type_))
        if any(isinstance(f.type, types.Unknown) for f in fields):
            return types.UNKNOWN
        return types.StructLiteral(tuple(fields))

    def check_invalid(self, node: ast.InvalidHeader, expected: types.Type | None) -> types.Type:
        return types.InvalidLiteral()

    def check_default(
        self, node: ast.DefaultInitializer, expected: types.Type | None
    ) -> types.Type:
        return types.DefaultLiteral()

    # ---- constructors

    def check_constructor_call(
        self, node: ast.ConstructorCall, expected: types.Type | None
    ) -> types.Type:
        return self.construct(node, node.type_ref, node.arguments, expected)

    def construct(
        self,
        node: ast.Node,
        ref: ast.TypeRef,
        arguments: tuple[ast.Argument, ...],
        expected: types.Type | None = None,
    ) -> types.Type:
        """Returns the type of the object that `ref(arguments)` makes, and records it in
        constructions."""
        base = self.resolver.resolve(ref, generic=True)
        if isinstance(node, ast.ConstructorCall) and _has_abstract(base):
            self.context.error(
                node, f"{base} has abstract methods: declare an instance that gives them"
            )
        constructors = self._constructors(base)
        if constructors is None:
            self.arguments.check_loose(arguments)
            if isinstance(base, types.Unknown):
                return base
            hint = "a width is written bit<8>" if isinstance(base, types.Bits) else ""
            return self.context.error(ref, f"{base} has no constructor", hint)
        chosen = self.arguments.choose(node, str(base), constructors, arguments)
        if chosen is None:
            return types.UNKNOWN
        function, pairs = chosen
        unsolved = _unsolved(base)
        bindings = self.arguments.infer(node, _base_name(ref), unsolved, (), pairs, base, expected)
        if bindings is None:
            return types.UNKNOWN if unsolved else base
        bound = self.arguments.bind_arguments(pairs, bindings, constant=True)
        result = types.substitute(base, bindings)
        self.context.program.type_at[ref] = result
        target = getattr(result, "declaration")  # noqa: B009
        constructor = function.declaration
        self.context.program.constructions[node] = ConstructionInfo(
            result, target, constructor, bound
        )
        return result

    def _constructors(self, base: types.Type) -> list[types.Function] | None:
        if isinstance(base, types.Package):
            return [types.Function(None, (), base.constructor, base)]
        if isinstance(base, types.Block):
            body = isinstance(base.declaration, (ast.ControlDeclaration, ast.ParserDeclaration))
            return [types.Function(None, (), base.constructor, base)] if body else None
        if not isinstance(base, types.Extern):
            return None
        bindings = dict(zip(base.declaration.type_parameters, base.arguments, strict=True))
        found = [
            types.substitute(t, bindings)
            for m in base.declaration.methods
            if m.return_type is None
            and isinstance(t := self.context.program.type_of_declaration.get(m), types.Function)
        ]
        return found or None

    # ---- keysets

    def check_range(self, node: ast.Range, expected: types.Type | None) -> types.Type:
        return self._pair_keyset(node, node.low, node.high, "..", expected)

    def check_mask(self, node: ast.Mask, expected: types.Type | None) -> types.Type:
        return self._pair_keyset(node, node.value, node.mask, "&&&", expected)

    def _pair_keyset(
        self,
        node: ast.Expression,
        first: ast.Expression,
        second: ast.Expression,
        operator: str,
        expected: types.Type | None,
    ) -> types.Type:
        left, right = self.check(first, expected), self.check(second, expected)
        if isinstance(left, types.Unknown) or isinstance(right, types.Unknown):
            return types.UNKNOWN
        left, right = self.operators.enum_to_bits(first), self.operators.enum_to_bits(second)
        for operand, type_ in ((first, left), (second, right)):
            if not isinstance(type_, (types.Bits, types.Integer)):
                return self.context.error(operand, f"operator {operator} is not defined on {type_}")
        target = left if isinstance(left, types.Bits) else right
        for operand in (first, second):
            if not self.coercion.coerce(operand, target, f"the other side of {operator}"):
                return types.UNKNOWN
        return types.Set(target)

    def check_default_keyset(
        self, node: ast.DefaultKeyset, expected: types.Type | None
    ) -> types.Type:
        return types.Set(types.DONT_CARE)


_NOT_IN_LISTS = (
    types.Void,
    types.TypeName,
    types.Overloads,
    types.Action,
    types.Table,
    types.Extern,
    types.Block,
    types.Set,
)


def _hints(expected: types.Type | None, count: int) -> list[types.Type | None]:
    elements: tuple[types.Type, ...] = ()
    if isinstance(expected, types.StructLike):
        elements = tuple(f.type for f in expected.fields)
    elif isinstance(expected, types.Tuple):
        elements = expected.elements
    elif isinstance(expected, (types.Stack, types.List)):
        elements = (expected.element,) * count
    return [*elements[:count], *([None] * (count - len(elements)))]


def _has_abstract(base: types.Type) -> bool:
    return isinstance(base, types.Extern) and any(m.abstract for m in base.declaration.methods)


def _unsolved(base: types.Type) -> tuple[ast.TypeParameter, ...]:
    """Returns the type parameters that the written type leaves to inference."""
    assert isinstance(base, (types.Extern, types.Block, types.Package))
    return tuple(
        variable
        for variable, argument in zip(
            type_parameters(base.declaration), base.arguments, strict=False
        )
        if argument == types.TypeVariable(variable)
    )


def _base_name(ref: ast.TypeRef) -> str:
    if isinstance(ref, ast.SpecializedTypeRef):
        return ref.base.name
    return ref.name if isinstance(ref, ast.NamedTypeRef) else "the type"
