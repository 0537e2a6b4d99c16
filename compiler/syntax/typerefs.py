"""Parsing types as written: `bit<8>`, `H[4]`, `tuple<bit<8>, S<T>>`."""

from __future__ import annotations

from agglab.compiler import ast
from agglab.compiler.syntax.cursor import BASE_TYPES, Cursor
from agglab.compiler.syntax.lexer import Token

_TYPE_KEYWORDS = BASE_TYPES | {"tuple", "list", "void"}


class TypeParser(Cursor):
    def at_type(self, ahead: int = 0) -> bool:
        """Whether the token begins a type: a keyword or the name of a type in scope."""
        token = self.peek(ahead)
        if token.kind == ".":
            return self.is_type_name_globally(self.peek(ahead + 1))
        if token.kind == "list":
            return self.peek(ahead + 1).kind == "<"
        return token.kind in BASE_TYPES or token.kind == "tuple" or self.is_type_name(token)

    def is_type_name_globally(self, token: Token) -> bool:
        return self.type_names[0].get(token.text, False)

    def type_ref(self) -> ast.TypeRef:
        """typeRef of the grammar, header stacks included."""
        start = self.token.position
        with self.nested():
            result = self._plain_type()
        while self.at("["):
            result = self.stack_suffix(result)
            result.position = self.span(start)
        return result

    def stack_suffix(self, element: ast.TypeRef) -> ast.StackTypeRef:
        self.expect("[")
        self.count_operator()
        size = self.expression()
        self.expect("]")
        return ast.StackTypeRef(element.position, element, size)

    def type_or_void(self) -> ast.TypeRef:
        """Also a name not known as a type: a type parameter declared further right."""
        if self.at("void"):
            return ast.BaseTypeRef(self.advance().position, "void")
        return self.type_ref()

    def _plain_type(self) -> ast.TypeRef:
        start = self.token
        kind = start.kind
        if kind in ("bit", "int", "varbit"):
            return self._bits_type()
        if kind in BASE_TYPES:
            self.advance()
            return ast.BaseTypeRef(start.position, kind)
        if kind == "tuple":
            self.advance()
            elements = self.type_arguments()
            return ast.TupleTypeRef(self.span(start.position), elements)
        if kind == "list" and self.peek().kind == "<":
            return self._list_type()
        return self.named_type()

    def _bits_type(self) -> ast.TypeRef:
        start = self.advance()
        if not self.at("<"):
            if start.kind == "int":
                return ast.BaseTypeRef(start.position, "int")
            if start.kind == "varbit":
                self.expect("<", "after varbit")
            return ast.BitsTypeRef(start.position, start.kind, None)
        self.advance()
        width = self.type_argument_expression()
        self.expect(">", f"after the width of {start.kind}")
        return ast.BitsTypeRef(self.span(start.position), start.kind, width)

    def _list_type(self) -> ast.TypeRef:
        start = self.advance()
        arguments = self.type_arguments()
        if len(arguments) != 1:
            self.fail(f"list takes one type, not {len(arguments)}", start.position)
        return ast.ListTypeRef(self.span(start.position), arguments[0])

    def named_type(self) -> ast.TypeRef:
        """`Name`, `.Name`, `Name<arguments>`."""
        start = self.token.position
        absolute = self.accept(".")
        if not self.at_name():
            self._expected("a type")
        name = self.advance()
        base = ast.NamedTypeRef(self.span(start), name.text, absolute)
        if not self.at("<"):
            return base
        arguments = self.type_arguments()
        return ast.SpecializedTypeRef(self.span(start), base, arguments)

    def type_arguments(self) -> tuple[ast.TypeRef, ...]:
        """`<A, B>`."""
        self.expect("<")
        return self.comma_list(self._type_argument, ">")

    def _type_argument(self) -> ast.TypeRef:
        if self.at("_"):
            return ast.DontCareTypeRef(self.advance().position)
        return self.type_or_void()

    def type_parameters(self) -> tuple[ast.TypeParameter, ...]:
        """`<T, U>`, or nothing; the names become types of the current scope."""
        if not self.accept("<"):
            return ()
        return self.comma_list(self._type_parameter, ">")

    def _type_parameter(self) -> ast.TypeParameter:
        name = self.name("of a type parameter")
        self.declare(name.text, is_type=True)
        return ast.TypeParameter(name.position, name.text, ())
