"""Parses the whole program, one top-level declaration after the other. After an error, parsing
continues with the next declaration."""

from __future__ import annotations

from collections.abc import Callable

from p4native.compiler import ast
from p4native.compiler.diagnostics import Diagnostics
from p4native.compiler.syntax.annotations import AnnotationParser
from p4native.compiler.syntax.blocks import BlockParser
from p4native.compiler.syntax.cursor import Cursor, SyntaxFailure
from p4native.compiler.syntax.declarations import STRUCT_KINDS, Annotations, DeclarationParser
from p4native.compiler.syntax.expressions import ExpressionParser
from p4native.compiler.syntax.lexer import END, KEYWORDS, Token
from p4native.compiler.syntax.statements import StatementParser
from p4native.compiler.syntax.typerefs import TypeParser

_MISPLACED = {
    "table": "a table belongs inside a control",
    "state": "a state belongs inside a parser",
    "apply": "an apply block belongs inside a control",
    "transition": "a transition belongs inside a parser state",
    "if": "statements belong inside a control, parser state, action or function",
    "import": "use #include",
}


class Parser:
    """The parser, which makes its parts and reads a program with them."""

    def __init__(self, tokens: list[Token], diagnostics: Diagnostics) -> None:
        self.cursor = Cursor(tokens, diagnostics)
        self.types = TypeParser(self.cursor)
        self.expressions = ExpressionParser(self.cursor, self.types)
        self.annotations = AnnotationParser(self.cursor, self.expressions)
        below = self.cursor, self.types, self.expressions, self.annotations
        self.statements = StatementParser(*below)
        self.declarations = DeclarationParser(*below, self.statements)
        self.blocks = BlockParser(*below, self.statements, self.declarations)

    def program(self) -> ast.Program:
        start = self.cursor.token.position
        declarations: list[ast.Declaration] = []
        recovering = False
        while not self.cursor.at(END):
            if self.cursor.at("}"):
                if not recovering:
                    self.cursor.diagnostics.error(
                        self.cursor.token.position, "this '}' closes nothing"
                    )
                self.cursor.advance()
            elif not self.cursor.accept(";"):
                found = self._one()
                recovering = found is None
                declarations.extend([*self.declarations.derived, *(found or ())])
                self.declarations.derived = []
        return ast.Program(start, tuple(declarations))

    def _one(self) -> list[ast.Declaration] | None:
        """Returns the next declaration as a list, which is empty for a forward declaration, or None
        after errors."""
        try:
            declaration = self._top_level()
        except SyntaxFailure:
            self.cursor.skip_item()
            return None
        return [] if declaration is None else [declaration]

    def _top_level(self) -> ast.Declaration | None:
        annotations = self.annotations.read()
        if annotations and self.cursor.at(END):
            return None
        kind = self.cursor.token.kind
        read = self._readers().get(kind)
        if read is not None and not (kind == "error" and self.cursor.peek().kind != "{"):
            return read(annotations)
        if (
            self.types.at_type()
            or kind == "void"
            or (self.cursor.at_name() and self.cursor.peek().kind != "=")
        ):
            self._refuse_capitals()
            if kind in _MISPLACED:
                self.cursor.fail(f"'{kind}' is not allowed here", hint=_MISPLACED[kind])
            return self.declarations.function(annotations)
        self._misplaced(self.cursor.token)
        return None

    def _refuse_capitals(self) -> None:
        """Refuses `Control` and the like in front of a name: it would be read as a result type."""
        word = self.cursor.token.text
        if word != word.lower() in KEYWORDS and not self.cursor.is_type_name(self.cursor.token):
            hint = f"keywords are written in small letters: {word.lower()}"
            self.cursor.fail(f"'{word}' is not declared", hint=hint)

    def _misplaced(self, token: Token) -> None:
        hint = _MISPLACED.get(token.kind, "")
        if hint:
            self.cursor.fail(f"'{token.text}' is not allowed here", hint=hint)
        self.cursor.fail_expected("a declaration")

    def _readers(self) -> dict[str, Callable[[Annotations], ast.Declaration | None]]:
        readers: dict[str, Callable[[Annotations], ast.Declaration | None]] = {
            "const": self.statements.constant,
            "extern": self.declarations.extern,
            "action": self.blocks.action,
            "parser": self.blocks.parser_declaration,
            "control": self.blocks.control_declaration,
            "package": self.blocks.package,
            "enum": self.declarations.enum,
            "error": self.declarations.members,
            "match_kind": self.declarations.members,
            "typedef": self.declarations.typedef,
            "type": self.declarations.typedef,
        }
        readers.update(dict.fromkeys(STRUCT_KINDS, self.declarations.struct))
        return readers


def parse(tokens: list[Token], diagnostics: Diagnostics) -> ast.Program:
    """Returns the syntax tree. After errors, it holds the declarations that could be read."""
    return Parser(tokens, diagnostics).program()
