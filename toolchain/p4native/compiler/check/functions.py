"""Checks actions and functions, and finds the types of methods."""

from __future__ import annotations

from p4native.compiler import ast, types
from p4native.compiler.check.context import Context, Frame
from p4native.compiler.check.parameters import Parameters
from p4native.compiler.check.statements import StatementChecker
from p4native.compiler.check.typerefs import TypeResolver

_NOT_RESULTS = (types.Block, types.Package, types.DontCare, types.Integer, types.Table)


class FunctionChecker:
    """The part that checks actions and functions: their types, bodies and overloads."""

    def __init__(
        self,
        context: Context,
        resolver: TypeResolver,
        parameters: Parameters,
        statements: StatementChecker,
    ) -> None:
        self.context = context
        self.resolver = resolver
        self.parameters = parameters
        self.statements = statements

    def check_action(self, node: ast.ActionDeclaration) -> None:
        with self.context.nested_scope(), self.context.code(Frame("action")):
            parameters = self.parameters.parameter_types(node.parameters, "action")
            self._directionless_last(node)
            with self.context.nested_scope():
                self.statements.check_statements(node.body.statements)
        self.context.record(node, types.Action(node, parameters))
        self.context.declare(node)

    def _directionless_last(self, node: ast.ActionDeclaration) -> None:
        data = False
        for parameter in node.parameters:
            if parameter.direction and data:
                self.context.error(
                    parameter,
                    f"'{parameter.name}' follows a parameter without direction",
                    "parameters that the control plane gives (no direction) come last",
                )
            data = data or not parameter.direction

    def check_declared(self, node: ast.FunctionDeclaration) -> None:
        if node.body is None:
            self.check_extern_function(node)
        else:
            self.check_function(node)

    def check_function(self, node: ast.FunctionDeclaration) -> None:
        """Checks a function with a body. Its name is declared only after the body was checked,
        because P4 has no recursion."""
        type_ = self.function_type(node, "function", body=True)
        self.context.record(node, type_)
        self._check_overload(node, type_)
        self.context.declare(node)

    def check_extern_function(self, node: ast.FunctionDeclaration) -> None:
        type_ = self.function_type(node, "extern")
        self.context.record(node, type_)
        self._check_overload(node, type_)
        self.context.declare(node)

    def _check_overload(self, node: ast.FunctionDeclaration, type_: types.Function) -> None:
        existing = self.context.scope.names.get(node.name)
        for other in existing if isinstance(existing, list) else ():
            known = self.context.program.type_of_declaration.get(other)
            if isinstance(known, types.Function) and _signature(known) == _signature(type_):
                self.context.error(
                    node, f"'{node.name}' with these parameters is already at {other.position}"
                )

    def function_type(
        self,
        node: ast.FunctionDeclaration,
        owner: str,
        body: bool = False,
        extern: types.Extern | None = None,
    ) -> types.Function:
        """Returns the type of a function or method. Also checks its body, if it has one and `body`
        is set."""
        with self.context.nested_scope():
            for parameter in node.type_parameters:
                self.context.declare(parameter)
            result: types.Type = types.VOID
            if node.return_type is not None:
                result = self.resolver.resolve(node.return_type)
                if isinstance(result, _NOT_RESULTS):
                    result = self.context.error(
                        node.return_type, f"a function cannot return {result}"
                    )
            with self.context.nested_scope():
                parameters = self.parameters.parameter_types(node.parameters, owner)
                type_ = types.Function(node, node.type_parameters, parameters, result)
                if body and node.body is not None:
                    self._function_body(node.body, result, extern)
        return type_

    def _function_body(
        self, body: ast.Block, result: types.Type, extern: types.Extern | None
    ) -> None:
        frame = Frame("function", result, extern=extern)
        with self.context.code(frame), self.context.nested_scope():
            self.statements.check_statements(body.statements)


def _signature(type_: types.Function) -> tuple[tuple[str, types.Type], ...]:
    return tuple((p.name, p.type) for p in type_.parameters)
