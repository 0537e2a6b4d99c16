"""Parses types as written: `bit<8>`, `H[4]`, `tuple<bit<8>, S<T>>`."""

from __future__ import annotations

import contextlib

from p4native.compiler import ast
from p4native.compiler.syntax.cursor import BASE_TYPES, Cursor, SyntaxFailure
from p4native.compiler.syntax.lexer import Token


class TypeParser:
    """The part that parses types, type arguments and type parameters."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor

    def at_type(self, ahead: int = 0) -> bool:
        """Whether the token begins a type: it is a keyword or the name of a type in scope."""
        token = self.cursor.peek(ahead)
        if token.kind == ".":
            return self.is_type_name_globally(self.cursor.peek(ahead + 1))
        if token.kind == "list":
            return self.cursor.peek(ahead + 1).kind == "<"
        return token.kind in BASE_TYPES or token.kind == "tuple" or self.cursor.is_type_name(token)

    def is_type_name_globally(self, token: Token) -> bool:
        return self.cursor.type_names[0].get(token.text, False)

    def type_ref(self) -> ast.TypeRef:
        """Parses the grammar's typeRef, including header stacks."""
        start = self.cursor.token.position
        with self.cursor.nested():
            result = self._plain_type()
        while self.cursor.at("["):
            result = self.stack_suffix(result)
            result.position = self.cursor.span(start)
        return result

    def stack_suffix(self, element: ast.TypeRef) -> ast.StackTypeRef:
        self.cursor.expect("[")
        self.cursor.count_operator()
        size = self.cursor.expression()
        self.cursor.expect("]")
        return ast.StackTypeRef(element.position, element, size)

    def type_or_void(self) -> ast.TypeRef:
        """Parses a type or `void`. Also accepts a name that is not known as a type, because it may
        be a type parameter that is declared further to the right."""
        if self.cursor.at("void"):
            return ast.BaseTypeRef(self.cursor.advance().position, "void")
        return self.type_ref()

    def _plain_type(self) -> ast.TypeRef:
        start = self.cursor.token
        kind = start.kind
        if kind in ("bit", "int", "varbit"):
            return self._bits_type()
        if kind in BASE_TYPES:
            self.cursor.advance()
            return ast.BaseTypeRef(start.position, kind)
        if kind == "tuple":
            self.cursor.advance()
            elements = self.type_arguments()
            return ast.TupleTypeRef(self.cursor.span(start.position), elements)
        if kind == "list" and self.cursor.peek().kind == "<":
            return self._list_type()
        return self.named_type()

    def _bits_type(self) -> ast.TypeRef:
        start = self.cursor.advance()
        if not self.cursor.at("<"):
            if start.kind == "int":
                return ast.BaseTypeRef(start.position, "int")
            if start.kind == "varbit":
                self.cursor.expect("<", "after varbit")
            return ast.BitsTypeRef(start.position, start.kind, None)
        self.cursor.advance()
        width = self.cursor.type_argument_expression()
        self._close_width(start.kind)
        return ast.BitsTypeRef(self.cursor.span(start.position), start.kind, width)

    def _close_width(self, kind: str) -> None:
        """Consumes the `>` of a width. A `;` in front of it, which a #define often brings, is
        reported and passed over."""
        if self.cursor.at(";") and self.cursor.peek().kind == ">" and not self.cursor.trying:
            with contextlib.suppress(SyntaxFailure):
                self.cursor.fail_expected("'>'", f"after the width of {kind}")
            self.cursor.advance()
        self.cursor.expect(">", f"after the width of {kind}")

    def _list_type(self) -> ast.TypeRef:
        start = self.cursor.advance()
        arguments = self.type_arguments()
        if len(arguments) != 1:
            self.cursor.fail(f"list takes one type, not {len(arguments)}", start.position)
        return ast.ListTypeRef(self.cursor.span(start.position), arguments[0])

    def named_type(self) -> ast.TypeRef:
        """Parses a type given by name: `Name`, `.Name` or `Name<arguments>`."""
        start = self.cursor.token.position
        absolute = self.cursor.accept(".")
        if not self.cursor.at_name():
            self.cursor.fail_expected("a type")
        name = self.cursor.advance()
        base = ast.NamedTypeRef(self.cursor.span(start), name.text, absolute)
        if not self.cursor.at("<"):
            return base
        arguments = self.type_arguments()
        return ast.SpecializedTypeRef(self.cursor.span(start), base, arguments)

    def type_arguments(self) -> tuple[ast.TypeRef, ...]:
        """Parses type arguments: `<A, B>`."""
        self.cursor.expect("<")
        return self.cursor.comma_list(self._type_argument, ">")

    def _type_argument(self) -> ast.TypeRef:
        if self.cursor.at("_"):
            return ast.DontCareTypeRef(self.cursor.advance().position)
        return self.type_or_void()

    def type_parameters(self) -> tuple[ast.TypeParameter, ...]:
        """Parses type parameters, `<T, U>`, if there are any. Their names become types of the
        current scope."""
        if not self.cursor.accept("<"):
            return ()
        return self.cursor.comma_list(self._type_parameter, ">")

    def _type_parameter(self) -> ast.TypeParameter:
        name = self.cursor.name("of a type parameter")
        self.cursor.declare(name.text, is_type=True)
        return ast.TypeParameter(name.position, name.text, ())
