"""Parsing annotations and pragmas: `@name`, `@name(tokens)`, `@name[a = 1]`, `@pragma name x`."""

from __future__ import annotations

from agglab.compiler import ast
from agglab.compiler.source import Position
from agglab.compiler.syntax.cursor import SyntaxFailure
from agglab.compiler.syntax.expressions import ExpressionParser
from agglab.compiler.syntax.lexer import END, END_PRAGMA, IDENTIFIER, KEYWORDS, PRAGMA, Token


class AnnotationParser(ExpressionParser):
    def annotations(self) -> tuple[ast.Annotation, ...]:
        found: list[ast.Annotation] = []
        while self.at("@", PRAGMA):
            found.append(self._annotation())
        return tuple(found)

    def _annotation(self) -> ast.Annotation:
        start = self.advance()
        name = self.token
        if name.kind != IDENTIFIER and name.kind not in KEYWORDS:
            self._expected("an annotation's name")
        self.advance()
        place = self.span(start.position)
        if start.kind == PRAGMA:
            return self._body(place, name.text, END_PRAGMA)
        if self.accept("("):
            return self._body(place, name.text, ")")
        if self.accept("["):
            return self._structured(place, name.text)
        return ast.Annotation(place, name.text)

    def _structured(self, place: Position, name: str) -> ast.Annotation:
        self.operators = 0
        if self.at_name() and self.peek().kind == "=":
            pairs = self.comma_list(self._pair, "]", trailing_comma=True)
            names = [key for key, _ in pairs]
            for key in {k for k in names if names.count(k) > 1}:
                self.diagnostics.error(place, f"key '{key}' is given twice in @{name}")
            return ast.Annotation(place, name, pairs=pairs, structured=True)
        arguments = self.comma_list(self.expression, "]", trailing_comma=True)
        return ast.Annotation(place, name, arguments=arguments, structured=True)

    def _pair(self) -> tuple[str, ast.Expression]:
        name = self.name("of an annotation's key")
        self.expect("=")
        return name.text, self.expression()

    def _body(self, place: Position, name: str, closer: str) -> ast.Annotation:
        start = self.index
        tokens = self._body_tokens(closer)
        text = tuple(t.text for t in tokens)
        end = self.index
        arguments = self._as_expressions(start, closer) if tokens else ()
        self.rewind(end)
        if name == "name" and len(arguments) != 1:
            self.diagnostics.error(place, "@name needs one string")
        return ast.Annotation(place, name, text, arguments)

    def _body_tokens(self, closer: str) -> list[Token]:
        """The tokens up to the closer that is not inside parentheses; the closer is consumed."""
        tokens: list[Token] = []
        depth = 0
        while depth or not self.at(closer):
            if self.at(END):
                self._expected(f"'{closer}' at the annotation's end")
            depth += {"(": 1, ")": -1}.get(self.token.kind, 0)
            tokens.append(self.advance())
        self.advance()
        return tokens

    def _as_expressions(self, start: int, closer: str) -> tuple[ast.Expression, ...]:
        """The body as an expression list where it is one; else empty."""
        self.rewind(start)
        self.trying += 1
        self.operators = 0
        try:
            return self.comma_list(self.expression, closer)
        except SyntaxFailure:
            return ()
        finally:
            self.trying -= 1
