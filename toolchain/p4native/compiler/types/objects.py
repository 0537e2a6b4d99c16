"""The classes of types of what can be called, applied or constructed."""

from __future__ import annotations

from dataclasses import dataclass, field

from p4native.compiler import ast
from p4native.compiler.types.base import Type, angle


@dataclass(frozen=True, slots=True)
class ParameterType:
    """A parameter with its type resolved. direction: "", "in", "out" or "inout"."""

    name: str
    type: Type
    direction: str = ""
    optional: bool = False
    default: ast.Expression | None = field(default=None, compare=False)
    declaration: ast.Parameter | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.direction} {self.type} {self.name}".lstrip()


@dataclass(frozen=True, slots=True)
class Function(Type):
    """The type of a function, extern function, method or constructor. The result of a constructor
    is the constructed type."""

    declaration: ast.FunctionDeclaration | None
    type_parameters: tuple[ast.TypeParameter, ...]
    parameters: tuple[ParameterType, ...]
    result: Type

    def __str__(self) -> str:
        parameters = ", ".join(map(str, self.parameters))
        name = self.declaration.name if self.declaration else "function"
        return f"{self.result} {name}({parameters})"


@dataclass(frozen=True, slots=True)
class Overloads(Type):
    """The type of a name that several functions share. A call chooses one of them."""

    functions: tuple[Function, ...]

    def __str__(self) -> str:
        return " / ".join(map(str, self.functions))


@dataclass(frozen=True, slots=True)
class Action(Type):
    declaration: ast.ActionDeclaration
    parameters: tuple[ParameterType, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return f"action {self.declaration.name}"


@dataclass(frozen=True, slots=True)
class Table(Type):
    declaration: ast.TableDeclaration

    def __str__(self) -> str:
        return f"table {self.declaration.name}"


@dataclass(frozen=True, slots=True)
class Extern(Type):
    """An extern object's type. Its methods are in declaration.methods, without type arguments
    substituted."""

    declaration: ast.ExternDeclaration
    arguments: tuple[Type, ...] = ()

    @property
    def name(self) -> str:
        return self.declaration.name

    def __str__(self) -> str:
        return self.name + angle(self.arguments)


@dataclass(frozen=True, slots=True)
class Block(Type):
    """The base class of parsers and controls.

    declaration: the block's declaration, which may have no body. parameters: those of apply.
    constructor: the constructor's parameters (empty for types without a body).
    """

    declaration: ast.Declaration
    arguments: tuple[Type, ...] = ()
    parameters: tuple[ParameterType, ...] = field(default=(), compare=False)
    constructor: tuple[ParameterType, ...] = field(default=(), compare=False)

    @property
    def name(self) -> str:
        return self.declaration.name

    def __str__(self) -> str:
        return self.name + angle(self.arguments)


@dataclass(frozen=True, slots=True)
class Parser(Block):
    pass


@dataclass(frozen=True, slots=True)
class Control(Block):
    pass


@dataclass(frozen=True, slots=True)
class Package(Type):
    declaration: ast.PackageDeclaration
    arguments: tuple[Type, ...] = ()
    constructor: tuple[ParameterType, ...] = field(default=(), compare=False)

    @property
    def name(self) -> str:
        return self.declaration.name

    def __str__(self) -> str:
        return self.name + angle(self.arguments)


@dataclass(frozen=True, slots=True)
class TypeName(Type):
    """The type of a TypeExpression: `E` in `E.member`."""

    named: Type

    def __str__(self) -> str:
        return f"type {self.named}"
