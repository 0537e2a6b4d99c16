"""The class TypedProgram: the syntax tree with everything that the front end found out about it.

The tree itself is not rewritten. All maps have nodes as keys, which hash by identity. A back end
walks over `program.tree` and looks up what it needs:

type_of[expression] -> Type
    The type of every checked expression, after inference. A literal `5` used as `bit<8>` has type
    `bit<8>`, and a list `{a, b}` assigned to a struct has the struct's type. Inside generic
    functions, types may contain TypeVariables: call substitute(type, bindings) with the call's
    bindings. Types `Integer` remain only where the program has arbitrary-precision constants.
type_at[type_ref] -> Type
    The type of every written type: of variables, parameters, fields, casts and type arguments.
type_of_declaration[declaration] -> Type
    The type of each variable, constant, parameter, field, instantiation (the instance's type),
    table (types.Table), action (types.Action), function (types.Function) and value set
    (types.Set). For declarations of types, the type that they declare; for a typedef, the type
    that it stands for.
implicit_cast[expression] -> Type
    The type to which the expression's value must be converted from type_of[expression], as from a
    serializable enum to its bits. Constants never need it: they are retyped in place.
decl_of[node] -> Declaration
    NameExpression: Parameter, Variable, Constant, Instantiation, TableDeclaration,
    ActionDeclaration, FunctionDeclaration (overloads: the one called), ValueSet, EnumMember (a
    match kind in a table key). Member: StructField, EnumMember (enums, error); no entry for stack
    properties (next, last, lastIndex, size), hit, miss, action_run and built-in methods. StateRef:
    ParserState ("accept" and "reject" have no entry). ActionRef: ActionDeclaration. Switch labels
    on action_run: ActionDeclaration. NamedTypeRef: the type's declaration (TypeParameter too).
const_value[expression] -> Value
    The value of an expression, present exactly where it is known at compile time in every
    instance: bool, int (within the range of the type), str, EnumMember (enum, error, match_kind;
    for a serializable enum the member's number is enum_values[member]), or a tuple of Values
    (lists, tuples; structs in field order). A Constant's value is const_value[constant.value].
    Constructor parameters are only known for each instance: evaluate(program, expression,
    instance.constants) gives their values.
enum_values[EnumMember] -> int
    The numbers of the members of serializable enums.
error_codes[EnumMember] -> int
    The numbers of the members of `error`, counted from 0 in order of appearance. Those of core.p4
    come first: NoError is 0.
calls[Call] -> CallInfo
    The function called, the object, the type arguments, and each parameter's argument.
actions[ActionRef] -> tuple[BoundArgument, ...]
    In a table's action list: the arguments of the action's parameters with a direction. In entries
    and default actions: also those of the control-plane (directionless) parameters, so that every
    parameter has one.
constructions[Instantiation | ConstructorCall] -> ConstructionInfo
    The object that is constructed, with type and arguments. Direct applications
    (`Inner.apply(x)`) have an entry under their Call: a ConstructionInfo without arguments.
parser_reachable[ParserDeclaration] -> set of ParserState names reachable from start.
full_name[declaration] -> str
    The name within the source: `Ingress.table`, `Ingress.action`, with @name applied. Instances of
    nested controls need the instance's path, which Instance.name_of(declaration) uses.
globals[Instantiation] -> Instance
    The extern objects declared outside of all blocks.
main -> Instance | None
    The package instance called main, elaborated: every constructor argument is evaluated, every
    block has its own Instance, and children are found by the node that creates them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Union

from p4native.compiler import ast, types

Value = Union[bool, int, str, ast.EnumMember, tuple["Value", ...], "Instance"]


class CallKind(Enum):
    """The kind of a call. The comments say what `target` and `receiver` of CallInfo are for each
    kind."""

    ACTION = "action"  # target ActionDeclaration
    FUNCTION = "function"  # target FunctionDeclaration with a body
    EXTERN_FUNCTION = "extern function"  # target FunctionDeclaration without body
    EXTERN_METHOD = "extern method"  # target FunctionDeclaration, receiver the object
    TABLE_APPLY = "table apply"  # target TableDeclaration
    CONTROL_APPLY = "control apply"  # target ControlDeclaration; receiver the instance
    PARSER_APPLY = "parser apply"  # target ParserDeclaration; receiver the instance
    HEADER_METHOD = "header method"  # method isValid, setValid, setInvalid, minSizeInBits...
    STACK_METHOD = "stack method"  # method push_front, pop_front; const argument
    SIZE_METHOD = "size method"  # minSizeInBits, minSizeInBytes, maxSizeIn...: const_value is set
    STATIC_ASSERT = "static_assert"  # checked here; const_value is True
    ABSTRACT_METHOD = "abstract method"  # receiver the object or `this`


@dataclass(slots=True)
class BoundArgument:
    """One parameter with its argument.

    value: None for `_` and for an optional parameter that is left out. For another parameter that
    is left out it is the default value, which belongs to the declaration and is typed there.
    """

    parameter: types.ParameterType
    value: ast.Expression | None


@dataclass(slots=True)
class CallInfo:
    """A resolved call. Type arguments are substituted in the types of its parameters.

    method: the name called (`extract`, `apply`, `setValid`, `hash`, ...). receiver: the expression
    before the dot, None for plain calls and for direct applications of a type. bindings: type
    parameter -> type, including the parameters of the extern object itself.
    """

    kind: CallKind
    method: str
    target: ast.Declaration | None
    receiver: ast.Expression | None
    type_arguments: tuple[types.Type, ...]
    bindings: types.Bindings
    arguments: tuple[BoundArgument, ...]
    result: types.Type

    def argument(self, name: str) -> ast.Expression | None:
        """Returns the expression given for the parameter called `name`, or None."""
        return next((a.value for a in self.arguments if a.parameter.name == name), None)


@dataclass(slots=True)
class ConstructionInfo:
    """A resolved constructor call. type: an Extern, Parser, Control or Package.

    target: the declaration of what is constructed. constructor: the extern constructor that was
    chosen among overloads.
    """

    type: types.Type
    target: ast.Declaration
    constructor: ast.FunctionDeclaration | None
    arguments: tuple[BoundArgument, ...]


@dataclass(eq=False, slots=True)
class Instance:
    """One object of the elaborated program: a package, parser, control or extern.

    name: the full control-plane name (`MyIngress`, `MyIngress.inner`, `MyIngress.reg`). A block
    given to the package has the name of its type, whatever its @name. arguments: constructor
    parameter -> evaluated value, which is an Instance for blocks and externs; parameters left out
    are missing. constants: the same values with ast.Parameter as key, for fold.evaluate. children:
    the node that creates a child (Instantiation, ConstructorCall, or Call for a direct application)
    -> Instance. node: the node that creates this object.
    """

    name: str
    type: types.Type
    declaration: ast.Declaration
    node: ast.Node | None
    arguments: dict[str, Value] = field(default_factory=dict)
    constants: dict[ast.Declaration, Value] = field(default_factory=dict)
    children: dict[ast.Node, Instance] = field(default_factory=dict)
    parent: Instance | None = None

    def name_of(self, declaration: ast.Declaration) -> str:
        """Returns the control-plane name of a table, action or other declaration in this block."""
        return qualified(self.name, declaration)


def qualified(prefix: str, declaration: ast.Declaration) -> str:
    """Returns `prefix.name`. `@name` replaces the name. If it begins with a dot, it replaces the
    prefix as well."""
    name = declaration.name
    annotation = declaration.annotation("name")
    if annotation and annotation.arguments:
        given = annotation.arguments[0]
        if isinstance(given, ast.StringLiteral):
            name = given.value
    if name.startswith("."):
        return name[1:]
    return f"{prefix}.{name}" if prefix else name


@dataclass(slots=True)
class TypedProgram:
    """A checked program. The module's docstring describes the maps."""

    tree: ast.Program
    type_of: dict[ast.Expression, types.Type] = field(default_factory=dict)
    type_at: dict[ast.TypeRef, types.Type] = field(default_factory=dict)
    type_of_declaration: dict[ast.Declaration, types.Type] = field(default_factory=dict)
    implicit_cast: dict[ast.Expression, types.Type] = field(default_factory=dict)
    decl_of: dict[ast.Node, ast.Declaration] = field(default_factory=dict)
    const_value: dict[ast.Expression, Value] = field(default_factory=dict)
    enum_values: dict[ast.EnumMember, int] = field(default_factory=dict)
    error_codes: dict[ast.EnumMember, int] = field(default_factory=dict)
    match_kinds: dict[str, ast.EnumMember] = field(default_factory=dict)
    calls: dict[ast.Call, CallInfo] = field(default_factory=dict)
    actions: dict[ast.ActionRef, tuple[BoundArgument, ...]] = field(default_factory=dict)
    constructions: dict[ast.Node, ConstructionInfo] = field(default_factory=dict)
    parser_reachable: dict[ast.ParserDeclaration, set[str]] = field(default_factory=dict)
    full_name: dict[ast.Declaration, str] = field(default_factory=dict)
    main: Instance | None = None
    globals: dict[ast.Instantiation, Instance] = field(default_factory=dict)
