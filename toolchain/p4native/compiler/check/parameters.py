"""Checks parameters of blocks, actions, functions, externs and constructors."""

from __future__ import annotations

from p4native.compiler import ast, types
from p4native.compiler.check.coerce import Coercion
from p4native.compiler.check.context import Context
from p4native.compiler.check.typerefs import TypeResolver
from p4native.compiler.source import Position


class Parameters:
    """The part that gives parameters their types and refuses those that are not allowed in their
    place."""

    def __init__(self, context: Context, resolver: TypeResolver, coercion: Coercion) -> None:
        self.context = context
        self.resolver = resolver
        self.coercion = coercion

    def parameter_type(
        self, parameter: ast.Parameter, owner: str, position: Position | None = None
    ) -> types.ParameterType:
        """Returns a parameter's type. owner: "control", "parser", "action", "function", "extern",
        "constructor" (of blocks and packages) or "extern constructor"."""
        type_ = self.resolver.resolve(parameter.type_ref)
        problem = _parameter_problem(parameter.direction, type_, owner)
        if parameter.optional and owner in ("action", "function"):
            problem = "@optional belongs in externs, packages, parsers and controls"
        if isinstance(type_, types.Block) and _has_body(type_):
            problem = f"{type_} is one block, not a type of blocks"
        if problem:
            self.context.error(parameter.type_ref, f"parameter '{parameter.name}': {problem}")
        self.context.record(parameter, type_)
        if parameter.default is not None:
            self._default(parameter, type_)
        return types.ParameterType(
            parameter.name,
            type_,
            parameter.direction,
            parameter.optional,
            parameter.default,
            parameter,
        )

    def _default(self, parameter: ast.Parameter, type_: types.Type) -> None:
        assert parameter.default is not None
        if parameter.direction in ("out", "inout"):
            self.context.error(
                parameter.default,
                f"a parameter with direction {parameter.direction} cannot have a default value",
            )
        if parameter.optional:
            self.context.error(
                parameter.default, "an optional parameter cannot have a default value"
            )
        self.context.check(parameter.default, type_)
        self.coercion.coerce(parameter.default, types.erase(type_), f"parameter '{parameter.name}'")
        if not self.context.known(parameter.default):
            self.context.error(parameter.default, "a default value must be known at compile time")

    def parameter_types(
        self, parameters: tuple[ast.Parameter, ...], owner: str
    ) -> tuple[types.ParameterType, ...]:
        """Resolves, records and declares parameters, and returns their types."""
        found = tuple(self.parameter_type(p, owner) for p in parameters)
        for parameter in parameters:
            self.context.declare(parameter)
        return found


def _has_body(block: types.Block) -> bool:
    return isinstance(block.declaration, (ast.ParserDeclaration, ast.ControlDeclaration))


def _parameter_problem(direction: str, type_: types.Type, owner: str) -> str:
    if isinstance(type_, types.Void):
        return "void is not allowed"
    if isinstance(type_, types.Extern) and direction:
        return f"an extern object has no direction, but this one is {direction}"
    if "constructor" in owner and (owner == "constructor" or not isinstance(type_, types.Block)):
        return f"constructor parameters have no direction ({direction})" if direction else ""
    if isinstance(type_, (types.Package, types.Block)):
        return f"{type_} can only be given to the constructor of a block or package"
    if isinstance(type_, (types.Integer, types.String)) and direction:
        return f"{type_} exists at compile time only: the parameter cannot be {direction}"
    if isinstance(type_, types.Integer) and owner == "action":
        return "an action's parameters need a width"
    if isinstance(type_, types.Extern) and owner == "action":
        return "an action cannot take an extern object"
    return ""
