"""The syntax tree of P4_16, one class for each construct; no meaning, no imports but positions.

Nodes compare and hash by identity, so that they can be keys of the maps in `typed.py`.
A node's `position` is the place a diagnostic about it should point to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields

from compiler.source import Position


@dataclass(eq=False, slots=True)
class Node:
    position: Position


# ---------------------------------------------------------------- annotations


@dataclass(eq=False, slots=True)
class Annotation(Node):
    """`@name`, `@name(...)`, `@name[...]`; `@pragma name ...` is an annotation as well.

    arguments: the body read as an expression list (empty when it is none); pairs: the body
    read as `key = value` list; text: the body's tokens, as written.
    """

    name: str
    text: tuple[str, ...] = ()
    arguments: tuple[Expression, ...] = ()
    pairs: tuple[tuple[str, Expression], ...] = ()
    structured: bool = False


# ------------------------------------------------------------------ type names


@dataclass(eq=False, slots=True)
class TypeRef(Node):
    """A type as written."""


@dataclass(eq=False, slots=True)
class BaseTypeRef(TypeRef):
    """`bool`, `error`, `string`, `void`, `match_kind`, `int` (arbitrary precision)."""

    name: str


@dataclass(eq=False, slots=True)
class BitsTypeRef(TypeRef):
    """`bit`, `bit<W>`, `int<W>`, `varbit<W>`: kind is the keyword; width None means 1."""

    kind: str
    width: Expression | None


@dataclass(eq=False, slots=True)
class NamedTypeRef(TypeRef):
    """`Name` or `.Name`."""

    name: str
    absolute: bool = False


@dataclass(eq=False, slots=True)
class SpecializedTypeRef(TypeRef):
    """`Base<A, B>`."""

    base: NamedTypeRef
    arguments: tuple[TypeRef, ...]


@dataclass(eq=False, slots=True)
class StackTypeRef(TypeRef):
    """`Element[size]`."""

    element: TypeRef
    size: Expression


@dataclass(eq=False, slots=True)
class TupleTypeRef(TypeRef):
    """`tuple<A, B>`."""

    elements: tuple[TypeRef, ...]


@dataclass(eq=False, slots=True)
class ListTypeRef(TypeRef):
    """`list<Element>`."""

    element: TypeRef


@dataclass(eq=False, slots=True)
class DontCareTypeRef(TypeRef):
    """`_` as a type argument."""


# ----------------------------------------------------------------- expressions


@dataclass(eq=False, slots=True)
class Expression(Node):
    pass


@dataclass(eq=False, slots=True)
class IntLiteral(Expression):
    """width None: arbitrary precision; else `8w255` (signed False) or `8s255` (signed True)."""

    value: int
    width: int | None = None
    signed: bool = False


@dataclass(eq=False, slots=True)
class BoolLiteral(Expression):
    value: bool


@dataclass(eq=False, slots=True)
class StringLiteral(Expression):
    value: str


@dataclass(eq=False, slots=True)
class NameExpression(Expression):
    """`x` or `.x` where x is not a type."""

    name: str
    absolute: bool = False


@dataclass(eq=False, slots=True)
class TypeExpression(Expression):
    """A type used as the base of a member: `Suits.Clubs`, `error.NoError`, `Inner.apply(...)`."""

    type_ref: TypeRef


@dataclass(eq=False, slots=True)
class ThisExpression(Expression):
    """`this` in the functions of an extern instance's initializer."""


@dataclass(eq=False, slots=True)
class Member(Expression):
    """`base.member`; position is all of it where it is on one line, member_position the name."""

    base: Expression
    member: str
    member_position: Position


@dataclass(eq=False, slots=True)
class Index(Expression):
    """`base[index]`."""

    base: Expression
    index: Expression


@dataclass(eq=False, slots=True)
class Slice(Expression):
    """`base[high:low]`, both ends included."""

    base: Expression
    high: Expression
    low: Expression


@dataclass(eq=False, slots=True)
class PlusSlice(Expression):
    """`base[start +: width]`: the width bits from bit start up; start need not be constant."""

    base: Expression
    start: Expression
    width: Expression


@dataclass(eq=False, slots=True)
class Argument(Node):
    """`value`, `name = value`; value None stands for `_`."""

    name: str | None
    value: Expression | None


