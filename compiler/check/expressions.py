"""Every kind of expression, dispatched; names, literals, lists, constructor calls, keysets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agglab.compiler import ast, types
from agglab.compiler.check.calls import Calls
from agglab.compiler.check.typerefs import MAX_WIDTH_BITS, type_parameters
from agglab.compiler.fold import fits, wrap
from agglab.compiler.typed import ConstructionInfo


class Expressions(Calls):
    def check(self, expression: ast.Expression, expected: types.Type | None = None) -> types.Type:
        """The type of expression, recorded in type_of; Unknown after reporting an error.

        expected: what the surroundings want, a hint for literals and inference only.
        """
        result = _CHECKS[type(expression)](self, expression, expected)
        self.program.type_of[expression] = result
        return result

    # ---- names

    def check_name(self, node: ast.NameExpression, expected: types.Type | None) -> types.Type:
        entry = self.lookup(node.name, node.absolute)
        if self.frame.table is not None and self.frame.table.name == node.name:
            return self.error(node, f"'{node.name}' is the table itself here", "rename one of them")
        if entry is None:
            return self.error(node, f"'{node.name}' is not declared", self.suggest(node.name))
        if isinstance(entry, list):
            found = tuple(
                t
                for f in entry
                if isinstance(t := self.program.type_of_declaration.get(f), types.Function)
            )
            return types.Overloads(found)
        self.program.decl_of[node] = entry
        if (named := self.declared_type(entry)) is not None:
            return types.TypeName(named)
        if isinstance(entry, ast.EnumMember):
            self.set_constant(node, entry)
        if isinstance(entry, ast.Constant):
            value = self.program.const_value.get(entry.value)
            if value is not None:
                self.set_constant(node, value)
        return self.program.type_of_declaration.get(entry, types.UNKNOWN)

    def check_this(self, node: ast.ThisExpression, expected: types.Type | None) -> types.Type:
        if self.frame.extern is None:
            return self.error(node, "'this' exists only in the methods of an extern instance")
        return self.frame.extern

    def check_type_expression(
        self, node: ast.TypeExpression, expected: types.Type | None
    ) -> types.Type:
        named = self.resolve(node.type_ref, generic=True)
        return named if isinstance(named, types.Unknown) else types.TypeName(named)

    # ---- literals

    def check_integer(self, node: ast.IntLiteral, expected: types.Type | None) -> types.Type:
        if node.width is None:
            self.set_constant(node, node.value)
            return types.INTEGER
        if not int(node.signed) <= node.width <= MAX_WIDTH_BITS:
            lowest = 1 if node.signed else 0
            return self.error(node, f"width {node.width} is outside {lowest}..{MAX_WIDTH_BITS}")
        type_ = types.Bits(node.width, node.signed)
        if not fits(node.value, type_):
            wrapped = wrap(node.value, type_)
            self.warn(node, "overflow", f"{node.value} does not fit {type_}; it becomes {wrapped}")
        self.set_constant(node, wrap(node.value, type_))
        return type_

    def check_boolean(self, node: ast.BoolLiteral, expected: types.Type | None) -> types.Type:
        self.set_constant(node, node.value)
        return types.BOOLEAN

    def check_string(self, node: ast.StringLiteral, expected: types.Type | None) -> types.Type:
        self.set_constant(node, node.value)
        return types.STRING

    def check_list(self, node: ast.ListExpression, expected: types.Type | None) -> types.Type:
        hints = _hints(expected, len(node.elements))
        elements = [self.check(e, h) for e, h in zip(node.elements, hints, strict=True)]
        for element, type_ in zip(node.elements, elements, strict=True):
            if isinstance(type_, _NOT_IN_LISTS):
                self.error(element, f"{type_} cannot be an element of a list")
                return types.UNKNOWN
        if any(isinstance(t, types.Unknown) for t in elements):
            return types.UNKNOWN
        result = types.Tuple(tuple(elements))
        self.program.type_of[node] = result
        self.fold_list(node)
        return result

    def check_struct(self, node: ast.StructExpression, expected: types.Type | None) -> types.Type:
        fields: list[types.Field] = []
        for member in node.members:
            if any(f.name == member.name for f in fields):
                return self.error(member, f"member '{member.name}' is given twice")
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
        """The type of the object that `ref(arguments)` makes, recorded in constructions."""
        base = self.resolve(ref, generic=True)
        if isinstance(node, ast.ConstructorCall) and _has_abstract(base):
            self.error(node, f"{base} has abstract methods: declare an instance that gives them")
        constructors = self._constructors(base)
        if constructors is None:
            self.check_loose(arguments)
            if isinstance(base, types.Unknown):
                return base
            return self.error(ref, f"{base} has no constructor")
        chosen = self.choose(node, str(base), constructors, arguments)
        if chosen is None:
            return types.UNKNOWN
        function, pairs = chosen
        unsolved = _unsolved(base)
        bindings = self.infer(node, _base_name(ref), unsolved, (), pairs, base, expected)
        if bindings is None:
            return types.UNKNOWN if unsolved else base
        bound = self.bind_arguments(pairs, bindings, constant=True)
        result = types.substitute(base, bindings)
        self.program.type_at[ref] = result
        target = getattr(result, "declaration")  # noqa: B009
        constructor = function.declaration
        self.program.constructions[node] = ConstructionInfo(result, target, constructor, bound)
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
            and isinstance(t := self.program.type_of_declaration.get(m), types.Function)
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
        left, right = self.enum_to_bits(first), self.enum_to_bits(second)
        for operand, type_ in ((first, left), (second, right)):
            if not isinstance(type_, (types.Bits, types.Integer)):
                return self.error(operand, f"operator {operator} is not defined on {type_}")
        target = left if isinstance(left, types.Bits) else right
        for operand in (first, second):
            if not self.coerce(operand, target, f"the other side of {operator}"):
                return types.UNKNOWN
        return types.Set(target)

    def check_default_keyset(
        self, node: ast.DefaultKeyset, expected: types.Type | None
    ) -> types.Type:
        return types.Set(types.DONT_CARE)

    # ---- compile-time known

    def known(self, expression: ast.Expression) -> bool:
        """Whether the value is known once the program is instantiated."""
        if expression in self.program.const_value:
            return True
        if isinstance(expression, ast.NameExpression):
            return self._known_name(expression)
        if isinstance(expression, (ast.ConstructorCall, ast.InvalidHeader, ast.DefaultInitializer)):
            return True
        if isinstance(expression, _TRANSPARENT):
            return all(
                self.known(c) for c in ast.children(expression) if isinstance(c, ast.Expression)
            )
        if isinstance(expression, ast.StructExpression):
            return all(self.known(m.value) for m in expression.members)
        return False

    def _known_name(self, expression: ast.NameExpression) -> bool:
        declaration = self.program.decl_of.get(expression)
        if isinstance(declaration, ast.Parameter):
            type_ = self.program.type_of_declaration.get(declaration)
            return declaration in self.constructor_parameters or isinstance(type_, types.Extern)
        return isinstance(declaration, (ast.Instantiation, ast.Constant))


_TRANSPARENT = (
    ast.Unary,
    ast.Binary,
    ast.Cast,
    ast.Conditional,
    ast.Slice,
    ast.Member,
    ast.Index,
    ast.ListExpression,
)
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
    """The type parameters that the type as written leaves to inference."""
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


Check = Callable[[Any, Any, "types.Type | None"], types.Type]
_CHECKS: dict[type, Check] = {
    ast.IntLiteral: Expressions.check_integer,
    ast.BoolLiteral: Expressions.check_boolean,
    ast.StringLiteral: Expressions.check_string,
    ast.NameExpression: Expressions.check_name,
    ast.TypeExpression: Expressions.check_type_expression,
    ast.ThisExpression: Expressions.check_this,
    ast.Member: Expressions.check_member,
    ast.Index: Expressions.check_index,
    ast.Slice: Expressions.check_slice,
    ast.PlusSlice: Expressions.check_plus_slice,
    ast.Call: Expressions.check_call,
    ast.ConstructorCall: Expressions.check_constructor_call,
    ast.Unary: Expressions.check_unary,
    ast.Binary: Expressions.check_binary,
    ast.Cast: Expressions.check_cast,
    ast.Conditional: Expressions.check_conditional,
    ast.ListExpression: Expressions.check_list,
    ast.StructExpression: Expressions.check_struct,
    ast.InvalidHeader: Expressions.check_invalid,
    ast.DefaultInitializer: Expressions.check_default,
    ast.Range: Expressions.check_range,
    ast.Mask: Expressions.check_mask,
    ast.DefaultKeyset: Expressions.check_default_keyset,
}
