"""The nodes of expressions, and of the types and annotations that contain expressions."""

from __future__ import annotations

from dataclasses import dataclass

from agglab.compiler.ast.node import Node
from agglab.compiler.source import Position


@dataclass(eq=False, slots=True)
class TypeRef(Node):
    """A type as the source writes it."""


@dataclass(eq=False, slots=True)
class BaseTypeRef(TypeRef):
    """`bool`, `error`, `string`, `void`, `match_kind`, `int` (arbitrary precision)."""

    name: str


@dataclass(eq=False, slots=True)
class BitsTypeRef(TypeRef):
    """`bit`, `bit<W>`, `int<W>` or `varbit<W>`. kind: the keyword. width: None means 1."""

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


@dataclass(eq=False, slots=True)
class Annotation(Node):
    """`@name`, `@name(...)` or `@name[...]`; `@pragma name ...` is an annotation as well.

    arguments: the body as an expression list, empty if the body is not one. pairs: the body as a
    list of `key = value`. text: the body's tokens, as written.
    """

    name: str
    text: tuple[str, ...] = ()
    arguments: tuple[Expression, ...] = ()
    pairs: tuple[tuple[str, Expression], ...] = ()
    structured: bool = False


@dataclass(eq=False, slots=True)
class Expression(Node):
    pass


@dataclass(eq=False, slots=True)
class IntLiteral(Expression):
    """An integer literal. width: None for arbitrary precision. `8w255` has width 8, and so has
    `8s255`, which is signed."""

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
    """`x` or `.x`, where x is not a type."""

    name: str
    absolute: bool = False


@dataclass(eq=False, slots=True)
class TypeExpression(Expression):
    """A type used as the base of a member: `Suits.Clubs`, `error.NoError`, `Inner.apply(...)`."""

    type_ref: TypeRef


@dataclass(eq=False, slots=True)
class ThisExpression(Expression):
    """`this`, in the functions of an extern instance's initializer."""


@dataclass(eq=False, slots=True)
class Member(Expression):
    """`base.member`. position: the whole expression if it is on one line. member_position: the
    place of the member's name."""

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
    """`base[start +: width]`: `width` bits from bit `start` upwards. start need not be constant."""

    base: Expression
    start: Expression
    width: Expression


@dataclass(eq=False, slots=True)
class Argument(Node):
    """`value` or `name = value`. value: None for `_`."""

    name: str | None
    value: Expression | None


@dataclass(eq=False, slots=True)
class Call(Expression):
    """`callee<type_arguments>(arguments)`: a call of a function, method or action, or an
    `apply`."""

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
    """A unary operator with its operand. operator: `-`, `+`, `~` or `!`."""

    operator: str
    operand: Expression


@dataclass(eq=False, slots=True)
class Binary(Expression):
    """A binary operator with its operands. operator: + - |+| |-| * / % << >> & | ^ ++ == != < > <=
    >= && ||."""

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
    """`condition ? then : otherwise`. parenthesized: whether the expression has parentheses of its
    own."""

    condition: Expression
    then: Expression
    otherwise: Expression
    parenthesized: bool = False


@dataclass(eq=False, slots=True)
class ListExpression(Expression):
    """`{ a, b, c }`, or a keyset tuple `(a, b)`, which is parenthesized. has_dots: whether the list
    ends with `...`."""

    elements: tuple[Expression, ...]
    has_dots: bool = False
    parenthesized: bool = False


@dataclass(eq=False, slots=True)
class StructExpression(Expression):
    """`{ a = x, b = y }`, with the members in the order written. has_dots: whether it ends with
    `...`."""

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
    """`...`: the default value of the type that is expected here."""


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
    """`default` or `_` in keysets and switch labels. written: which of the two it is."""

    written: str = "default"