@dataclass(eq=False, slots=True)
class Call(Expression):
    """`callee<type_arguments>(arguments)`: function, method, action, apply."""

    callee: Expression
    type_arguments: tuple[TypeRef, ...]
    arguments: tuple[Argument, ...]


@dataclass(eq=False, slots=True)
class ConstructorCall(Expression):
    """`Type(arguments)`, as in `V1Switch(P(), ...)`."""

    type_ref: TypeRef
    arguments: tuple[Argument, ...]


@dataclass(eq=False, slots=True)
class Unary(Expression):
    """operator: `-`, `+`, `~`, `!`."""

    operator: str
    operand: Expression


@dataclass(eq=False, slots=True)
class Binary(Expression):
    """operator: + - |+| |-| * / % << >> & | ^ ++ == != < > <= >= && ||."""

    operator: str
    left: Expression
    right: Expression


@dataclass(eq=False, slots=True)
class Cast(Expression):
    """`(type_ref) operand`."""

    type_ref: TypeRef
    operand: Expression


@dataclass(eq=False, slots=True)
class Conditional(Expression):
    """`condition ? then : otherwise`."""

    condition: Expression
    then: Expression
    otherwise: Expression


@dataclass(eq=False, slots=True)
class ListExpression(Expression):
    """`{ a, b, c }`; has_dots for a final `...`; also a keyset tuple `(a, b)` (parenthesized)."""

    elements: tuple[Expression, ...]
    has_dots: bool = False
    parenthesized: bool = False


@dataclass(eq=False, slots=True)
class StructExpression(Expression):
    """`{ a = x, b = y }`; has_dots for a final `...`; members' order is as written."""

    members: tuple[StructMember, ...]
    has_dots: bool = False


@dataclass(eq=False, slots=True)
class StructMember(Node):
    """`name = value`."""

    name: str
    value: Expression


@dataclass(eq=False, slots=True)
class InvalidHeader(Expression):
    """`{#}`."""


@dataclass(eq=False, slots=True)
class DefaultInitializer(Expression):
    """`...`: the default value of whatever type is expected here."""


@dataclass(eq=False, slots=True)
class Range(Expression):
    """`low .. high` in keysets and for-in loops, both ends included."""

    low: Expression
    high: Expression


@dataclass(eq=False, slots=True)
class Mask(Expression):
    """`value &&& mask` in keysets."""

    value: Expression
    mask: Expression


@dataclass(eq=False, slots=True)
class DefaultKeyset(Expression):
    """`default` or `_` in keysets and switch labels; written is which of the two."""

    written: str = "default"


# ------------------------------------------------------------------ statements


@dataclass(eq=False, slots=True)
class Statement(Node):
    """Declarations that may stand among statements derive from Declaration instead."""


@dataclass(eq=False, slots=True)
class Assignment(Statement):
    """`left operator= right`; operator is "" for plain `=`, else `+`, `|+|`, `<<`, ..."""

    left: Expression
    operator: str
    right: Expression


@dataclass(eq=False, slots=True)
class CallStatement(Statement):
    call: Call


@dataclass(eq=False, slots=True)
class EmptyStatement(Statement):
    pass


@dataclass(eq=False, slots=True)
class Block(Statement):
    statements: tuple[Statement | Declaration, ...]
    annotations: tuple[Annotation, ...] = ()
    end: Position | None = None


@dataclass(eq=False, slots=True)
class If(Statement):
    condition: Expression
    then: Statement
    otherwise: Statement | None


@dataclass(eq=False, slots=True)
class Return(Statement):
    value: Expression | None


@dataclass(eq=False, slots=True)
class Exit(Statement):
    pass


@dataclass(eq=False, slots=True)
class Break(Statement):
    pass


@dataclass(eq=False, slots=True)
class Continue(Statement):
    pass


@dataclass(eq=False, slots=True)
class SwitchCase(Node):
    """label is DefaultKeyset for `default`; body None falls through to the next case."""

    label: Expression
    body: Block | None


@dataclass(eq=False, slots=True)
class Switch(Statement):
    subject: Expression
    cases: tuple[SwitchCase, ...]


