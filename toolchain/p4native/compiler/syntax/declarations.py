"""Parses declarations other than parsers, controls and tables: types, externs, functions."""

from __future__ import annotations

from p4native.compiler import ast
from p4native.compiler.syntax.annotations import AnnotationParser
from p4native.compiler.syntax.cursor import Cursor
from p4native.compiler.syntax.expressions import ExpressionParser
from p4native.compiler.syntax.statements import StatementParser
from p4native.compiler.syntax.typerefs import TypeParser

Annotations = tuple[ast.Annotation, ...]
STRUCT_KINDS = frozenset({"struct", "header", "header_union"})


class DeclarationParser:
    """The part that parses types, functions, externs and parameters."""

    def __init__(
        self,
        cursor: Cursor,
        types: TypeParser,
        expressions: ExpressionParser,
        annotations: AnnotationParser,
        statements: StatementParser,
    ) -> None:
        self.cursor = cursor
        self.types = types
        self.expressions = expressions
        self.annotations = annotations
        self.statements = statements
        # Declarations found inside others, to stand before them.
        self.derived: list[ast.Declaration] = []
        cursor.initializer = self.initializer

    # ---- parameters

    def parameters(self) -> tuple[ast.Parameter, ...]:
        self.cursor.expect("(")
        found = self.cursor.comma_list(self._parameter, ")")
        for parameter in found:
            self.cursor.declare(parameter.name, is_type=False)
        return found

    def _parameter(self) -> ast.Parameter:
        annotations = self.annotations.read()
        direction = self.cursor.advance().kind if self.cursor.at("in", "out", "inout") else ""
        self.cursor.operators = 0
        type_ref = self.types.type_ref()
        name = self.cursor.name("of a parameter")
        type_ref = self.statements.declarator_suffix(type_ref)
        default = self.expressions.root_expression() if self.cursor.accept("=") else None
        return ast.Parameter(name.position, name.text, annotations, direction, type_ref, default)

    # ---- types

    def struct(self, annotations: Annotations) -> ast.StructDeclaration:
        kind = self.cursor.advance().kind
        name = self.cursor.name(f"of a {kind}")
        self.cursor.declare(name.text, is_type=True)
        with self.cursor.scope():
            type_parameters = self.types.type_parameters()
            fields = self.cursor.block(self._field)
        return ast.StructDeclaration(
            name.position, name.text, annotations, kind, type_parameters, fields
        )

    def _field(self) -> ast.StructField:
        annotations = self.annotations.read()
        self.cursor.operators = 0
        type_ref = self.types.type_ref()
        name = self.cursor.name("of a field")
        type_ref = self.statements.declarator_suffix(type_ref)
        self.cursor.expect(";")
        return ast.StructField(name.position, name.text, annotations, type_ref)

    def enum(self, annotations: Annotations) -> ast.EnumDeclaration:
        self.cursor.expect("enum")
        underlying = None
        if self.cursor.peek().kind != "{":
            underlying = self.types.type_ref()
        name = self.cursor.name("of an enum")
        self.cursor.declare(name.text, is_type=True)
        self.cursor.expect("{")
        read = self._valued_member if underlying else self._member
        members = self.cursor.comma_list(read, "}", trailing_comma=True)
        return ast.EnumDeclaration(name.position, name.text, annotations, underlying, members)

    def _member(self) -> ast.EnumMember:
        annotations = self.annotations.read()
        name = self.cursor.name("of a member")
        if self.cursor.at("="):
            self.cursor.fail(
                "a member with a value needs an enum with a type",
                hint="write `enum bit<8> NAME { ... }`",
            )
        return ast.EnumMember(name.position, name.text, annotations)

    def _valued_member(self) -> ast.EnumMember:
        annotations = self.annotations.read()
        name = self.cursor.name("of a member")
        self.cursor.expect("=", "and the member's value")
        return ast.EnumMember(
            name.position, name.text, annotations, self.expressions.root_expression()
        )

    def members(self, annotations: Annotations) -> ast.Declaration:
        """Parses `error { ... }` and `match_kind { ... }`."""
        start = self.cursor.advance()
        self.cursor.expect("{")
        found = self.cursor.comma_list(self._member, "}", trailing_comma=True)
        make = ast.ErrorDeclaration if start.kind == "error" else ast.MatchKindDeclaration
        return make(start.position, start.kind, annotations, found)

    def typedef(self, annotations: Annotations) -> ast.TypedefDeclaration:
        """Parses `typedef T name;`, `type T name;` and `typedef struct S { ... } name;`."""
        new_type = self.cursor.advance().kind == "type"
        self.cursor.operators = 0
        inner = self.annotations.read()
        if not new_type and (self.cursor.at("enum") or self.cursor.token.kind in STRUCT_KINDS):
            derived = self.enum(inner) if self.cursor.at("enum") else self.struct(inner)
            self.derived.append(derived)
            type_ref: ast.TypeRef = ast.NamedTypeRef(derived.position, derived.name)
        else:
            type_ref = self.types.type_ref()
        name = self.cursor.name("of the new type")
        type_ref = self.statements.declarator_suffix(type_ref)
        self.cursor.expect(";")
        self.cursor.declare(name.text, is_type=True)
        return ast.TypedefDeclaration(name.position, name.text, annotations, type_ref, new_type)

    # ---- functions and externs

    def function(self, annotations: Annotations) -> ast.Declaration:
        """Parses `type name<T>(parameters) { ... }`, or an instantiation that begins in the same
        way."""
        self.cursor.operators = 0
        type_ref = self.types.type_or_void()
        if self.cursor.at("("):
            return self.statements.instantiation(type_ref, annotations)
        prototype = self._prototype(annotations, type_ref, with_body=True)
        assert prototype.body is not None
        return prototype

    def _prototype(
        self, annotations: Annotations, result: ast.TypeRef, with_body: bool = False
    ) -> ast.FunctionDeclaration:
        name = self.cursor.name("of a function")
        if self.cursor.at(";", "="):
            self.cursor.fail(
                f"variable '{name.text}' must be declared in a parser, control or function",
                name.position,
                "only constants and instances may stand here",
            )
        self.cursor.declare(name.text, is_type=False)
        body = None
        with self.cursor.scope():
            type_parameters = self.types.type_parameters()
            parameters = self.parameters()
            if with_body:
                body = self.statements.block()
        return ast.FunctionDeclaration(
            name.position, name.text, annotations, result, type_parameters, parameters, body
        )

    def extern(self, annotations: Annotations) -> ast.Declaration | None:
        """Parses an extern object or function. Returns None for a forward declaration `extern
        X;`."""
        self.cursor.expect("extern")
        following = self.cursor.peek().kind
        if self.cursor.at_name() and following == ";":
            self.cursor.declare(self.cursor.advance().text, is_type=True)
            self.cursor.advance()
            return None
        if self.cursor.at_name() and (following == "{" or self._generic_extern_ahead()):
            return self._extern_object(annotations)
        prototype = self._prototype(annotations, self.types.type_or_void())
        self.cursor.expect(";")
        return prototype

    def _generic_extern_ahead(self) -> bool:
        """Whether the next tokens are `name < ... > {`, which begin a generic extern object. A
        generic extern function has its name behind the `>`."""
        if self.cursor.peek().kind != "<":
            return False
        ahead = 2
        while self.cursor.peek(ahead).kind not in (">", ";", "{", "end of file"):
            ahead += 1
        return self.cursor.peek(ahead).kind == ">" and self.cursor.peek(ahead + 1).kind == "{"

    def _extern_object(self, annotations: Annotations) -> ast.ExternDeclaration:
        name = self.cursor.name("of an extern")
        self.cursor.declare(name.text, is_type=True)
        with self.cursor.scope():
            type_parameters = self.types.type_parameters()
            methods = self.cursor.block(lambda: self._method(name.text))
        return ast.ExternDeclaration(
            name.position, name.text, annotations, type_parameters, methods
        )

    def _method(self, extern: str) -> ast.FunctionDeclaration:
        annotations = self.annotations.read()
        if self.cursor.token.text == extern and self.cursor.peek().kind == "(":
            return self._constructor(annotations)
        abstract = self.cursor.accept("abstract")
        self.cursor.operators = 0
        result = self.types.type_or_void()
        if self.cursor.at("("):
            self.cursor.fail(
                f"constructor must have the extern's name '{extern}'", self.cursor.previous.position
            )
        with self.cursor.scope():
            method = self._prototype(annotations, result)
        self.cursor.expect(";")
        method.abstract = abstract
        return method

    def _constructor(self, annotations: Annotations) -> ast.FunctionDeclaration:
        name = self.cursor.advance()
        with self.cursor.scope():
            parameters = self.parameters()
        self.cursor.expect(";")
        return ast.FunctionDeclaration(name.position, name.text, annotations, None, (), parameters)

    def initializer(self) -> tuple[ast.Declaration, ...]:
        """Parses the `{ functions and instances }` of an instantiation."""
        with self.cursor.nested(), self.cursor.scope():
            return self.cursor.block(lambda: self.function(self.annotations.read()))
