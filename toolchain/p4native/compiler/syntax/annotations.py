"""Parses annotations and pragmas: `@name`, `@name(tokens)`, `@name[a = 1]`, `@pragma name x`."""

from __future__ import annotations

from p4native.compiler import ast
from p4native.compiler.source import Position
from p4native.compiler.syntax.cursor import Cursor, SyntaxFailure
from p4native.compiler.syntax.expressions import ExpressionParser
from p4native.compiler.syntax.lexer import END, END_PRAGMA, IDENTIFIER, KEYWORDS, PRAGMA, Token


class AnnotationParser:
    """The part that parses annotations and pragmas before declarations and statements."""

    def __init__(self, cursor: Cursor, expressions: ExpressionParser) -> None:
        self.cursor = cursor
        self.expressions = expressions

    def read(self) -> tuple[ast.Annotation, ...]:
        found: list[ast.Annotation] = []
        while self.cursor.at("@", PRAGMA):
            found.append(self._annotation())
        return tuple(found)

    def _annotation(self) -> ast.Annotation:
        start = self.cursor.advance()
        name = self.cursor.token
        if name.kind != IDENTIFIER and name.kind not in KEYWORDS:
            self.cursor.fail_expected("an annotation's name")
        self.cursor.advance()
        place = self.cursor.span(start.position)
        if start.kind == PRAGMA:
            return self._body(place, name.text, END_PRAGMA)
        if self.cursor.accept("("):
            return self._body(place, name.text, ")")
        if self.cursor.accept("["):
            return self._structured(place, name.text)
        return ast.Annotation(place, name.text)

    def _structured(self, place: Position, name: str) -> ast.Annotation:
        self.cursor.operators = 0
        if self.cursor.at_name() and self.cursor.peek().kind == "=":
            pairs = self.cursor.comma_list(self._pair, "]", trailing_comma=True)
            names = [key for key, _ in pairs]
            for key in {k for k in names if names.count(k) > 1}:
                self.cursor.diagnostics.error(place, f"key '{key}' is given twice in @{name}")
            return ast.Annotation(place, name, pairs=pairs, structured=True)
        arguments = self.cursor.comma_list(self.expressions.expression, "]", trailing_comma=True)
        return ast.Annotation(place, name, arguments=arguments, structured=True)

    def _pair(self) -> tuple[str, ast.Expression]:
        name = self.cursor.name("of an annotation's key")
        self.cursor.expect("=")
        return name.text, self.expressions.expression()

    def _body(self, place: Position, name: str, closer: str) -> ast.Annotation:
        start = self.cursor.index
        tokens = self._body_tokens(closer)
        text = tuple(t.text for t in tokens)
        end = self.cursor.index
        arguments = self._as_expressions(start, closer) if tokens else ()
        self.cursor.rewind(end)
        if name == "name" and len(arguments) != 1:
            self.cursor.diagnostics.error(place, "@name needs one string")
        return ast.Annotation(place, name, text, arguments)

    def _body_tokens(self, closer: str) -> list[Token]:
        """Returns the tokens up to the first closer that is not inside parentheses, and consumes
        the closer."""
        tokens: list[Token] = []
        depth = 0
        while depth or not self.cursor.at(closer):
            if self.cursor.at(END):
                self.cursor.fail_expected(f"'{closer}' at the annotation's end")
            depth += {"(": 1, ")": -1}.get(self.cursor.token.kind, 0)
            tokens.append(self.cursor.advance())
        self.cursor.advance()
        return tokens

    def _as_expressions(self, start: int, closer: str) -> tuple[ast.Expression, ...]:
        """Returns the body as an expression list, or an empty tuple if it is not one."""
        self.cursor.rewind(start)
        self.cursor.trying += 1
        self.cursor.operators = 0
        try:
            return self.cursor.comma_list(self.expressions.expression, closer)
        except SyntaxFailure:
            return ()
        finally:
            self.cursor.trying -= 1