@dataclass(eq=False, slots=True)
class For(Statement):
    """`for (initial; condition; updates) body`."""

    initial: tuple[Statement | Declaration, ...]
    condition: Expression
    updates: tuple[Statement, ...]
    body: Statement
    annotations: tuple[Annotation, ...] = ()


@dataclass(eq=False, slots=True)
class ForIn(Statement):
    """`for (variable in collection) body`.

    variable is a Variable declared by the loop, or an l-value that exists already;
    collection a Range, a list or a header stack.
    """

    variable: Variable | Expression
    collection: Expression
    body: Statement
    annotations: tuple[Annotation, ...] = ()


# ---------------------------------------------------------------- declarations


@dataclass(eq=False, slots=True)
class Declaration(Node):
    """Anything with a name; position is the name's place."""

    name: str
    annotations: tuple[Annotation, ...]

    def annotation(self, name: str) -> Annotation | None:
        """The last annotation called name, if any."""
        return next((a for a in reversed(self.annotations) if a.name == name), None)


@dataclass(eq=False, slots=True)
class Parameter(Declaration):
    """direction: "", "in", "out", "inout"."""

    direction: str
    type_ref: TypeRef
    default: Expression | None = None

    @property
    def optional(self) -> bool:
        return self.annotation("optional") is not None


@dataclass(eq=False, slots=True)
class TypeParameter(Declaration):
    """`T` in `<T, U>`."""


@dataclass(eq=False, slots=True)
class Constant(Declaration):
    type_ref: TypeRef
    value: Expression


@dataclass(eq=False, slots=True)
class Variable(Declaration):
    type_ref: TypeRef
    value: Expression | None


@dataclass(eq=False, slots=True)
class Instantiation(Declaration):
    """`Type(arguments) name;`; initializer holds abstract methods' bodies `= { ... }`."""

    type_ref: TypeRef
    arguments: tuple[Argument, ...]
    initializer: tuple[Declaration, ...] | None = None


@dataclass(eq=False, slots=True)
class StructField(Declaration):
    type_ref: TypeRef


@dataclass(eq=False, slots=True)
class StructDeclaration(Declaration):
    """kind: "struct", "header" or "header_union"."""

    kind: str
    type_parameters: tuple[TypeParameter, ...]
    fields: tuple[StructField, ...]


@dataclass(eq=False, slots=True)
class EnumMember(Declaration):
    """A member of an enum, of `error` or of `match_kind`; value only in serializable enums."""

    value: Expression | None = None


@dataclass(eq=False, slots=True)
class EnumDeclaration(Declaration):
    """underlying None: plain enum; else a serializable one."""

    underlying: TypeRef | None
    members: tuple[EnumMember, ...]


@dataclass(eq=False, slots=True)
class ErrorDeclaration(Declaration):
    """One `error { ... }`; name is "error". All of a program's are merged."""

    members: tuple[EnumMember, ...]


@dataclass(eq=False, slots=True)
class MatchKindDeclaration(Declaration):
    """One `match_kind { ... }`; name is "match_kind". All of a program's are merged."""

    members: tuple[EnumMember, ...]


@dataclass(eq=False, slots=True)
class TypedefDeclaration(Declaration):
    """`typedef T name` (new_type False) or `type T name` (new_type True)."""

    type_ref: TypeRef
    new_type: bool = False


@dataclass(eq=False, slots=True)
class FunctionDeclaration(Declaration):
    """A function; body None: extern function or method. A constructor has no return type."""

    return_type: TypeRef | None
    type_parameters: tuple[TypeParameter, ...]
    parameters: tuple[Parameter, ...]
    body: Block | None = None
    abstract: bool = False


@dataclass(eq=False, slots=True)
class ExternDeclaration(Declaration):
    """Constructors are the methods that bear the extern's own name."""

    type_parameters: tuple[TypeParameter, ...]
    methods: tuple[FunctionDeclaration, ...]


@dataclass(eq=False, slots=True)
class ActionDeclaration(Declaration):
    parameters: tuple[Parameter, ...]
    body: Block


@dataclass(eq=False, slots=True)
class PackageDeclaration(Declaration):
    type_parameters: tuple[TypeParameter, ...]
    parameters: tuple[Parameter, ...]


