"""TypedProgram: the syntax tree plus everything the front end found out about it.

The tree itself is not rewritten. All maps are keyed by node (nodes hash by identity), so a back
end walks `program.tree` and looks things up:

type_of[expression] -> Type
    For every expression that was checked, after inference: a literal `5` used as `bit<8>` has type
    `bit<8>`, a list `{a, b}` assigned to a struct has the struct's type. Inside generic functions
    types may contain TypeVariables; substitute(type, bindings) with the call's bindings. Types
    `Integer` remain only where the program has arbitrary-precision constants.
type_at[type_ref] -> Type
    Every written type: of variables, parameters, fields, casts, type arguments.
type_of_declaration[declaration] -> Type
    Variables, constants, parameters, fields, instantiations (the instance's type), tables
    (types.Table), actions (types.Action), functions (types.Function), value sets (types.Set), and
    for declarations of types the type declared (typedefs: what they stand for).
implicit_cast[expression] -> Type
    The expression's value must be converted from type_of[expression] to this type (serializable
    enum to its bits, for instance). Constants never need it: they are retyped in place.
decl_of[node] -> Declaration
    NameExpression: Parameter, Variable, Constant, Instantiation, TableDeclaration,
    ActionDeclaration, FunctionDeclaration (overloads: the one called), ValueSet, EnumMember (a
    match kind in a table key). Member: StructField, EnumMember (enums, error); no entry for stack
    properties (next, last, lastIndex, size), hit, miss, action_run and built-in methods. StateRef:
    ParserState ("accept" and "reject" have no entry). ActionRef: ActionDeclaration. Switch labels
    on action_run: ActionDeclaration. NamedTypeRef: the type's declaration (TypeParameter too).
const_value[expression] -> Value
    Present exactly where the value is known at compile time in every instance. bool, int (within
    the range of the type), str, EnumMember (enum, error, match_kind; for a serializable enum the
    member's number is enum_values[member]), tuple of Values (lists, tuples; structs in field
    order). A Constant's value is const_value[constant.value]. Constructor parameters are known
    per instance only: evaluate(expression, instance.constants) gives those.
enum_values[EnumMember] -> int
    Members of serializable enums.
error_codes[EnumMember] -> int
    Members of `error`, numbered in order of appearance from 0 (core.p4's first: NoError is 0).
calls[Call] -> CallInfo
    What is called, on what, with which type arguments, and each parameter's argument.
actions[ActionRef] -> tuple[BoundArgument, ...]
    In a table's action list: arguments bound to the action's directed parameters. In entries and
    default actions: those and the control-plane (directionless) ones, one for each parameter.
constructions[Instantiation | ConstructorCall] -> ConstructionInfo
    What is constructed, with type and arguments. Direct applications (`Inner.apply(x)`) have
    an entry under their Call: a ConstructionInfo without arguments.
parser_reachable[ParserDeclaration] -> set of ParserState names reachable from start.
full_name[declaration] -> str
    Name within the source: `Ingress.table`, `Ingress.action`; @name applied. Instances of nested
    controls need the instance's path instead: Instance.name_of(declaration).
globals[Instantiation] -> Instance
    The extern objects declared outside of all blocks.
main -> Instance | None
    The package instance called main, elaborated: every constructor argument evaluated, every block
    with its own Instance, children by the node that creates them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Union

from agglab.compiler import ast, types

Value = Union[bool, int, str, ast.EnumMember, tuple["Value", ...], "Instance"]


class CallKind(Enum):
    """The kinds of call. The comments say what `target` and `receiver` of CallInfo are for each."""

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
    """One parameter with what it was given.

    value None: `_`, or an optional parameter left out; a default value is given as value (it
    belongs to the declaration then, and is typed there).
    """

    parameter: types.ParameterType
    value: ast.Expression | None


@dataclass(slots=True)
class CallInfo:
    """A resolved call. Parameter types have type arguments substituted.

    method: the name called (`extract`, `apply`, `setValid`, `hash`, ...). receiver: the expression
    before the dot, None for plain calls and for direct applications of a type. bindings: type
    parameter -> type, the extern object's own parameters included.
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
        """The expression given for the parameter called name."""
        return next((a.value for a in self.arguments if a.parameter.name == name), None)


@dataclass(slots=True)
class ConstructionInfo:
    """A resolved constructor call; type is Extern, Parser, Control or Package.

    target: its declaration; constructor: the extern constructor chosen among overloads.
    """

    type: types.Type
    target: ast.Declaration
    constructor: ast.FunctionDeclaration | None
    arguments: tuple[BoundArgument, ...]


@dataclass(eq=False, slots=True)
class Instance:
    """One object of the elaborated program: package, parser, control or extern.

    name: full control-plane name (`MyIngress`, `MyIngress.inner`, `MyIngress.reg`); the blocks
    given to the package are named by their type's own name, whatever its @name.
    arguments: constructor parameter -> evaluated value (an Instance for blocks and externs;
    parameters left out are missing). constants: the same, keyed by ast.Parameter, for
    TypedProgram.evaluate. children: the node that creates it (Instantiation, ConstructorCall, or
    Call for a direct application) -> Instance. node: that node for this one.
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
        """The control-plane name of a table, action, ... declared in this block."""
        return qualified(self.name, declaration)


def qualified(prefix: str, declaration: ast.Declaration) -> str:
    """Returns `prefix.name`. `@name` replaces the name, and with a leading dot the prefix as
    well."""
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
    """See the module's docstring for the maps."""

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
