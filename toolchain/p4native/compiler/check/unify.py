"""Infers type arguments by matching declared types with the types of the arguments."""

from __future__ import annotations

from p4native.compiler import ast, types


class Unifier:
    """The types found so far for the variables, which are type parameters.

    A number without width or a list binds a variable only until a definite type does.
    """

    def __init__(self, variables: tuple[ast.TypeParameter, ...]) -> None:
        self.variables = frozenset(variables)
        self.bindings: dict[ast.TypeParameter, types.Type] = {}

    def match(self, declared: types.Type, actual: types.Type) -> bool:
        """Whether a value of type `actual` can be given where `declared` is written. Binds
        variables in `declared`."""
        if isinstance(declared, types.TypeVariable) and declared.declaration in self.variables:
            return self._bind(declared.declaration, actual)
        if declared == actual or isinstance(actual, (types.Unknown, types.DontCare)):
            return True
        if isinstance(declared, (types.Unknown, types.DontCare)):
            return True
        if isinstance(declared, types.Block) and isinstance(actual, types.Block):
            return self._match_blocks(declared, actual)
        if isinstance(declared, types.StructLike) and isinstance(actual, types.StructLike):
            return declared.declaration is actual.declaration and self._match_all(
                declared.arguments, actual.arguments
            )
        return self._match_structure(declared, actual)

    def _match_structure(self, declared: types.Type, actual: types.Type) -> bool:
        if isinstance(declared, types.Stack) and isinstance(actual, types.Stack):
            return declared.size == actual.size and self.match(declared.element, actual.element)
        if isinstance(declared, types.Tuple) and isinstance(actual, types.Tuple):
            return self._match_all(declared.elements, actual.elements)
        if isinstance(declared, types.List) and isinstance(actual, (types.List, types.Tuple)):
            elements = actual.elements if isinstance(actual, types.Tuple) else (actual.element,)
            return all(self.match(declared.element, e) for e in elements)
        if isinstance(declared, types.StructLike) and isinstance(actual, types.Tuple):
            fields = tuple(f.type for f in declared.fields)
            return self._match_all(fields, actual.elements)
        if isinstance(declared, types.StructLike) and isinstance(actual, types.StructLiteral):
            pairs = ((f.type, actual.field(f.name)) for f in declared.fields)
            return all(a is None or self.match(t, a.type) for t, a in pairs)
        objects = (types.Extern, types.Package)
        if isinstance(declared, objects) and isinstance(actual, objects):
            return declared.declaration is actual.declaration and self._match_all(
                declared.arguments, actual.arguments
            )
        return _converts(declared, actual)

    def _match_all(self, declared: tuple[types.Type, ...], actual: tuple[types.Type, ...]) -> bool:
        return len(declared) == len(actual) and all(map(self.match, declared, actual))

    def _match_blocks(self, declared: types.Block, actual: types.Block) -> bool:
        """Whether a block has the parameters of the declared block, whatever their names. A
        parameter that only one of the blocks has must be optional or have a default."""
        if isinstance(declared, types.Parser) != isinstance(actual, types.Parser):
            return False
        shared = min(len(declared.parameters), len(actual.parameters))
        extra = declared.parameters[shared:] + actual.parameters[shared:]
        return all(p.optional or p.default for p in extra) and all(
            d.direction == a.direction and self.match(d.type, a.type)
            for d, a in zip(declared.parameters, actual.parameters, strict=False)
        )

    def _bind(self, variable: ast.TypeParameter, actual: types.Type) -> bool:
        bound = self.bindings.get(variable)
        if bound is None or _definiteness(actual) > _definiteness(bound):
            self.bindings[variable] = actual
            return bound is None or _converts(actual, bound)
        return bound == actual or _converts(bound, actual) or self._refine(variable, bound, actual)

    def _refine(self, variable: ast.TypeParameter, bound: types.Type, actual: types.Type) -> bool:
        """Unifies two tuples whose members differ only in numbers without a width. A member of the
        result has the width that either tuple gives it."""
        if not (isinstance(bound, types.Tuple) and isinstance(actual, types.Tuple)):
            return False
        if len(bound.elements) != len(actual.elements):
            return False
        merged = []
        for left, right in zip(bound.elements, actual.elements, strict=True):
            if _converts(left, right):
                merged.append(left)
            elif _converts(right, left):
                merged.append(right)
            else:
                return False
        self.bindings[variable] = types.Tuple(tuple(merged))
        return True


def _definiteness(type_: types.Type) -> int:
    if isinstance(type_, (types.Unknown, types.DontCare, types.DefaultLiteral)):
        return 0
    if isinstance(type_, (types.Integer, types.InvalidLiteral, types.StructLiteral)):
        return 1
    return 2 if isinstance(type_, types.Tuple) else 3


def _converts(target: types.Type, source: types.Type) -> bool:
    """Whether a value of type `source` may be converted to `target` without a cast. The result may
    be too generous, because the exact rules are checked later."""
    if target == source or isinstance(target, types.Unknown) or isinstance(source, types.Unknown):
        return True
    if isinstance(source, types.Integer):
        return isinstance(target, types.Bits)
    if isinstance(target, types.Integer):
        return isinstance(source, types.Bits)
    if isinstance(source, types.SerializableEnum):
        return source.underlying == target
    if isinstance(source, types.InvalidLiteral):
        return isinstance(target, (types.Header, types.HeaderUnion))
    if isinstance(source, types.StructLiteral):
        return isinstance(target, types.StructLike)
    if isinstance(source, types.Tuple):
        return isinstance(target, (types.StructLike, types.Stack, types.List, types.Tuple))
    return isinstance(source, types.DefaultLiteral)


def block_difference(wanted: types.Block, actual: types.Block) -> str:
    """Returns a text about the first parameter in which the type of a block differs from the wanted
    type."""
    if isinstance(wanted, types.Parser) != isinstance(actual, types.Parser):
        return "one is a parser, the other a control"
    for number, (left, right) in enumerate(
        zip(wanted.parameters, actual.parameters, strict=False), 1
    ):
        same = left.direction == right.direction and Unifier(()).match(left.type, right.type)
        if not same:
            return f"parameter {number}: '{left}' in {wanted}, '{right}' in {actual}"
    counts = len(wanted.parameters), len(actual.parameters)
    return f"{wanted} has {counts[0]} parameters, {actual} has {counts[1]}"


def same_object(declared: types.Type, actual: types.Type) -> bool:
    """Whether an object of type `actual` fits the type `declared`, which is fully known."""
    return Unifier(()).match(declared, actual)