@dataclass(eq=False, slots=True)
class ParserTypeDeclaration(Declaration):
    """`parser P<T>(...);`."""

    type_parameters: tuple[TypeParameter, ...]
    parameters: tuple[Parameter, ...]


@dataclass(eq=False, slots=True)
class ControlTypeDeclaration(Declaration):
    """`control C<T>(...);`."""

    type_parameters: tuple[TypeParameter, ...]
    parameters: tuple[Parameter, ...]


@dataclass(eq=False, slots=True)
class SelectCase(Node):
    """keyset: one expression, or a parenthesized ListExpression for several keys."""

    keyset: Expression
    target: StateRef


@dataclass(eq=False, slots=True)
class StateRef(Node):
    """The name of a state to go to; "accept" and "reject" included."""

    name: str


@dataclass(eq=False, slots=True)
class Transition(Node):
    """`transition target;` (subject empty) or `transition select(subject) { cases }`."""

    target: StateRef | None
    subject: tuple[Expression, ...] = ()
    cases: tuple[SelectCase, ...] = ()


@dataclass(eq=False, slots=True)
class ParserState(Declaration):
    """transition None: implicit `transition reject`."""

    statements: tuple[Statement | Declaration, ...]
    transition: Transition | None


@dataclass(eq=False, slots=True)
class ValueSet(Declaration):
    """`value_set<T>(size) name;`."""

    type_ref: TypeRef
    size: Expression


@dataclass(eq=False, slots=True)
class ParserDeclaration(Declaration):
    type_parameters: tuple[TypeParameter, ...]
    parameters: tuple[Parameter, ...]
    constructor_parameters: tuple[Parameter, ...]
    locals: tuple[Declaration, ...]
    states: tuple[ParserState, ...]


@dataclass(eq=False, slots=True)
class ControlDeclaration(Declaration):
    type_parameters: tuple[TypeParameter, ...]
    parameters: tuple[Parameter, ...]
    constructor_parameters: tuple[Parameter, ...]
    locals: tuple[Declaration, ...]
    body: Block


@dataclass(eq=False, slots=True)
class KeyElement(Node):
    """`expression : match_kind @annotations;`."""

    expression: Expression
    match_kind: NameExpression
    annotations: tuple[Annotation, ...]


@dataclass(eq=False, slots=True)
class ActionRef(Node):
    """`name` or `name(arguments)` in a table's action list, entries and default action.

    arguments None: written without parentheses.
    """

    name: str
    absolute: bool
    arguments: tuple[Argument, ...] | None
    annotations: tuple[Annotation, ...] = ()


@dataclass(eq=False, slots=True)
class TableEntry(Node):
    """`const priority=p: keyset : action @annotations;`.

    keyset: one expression, or a parenthesized ListExpression for several keys.
    """

    keyset: Expression
    action: ActionRef
    annotations: tuple[Annotation, ...]
    priority: Expression | None = None
    constant: bool = False


@dataclass(eq=False, slots=True)
class TableProperty(Node):
    """A property other than key, actions, entries and default_action: `[const] name = value;`."""

    name: str
    value: Expression
    constant: bool
    annotations: tuple[Annotation, ...] = ()


@dataclass(eq=False, slots=True)
class TableDeclaration(Declaration):
    keys: tuple[KeyElement, ...] = ()
    actions: tuple[ActionRef, ...] = ()
    entries: tuple[TableEntry, ...] = ()
    entries_constant: bool = False
    default_action: ActionRef | None = None
    default_constant: bool = False
    properties: tuple[TableProperty, ...] = ()
    # which of key, actions, entries, default_action were written at all
    written: frozenset[str] = frozenset()

    def property(self, name: str) -> TableProperty | None:
        return next((p for p in self.properties if p.name == name), None)


@dataclass(eq=False, slots=True)
class Program(Node):
    declarations: tuple[Declaration, ...]
    # annotations without a declaration, as `@pragma` lines at the end of a file
    annotations: tuple[Annotation, ...] = field(default=())


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below node, in the order of their fields."""
    for entry in fields(node):
        yield from _nodes_in(getattr(node, entry.name))


def _nodes_in(value: object) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple) and not isinstance(value, Position):
        for item in value:
            yield from _nodes_in(item)


def walk(node: Node) -> Iterator[Node]:
    """node and everything below it, parents first, without recursion."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(list(children(current))))
