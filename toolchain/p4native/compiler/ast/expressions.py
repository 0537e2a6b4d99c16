"""The classes of nodes for expressions, and for the types and annotations that contain
expressions."""

from __future__ import annotations

from dataclasses import dataclass

from p4native.compiler.ast.node import Node
from p4native.compiler.source import Position


@dataclass(eq=False, slots=True)
class TypeRef(Node):
    """The base class of types as the source writes them."""


@dataclass(eq=False, slots=True)
class BaseTypeRef(TypeRef):
    """A type that is one keyword: `bool`, `error`, `string`, `void`, `match_kind`, or `int` (of
    arbitrary precision)."""

    name: str


@dataclass(eq=False, slots=True)
class BitsTypeRef(TypeRef):
    """A type of bits: `bit`, `bit<W>`, `int<W>` or `varbit<W>`. kind: the keyword. width: None
    means 1."""

    kind: str
    width: Expression | None


@dataclass(eq=False, slots=True)
class NamedTypeRef(TypeRef):
    """A type given by its name: `Name` or `.Name`."""

    name: str
    absolute: bool = False


@dataclass(eq=False, slots=True)
class SpecializedTypeRef(TypeRef):
    """A generic type with its type arguments: `Base<A, B>`."""

    base: NamedTypeRef
    arguments: tuple[TypeRef, ...]


@dataclass(eq=False, slots=True)
class StackTypeRef(TypeRef):
    """An array type, usually a header stack: `Element[size]`."""

    element: TypeRef
    size: Expression


@dataclass(eq=False, slots=True)
class TupleTypeRef(TypeRef):
    """A tuple type: `tuple<A, B>`."""

    elements: tuple[TypeRef, ...]


@dataclass(eq=False, slots=True)
class ListTypeRef(TypeRef):
    """A list type: `list<Element>`."""

    element: TypeRef


@dataclass(eq=False, slots=True)
class DontCareTypeRef(TypeRef):
    """The `_` in place of a type argument, which is left to inference."""


@dataclass(eq=False, slots=True)
class Annotation(Node):
    """An annotation: `@name`, `@name(...)` or `@name[...]`. `@pragma name ...` is an annotation as
    well.

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
    """A name used as an expression, `x` or `.x`, where x is not a type."""

    name: str
    absolute: bool = False


@dataclass(eq=False, slots=True)
class TypeExpression(Expression):
    """A type used as the base of a member, such as `Suits` in `Suits.Clubs`, `error` in
    `error.NoError` or `Inner` in `Inner.apply(...)`."""

    type_ref: TypeRef


@dataclass(eq=False, slots=True)
class ThisExpression(Expression):
    """The name `this`, in the functions of an extern instance's initializer."""


@dataclass(eq=False, slots=True)
class Member(Expression):
    """An access to a member, `base.member`. position: the whole expression if it is on one line.
    member_position: the place of the member's name."""

    base: Expression
    member: str
    member_position: Position


@dataclass(eq=False, slots=True)
class Index(Expression):
    """An access to an element: `base[index]`."""

    base: Expression
    index: Expression


@dataclass(eq=False, slots=True)
class Slice(Expression):
    """Bits of a number, `base[high:low]`, with both ends included."""

    base: Expression
    high: Expression
    low: Expression


@dataclass(eq=False, slots=True)
class PlusSlice(Expression):
    """Bits of a number from bit `start` upwards, `base[start +: width]`. start need not be
    constant."""

    base: Expression
    start: Expression
    width: Expression


@dataclass(eq=False, slots=True)
class Argument(Node):
    """An argument of a call: `value` or `name = value`. value: None for `_`."""

    name: str | None
    value: Expression | None


@dataclass(eq=False, slots=True)
class Call(Expression):
    """A call of a function, method or action, or of an `apply`:
    `callee<type_arguments>(arguments)`."""

    callee: Expression
    type_arguments: tuple[TypeRef, ...]
    arguments: tuple[Argument, ...]


@dataclass(eq=False, slots=True)
class ConstructorCall(Expression):
    """An expression that makes an object: `Type(arguments)`, such as `P()` in `V1Switch(P(),
    ...)`."""

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
    """A cast: `(type_ref) operand`."""

    type_ref: TypeRef
    operand: Expression


@dataclass(eq=False, slots=True)
class Conditional(Expression):
    """A conditional expression, `condition ? then : otherwise`. parenthesized: whether the whole
    expression is in parentheses."""

    condition: Expression
    then: Expression
    otherwise: Expression
    parenthesized: bool = False


@dataclass(eq=False, slots=True)
class ListExpression(Expression):
    """A list `{ a, b, c }`, or a tuple of keysets `(a, b)`, which is parenthesized. has_dots:
    whether the list ends with `...`."""

    elements: tuple[Expression, ...]
    has_dots: bool = False
    parenthesized: bool = False


@dataclass(eq=False, slots=True)
class StructExpression(Expression):
    """A structure-valued expression `{ a = x, b = y }`, with the members in the order written.
    has_dots: whether it ends with `...`."""

    members: tuple[StructMember, ...]
    has_dots: bool = False


@dataclass(eq=False, slots=True)
class StructMember(Node):
    """One member of a StructExpression: `name = value`."""

    name: str
    value: Expression


@dataclass(eq=False, slots=True)
class InvalidHeader(Expression):
    """The invalid header or header union: `{#}`."""


@dataclass(eq=False, slots=True)
class DefaultInitializer(Expression):
    """The default value `...` of the type that is expected here."""


@dataclass(eq=False, slots=True)
class Range(Expression):
    """A range of values, `low .. high`, in keysets and for-in loops. Both ends are included."""

    low: Expression
    high: Expression


@dataclass(eq=False, slots=True)
class Mask(Expression):
    """A value with a mask in keysets: `value &&& mask`."""

    value: Expression
    mask: Expression


@dataclass(eq=False, slots=True)
class DefaultKeyset(Expression):
    """The keyset that matches everything: `default` or `_`, in keysets and switch labels. written:
    which of the two the source has."""

    written: str = "default"
