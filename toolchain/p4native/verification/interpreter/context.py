"""The state that the parts of the interpreter share while a packet is processed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from p4native.compiler import ast, types
from p4native.compiler.typed import CallInfo, CallKind, Instance, TypedProgram
from p4native.verification.interpreter import values


class Exited(Exception):
    """Raised by an executed `exit`, to end the pipeline that is being executed."""


class Returned(Exception):
    """Raised by an executed `return`, with the returned value if it is in a function."""

    def __init__(self, value: Any = None) -> None:
        self.value = value


class Rejected(Exception):
    """Raised when a parser rejects a packet. error: a member of `error`, or None for `transition
    reject`. In the latter case, BMv2 continues as if the packet had been accepted."""

    def __init__(self, error: ast.EnumMember | None) -> None:
        self.error = error


Handler = Callable[[ast.Call, CallInfo], Any]


class Context:
    """The state that the interpreter's parts share. variables: values by declaration. As P4 has no
    recursion, each declaration stands for one variable at a time. instance: the parser or control
    that is being executed. calls: the functions that execute each kind of call."""

    def __init__(self, program: TypedProgram) -> None:
        assert program.main is not None, "a program that runs has a main"
        self.program = program
        self.variables: dict[ast.Declaration, Any] = {}
        self.instance: Instance = program.main
        self.calls: dict[CallKind, Handler] = {}
        self.errors = {member.name: member for member in program.error_codes}

    def default(self, kind: types.Type) -> Any:
        """Returns the value of a variable of this type that has no initial value."""
        return values.default(kind, self.errors["NoError"])

    def object(self, name: ast.Expression) -> Instance:
        """Returns the extern object, parser or control that the name means in the current parser or
        control."""
        declaration = self.program.decl_of[name]
        if isinstance(declaration, ast.Instantiation) and declaration in self.program.globals:
            return self.program.globals[declaration]
        found = self.instance.constants.get(declaration) or self.instance.children[declaration]
        assert isinstance(found, Instance), "the checker lets only objects be applied"
        return found
