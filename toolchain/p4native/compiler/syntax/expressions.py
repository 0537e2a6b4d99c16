"""Parses expressions by precedence climbing, over the table of precedences in this file. Also
parses operands, with the members, indices and calls that may follow them."""

from __future__ import annotations

from p4native.compiler import ast
from p4native.compiler.source import Position
from p4native.compiler.syntax.cursor import NAME_KEYWORDS, Cursor
from p4native.compiler.syntax.lexer import IDENTIFIER, INTEGER, STRING, parse_number, parse_string
from p4native.compiler.syntax.typerefs import TypeParser

_LEVELS = (
    ("||",),
    ("&&",),
    ("==", "!="),
    ("<", ">", "<=", ">="),
    ("|",),
    ("^",),
    ("&",),
    ("<<", ">>"),
    ("++", "+", "-", "|+|", "|-|"),
    ("*", "/", "%"),
)
PRECEDENCE = {operator: level for level, group in enumerate(_LEVELS, 1) for operator in group}
_UNARY = frozenset("!~-+")
_SPECIAL_LITERALS = frozenset({"true", "false", "this", "...", "{#}"})


class ExpressionParser:
    """The part that parses expressions, arguments of calls, and keysets."""

    def __init__(self, cursor: Cursor, types: TypeParser) -> None:
        self.cursor = cursor
        self.types = types
        self.no_greater = False  # inside `bit<...>`, where `>` ends the type
        # The leftmost operand of a group, where it has already been read as a type.
        self._pending: ast.Expression | None = None
        self._pending_start = cursor.token.position
        cursor.expression = self.expression
        cursor.type_argument_expression = self.type_argument_expression

    def expression(self) -> ast.Expression:
        with self.cursor.nested():
            outer, self.no_greater = self.no_greater, False
            try:
                return self._conditional()
            finally:
                self.no_greater = outer

    def type_argument_expression(self) -> ast.Expression:
        with self.cursor.nested():
            outer, self.no_greater = self.no_greater, True
            try:
                return self._conditional()
            finally:
                self.no_greater = outer

    def root_expression(self) -> ast.Expression:
        """Parses an expression that is not part of another one. The count of operators, which is
        limited, starts at 0."""
        self.cursor.operators = 0
        return self.expression()

    def _conditional(self) -> ast.Expression:
        start = self.cursor.token.position
        condition = self._binary(1)
        if not self.cursor.at("?"):
            return condition
        self.cursor.advance()
        self.cursor.count_operator()
        then = self.expression()
        self.cursor.expect(":", "of ?:")
        with self.cursor.nested():
            otherwise = self._conditional()
        return ast.Conditional(self.cursor.span(start), condition, then, otherwise)

    def _binary(self, level: int) -> ast.Expression:
        start = self.cursor.token.position
        left = self._unary()
        while True:
            operator, tokens = self._operator()
            found = PRECEDENCE.get(operator, 0)
            if found < level or (self.no_greater and operator.startswith(">")):
                return left
            for _ in range(tokens):
                self.cursor.advance()
            self.cursor.count_operator()
            with self.cursor.nested():
                right = self._binary(found + 1)
            left = ast.Binary(self.cursor.span(start), operator, left, right)

    def _operator(self) -> tuple[str, int]:
        """Returns the current operator and the number of its tokens. Two adjacent `>` are one
        shift."""
        token = self.cursor.token
        if token.kind == ">" and token.joined and self.cursor.peek().kind == ">":
            return ">>", 2
        return token.kind, 1

    def _unary(self) -> ast.Expression:
        start = self.cursor.token
        if self._pending is not None:
            return self.postfix()
        if start.kind in _UNARY:
            self.cursor.advance()
            with self.cursor.nested():
                operand = self._unary()
            return ast.Unary(self.cursor.span(start.position), start.kind, operand)
        if start.kind == "(" and self.types.at_type(1):
            return self._cast_or_group()
        return self.postfix()

    def _cast_or_group(self) -> ast.Expression:
        """Parses `(Type) operand`, or a group that begins with a type's name, as in
        `(Suits.Clubs)`."""
        start = self.cursor.expect("(").position
        type_ref = self.types.type_ref()
        if self.cursor.accept(")"):
            with self.cursor.nested():
                operand = self._unary()
            return ast.Cast(self.cursor.span(start), type_ref, operand)
        return self.suffixes(self._group_from(self._after_type(type_ref)), start)

    def _group_from(self, first: ast.Expression) -> ast.Expression:
        """Parses the rest of `(first ...)`. first: the leftmost operand, which has already been
        read."""
        outer, self.no_greater = self.no_greater, False
        self._pending, self._pending_start = first, first.position
        try:
            with self.cursor.nested():
                result = self._conditional()
        finally:
            self.no_greater = outer
        self.cursor.expect(")")
        return result

    def postfix(self) -> ast.Expression:
        """Parses an operand with its suffixes: members, indices, slices and calls."""
        start = self.cursor.token.position
        if self._pending is not None:
            pending, self._pending = self._pending, None
            return self.suffixes(pending, self._pending_start)
        return self.suffixes(self.operand(), start)

    def suffixes(self, base: ast.Expression, start: Position) -> ast.Expression:
        while True:
            kind = self.cursor.token.kind
            if kind == ".":
                self.cursor.advance()
                member = self.cursor.name("of a member")
                base = ast.Member(self.cursor.span(start), base, member.text, member.position)
            elif kind == "[":
                base = self._index(base, start)
            elif kind == "(":
                arguments = self.arguments()
                base = ast.Call(self.cursor.span(start), base, (), arguments)
            elif kind == "<":
                call = self._generic_call(base, start)
                if call is None:
                    return base
                base = call
            else:
                return base
            self.cursor.count_operator()

    def _index(self, base: ast.Expression, start: Position) -> ast.Expression:
        self.cursor.expect("[")
        first = self.expression()
        if self.cursor.accept(":"):
            low = self.expression()
            self.cursor.expect("]")
            return ast.Slice(self.cursor.span(start), base, first, low)
        if self.cursor.accept("+:"):
            width = self.expression()
            self.cursor.expect("]")
            return ast.PlusSlice(self.cursor.span(start), base, first, width)
        self.cursor.expect("]")
        return ast.Index(self.cursor.span(start), base, first)

    def _generic_call(self, base: ast.Expression, start: Position) -> ast.Expression | None:
        """Parses `base<types>(arguments)`. Returns None if `<` is not followed by types and an
        opening parenthesis, because it is then a comparison."""
        if not (self.types.at_type(1) or self.cursor.peek().kind in ("void", "_")):
            return None

        def read() -> tuple[ast.TypeRef, ...] | None:
            types = self.types.type_arguments()
            return types if self.cursor.at("(") else None

        types = self.cursor.attempt(read)
        if types is None:
            return None
        arguments = self.arguments()
        return ast.Call(self.cursor.span(start), base, types, arguments)

    def arguments(self) -> tuple[ast.Argument, ...]:
        """Parses the arguments of a call, such as `(a, b = c, _)`."""
        self.cursor.expect("(")
        before = self.cursor.operators
        result = self.cursor.comma_list(self._argument, ")")
        self.cursor.operators = before
        return result

    def _argument(self) -> ast.Argument:
        start = self.cursor.token.position
        name = None
        if self.cursor.at_name() and self.cursor.peek().kind == "=":
            name = self.cursor.advance().text
            self.cursor.advance()
        value = None if self.cursor.accept("_") else self.expression()
        return ast.Argument(self.cursor.span(start), name, value)

    def operand(self) -> ast.Expression:
        token = self.cursor.token
        kind = token.kind
        if kind == IDENTIFIER or kind in NAME_KEYWORDS:
            if self.cursor.is_type_name(token):
                return self._after_type(self.types.named_type())
            self.cursor.advance()
            return ast.NameExpression(token.position, token.text)
        if kind == INTEGER:
            return self._integer()
        if kind == "(":
            return self._group()
        if kind == "{":
            return self._braces()
        if kind in _SPECIAL_LITERALS:
            return self._special_literal()
        if kind == STRING:
            self.cursor.advance()
            return ast.StringLiteral(token.position, parse_string(token.text))
        if kind == ".":
            return self._absolute()
        if kind == "error":
            self.cursor.advance()
            return self._after_type(ast.BaseTypeRef(token.position, "error"))
        return self.cursor.fail_expected("an expression")

    def _group(self) -> ast.Expression:
        self.cursor.expect("(")
        result = self.expression()
        self.cursor.expect(")")
        if isinstance(result, ast.Conditional):
            result.parenthesized = True
        return result

    def _special_literal(self) -> ast.Expression:
        token = self.cursor.advance()
        if token.kind in ("true", "false"):
            return ast.BoolLiteral(token.position, token.kind == "true")
        if token.kind == "this":
            return ast.ThisExpression(token.position)
        if token.kind == "...":
            return ast.DefaultInitializer(token.position)
        return ast.InvalidHeader(token.position)

    def _absolute(self) -> ast.Expression:
        if self.types.at_type():
            return self._after_type(self.types.named_type())
        start = self.cursor.expect(".").position
        name = self.cursor.name("after '.'")
        return ast.NameExpression(self.cursor.span(start), name.text, absolute=True)

    def _after_type(self, type_ref: ast.TypeRef) -> ast.Expression:
        """Parses the rest of `Type(arguments)`, or of the `Type` in `Type.member`."""
        start = type_ref.position
        if self.cursor.at("("):
            arguments = self.arguments()
            return ast.ConstructorCall(self.cursor.span(start), type_ref, arguments)
        if not self.cursor.at("."):
            name = getattr(type_ref, "name", "")
            hint = (
                f"an instance of a parser or control is made by {name}(); of a header or struct, "
                f"name the variable or field that has the type {name}"
            )
            self.cursor.fail("a type cannot be used as a value here", start, hint if name else "")
        return ast.TypeExpression(start, type_ref)

    def _integer(self) -> ast.Expression:
        token = self.cursor.advance()
        number = parse_number(token.text)
        if isinstance(number, str):
            self.cursor.fail(number, token.position)
        return ast.IntLiteral(token.position, number.value, number.width, number.signed)

    def _braces(self) -> ast.Expression:
        """Parses a list `{ a, b }` or a structure `{ a = x, b = y }`. Both may end with `...`."""
        start = self.cursor.expect("{").position
        before = self.cursor.operators
        if self.cursor.at_name() and self.cursor.peek().kind == "=":
            return self._struct_members(start, before)
        elements = list(self.cursor.comma_list(self._element, "}", trailing_comma=True))
        self.cursor.operators = before
        has_dots = bool(elements) and isinstance(elements[-1], ast.DefaultInitializer)
        if has_dots:
            elements.pop()
        return ast.ListExpression(self.cursor.span(start), tuple(elements), has_dots)

    def _element(self) -> ast.Expression:
        before, self.cursor.operators = self.cursor.operators, 0
        result = self.expression()
        self.cursor.operators = before
        return result

    def _struct_members(self, start: Position, before: int) -> ast.Expression:
        members = list(self.cursor.comma_list(self._struct_member, "}", trailing_comma=True))
        self.cursor.operators = before
        has_dots = members[-1] is None
        given = tuple(m for m in members if m is not None)
        if len(given) + has_dots != len(members):
            self.cursor.fail("'...' may only be the last member", start)
        return ast.StructExpression(self.cursor.span(start), given, has_dots)

    def _struct_member(self) -> ast.StructMember | None:
        if self.cursor.accept("..."):
            return None
        name = self.cursor.name("of a member")
        self.cursor.expect("=")
        return ast.StructMember(name.position, name.text, self._element())

    # ---- keysets

    def keyset(self) -> ast.Expression:
        """Parses the grammar's keysetExpression: `(a, b &&& c, _)` as a parenthesized list, or one
        simple keyset.

        Parentheses may also belong to an expression, as in `(a + b)`, which is a simple keyset.
        """
        self.cursor.operators = 0
        if self.cursor.at("(") and not self._cast_ahead():
            group = self.cursor.attempt(self._keyset_group)
            if group is not None:
                return group
        return self.simple_keyset()

    def _cast_ahead(self) -> bool:
        return self.types.at_type(1) and self.cursor.peek(1).kind != IDENTIFIER

    def _keyset_group(self) -> ast.Expression | None:
        start = self.cursor.expect("(").position
        elements = self.cursor.comma_list(self._keyset_element, ")")
        if not self.cursor.at(":"):
            return None
        lone = len(elements) == 1
        if lone and not isinstance(elements[0], (ast.Mask, ast.Range, ast.DefaultKeyset)):
            return elements[0]
        return ast.ListExpression(self.cursor.span(start), elements, parenthesized=True)

    def _keyset_element(self) -> ast.Expression:
        self.cursor.operators = 0
        return self.simple_keyset()

    def simple_keyset(self) -> ast.Expression:
        start = self.cursor.token
        if start.kind in ("default", "_"):
            self.cursor.advance()
            return ast.DefaultKeyset(start.position, start.kind)
        value = self.expression()
        if self.cursor.accept("&&&"):
            mask = self.expression()
            return ast.Mask(self.cursor.span(start.position), value, mask)
        if self.cursor.accept(".."):
            high = self.expression()
            return ast.Range(self.cursor.span(start.position), value, high)
        return value
