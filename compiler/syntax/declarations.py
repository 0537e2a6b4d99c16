"""Parsing declarations other than parsers, controls and tables: types, externs, functions."""

from __future__ import annotations

from agglab.compiler import ast
from agglab.compiler.syntax.statements import StatementParser

Annotations = tuple[ast.Annotation, ...]
STRUCT_KINDS = frozenset({"struct", "header", "header_union"})


class DeclarationParser(StatementParser):
    # ---- parameters

    def parameters(self) -> tuple[ast.Parameter, ...]:
        self.expect("(")
        found = self.comma_list(self._parameter, ")")
        for parameter in found:
            self.declare(parameter.name, is_type=False)
        return found

    def _parameter(self) -> ast.Parameter:
        annotations = self.annotations()
        direction = self.advance().kind if self.at("in", "out", "inout") else ""
        self.operators = 0
        type_ref = self.type_ref()
        name = self.name("of a parameter")
        type_ref = self.declarator_suffix(type_ref)
        default = self.root_expression() if self.accept("=") else None
        return ast.Parameter(name.position, name.text, annotations, direction, type_ref, default)

    # ---- types

    def struct(self, annotations: Annotations) -> ast.StructDeclaration:
        kind = self.advance().kind
        name = self.name(f"of a {kind}")
        self.declare(name.text, is_type=True)
        with self.scope():
            type_parameters = self.type_parameters()
            self.expect("{")
            fields = self.until("}", self._field)
        return ast.StructDeclaration(
            name.position, name.text, annotations, kind, type_parameters, fields
        )

    def _field(self) -> ast.StructField:
        annotations = self.annotations()
        self.operators = 0
        type_ref = self.type_ref()
        name = self.name("of a field")
        type_ref = self.declarator_suffix(type_ref)
        self.expect(";")
        return ast.StructField(name.position, name.text, annotations, type_ref)

    def enum(self, annotations: Annotations) -> ast.EnumDeclaration:
        self.expect("enum")
        underlying = None
        if self.peek().kind != "{":
            underlying = self.type_ref()
        name = self.name("of an enum")
        self.declare(name.text, is_type=True)
        self.expect("{")
        read = self._valued_member if underlying else self._member
        members = self.comma_list(read, "}", trailing_comma=True)
        return ast.EnumDeclaration(name.position, name.text, annotations, underlying, members)

    def _member(self) -> ast.EnumMember:
        annotations = self.annotations()
        name = self.name("of a member")
        if self.at("="):
            self.fail(
                "a member with a value needs an enum with a type",
                hint="write `enum bit<8> NAME { ... }`",
            )
        return ast.EnumMember(name.position, name.text, annotations)

    def _valued_member(self) -> ast.EnumMember:
        annotations = self.annotations()
        name = self.name("of a member")
        self.expect("=", "and the member's value")
        return ast.EnumMember(name.position, name.text, annotations, self.root_expression())

    def members(self, annotations: Annotations) -> ast.Declaration:
        """`error { ... }` and `match_kind { ... }`."""
        start = self.advance()
        self.expect("{")
        found = self.comma_list(self._member, "}", trailing_comma=True)
        make = ast.ErrorDeclaration if start.kind == "error" else ast.MatchKindDeclaration
        return make(start.position, start.kind, annotations, found)

    def typedef(self, annotations: Annotations) -> ast.TypedefDeclaration:
        """`typedef T name;`, `type T name;`, `typedef struct S { ... } name;`."""
        new_type = self.advance().kind == "type"
        self.operators = 0
        inner = self.annotations()
        if not new_type and (self.at("enum") or self.token.kind in STRUCT_KINDS):
            derived = self.enum(inner) if self.at("enum") else self.struct(inner)
            self.extra.append(derived)
            type_ref: ast.TypeRef = ast.NamedTypeRef(derived.position, derived.name)
        else:
            type_ref = self.type_ref()
        name = self.name("of the new type")
        type_ref = self.declarator_suffix(type_ref)
        self.expect(";")
        self.declare(name.text, is_type=True)
        return ast.TypedefDeclaration(name.position, name.text, annotations, type_ref, new_type)

    # declarations found inside others, to stand before them
    extra: list[ast.Declaration]

    # ---- functions and externs

    def function(self, annotations: Annotations) -> ast.Declaration:
        """`type name<T>(parameters) { ... }`, or an instantiation that begins alike."""
        self.operators = 0
        type_ref = self.type_or_void()
        if self.at("("):
            return self.instantiation(type_ref, annotations)
        prototype = self._prototype(annotations, type_ref, with_body=True)
        assert prototype.body is not None
        return prototype

    def _prototype(
        self, annotations: Annotations, result: ast.TypeRef, with_body: bool = False
    ) -> ast.FunctionDeclaration:
        name = self.name("of a function")
        if self.at(";", "="):
            self.fail(
                f"variable '{name.text}' outside of a parser, control or function",
                name.position,
                "only constants and instances may stand here",
            )
        self.declare(name.text, is_type=False)
        body = None
        with self.scope():
            type_parameters = self.type_parameters()
            parameters = self.parameters()
            if with_body:
                body = self.block()
        return ast.FunctionDeclaration(
            name.position, name.text, annotations, result, type_parameters, parameters, body
        )

    def extern(self, annotations: Annotations) -> ast.Declaration | None:
        """An extern object, function, or (None) a forward declaration `extern X;`."""
        self.expect("extern")
        following = self.peek().kind
        if self.at_name() and following == ";":
            self.declare(self.advance().text, is_type=True)
            self.advance()
            return None
        if self.at_name() and (following == "{" or self._generic_extern_ahead()):
            return self._extern_object(annotations)
        prototype = self._prototype(annotations, self.type_or_void())
        self.expect(";")
        return prototype

    def _generic_extern_ahead(self) -> bool:
        """`name < ... > {`: the object form; a function has its name behind the `>`."""
        if self.peek().kind != "<":
            return False
        ahead = 2
        while self.peek(ahead).kind not in (">", ";", "{", "end of file"):
            ahead += 1
        return self.peek(ahead).kind == ">" and self.peek(ahead + 1).kind == "{"

    def _extern_object(self, annotations: Annotations) -> ast.ExternDeclaration:
        name = self.name("of an extern")
        self.declare(name.text, is_type=True)
        with self.scope():
            type_parameters = self.type_parameters()
            self.expect("{")
            methods = self.until("}", lambda: self._method(name.text))
        return ast.ExternDeclaration(
            name.position, name.text, annotations, type_parameters, methods
        )

    def _method(self, extern: str) -> ast.FunctionDeclaration:
        annotations = self.annotations()
        if self.token.text == extern and self.peek().kind == "(":
            return self._constructor(annotations)
        abstract = self.accept("abstract")
        self.operators = 0
        result = self.type_or_void()
        if self.at("("):
            self.fail(f"constructor must have the extern's name '{extern}'", self.previous.position)
        with self.scope():
            method = self._prototype(annotations, result)
        self.expect(";")
        method.abstract = abstract
        return method

    def _constructor(self, annotations: Annotations) -> ast.FunctionDeclaration:
        name = self.advance()
        with self.scope():
            parameters = self.parameters()
        self.expect(";")
        return ast.FunctionDeclaration(name.position, name.text, annotations, None, (), parameters)

    def initializer(self) -> tuple[ast.Declaration, ...]:
        """`{ functions and instances }` of an instantiation."""
        self.expect("{")
        with self.nested(), self.scope():
            return self.until("}", lambda: self.function(self.annotations()))
