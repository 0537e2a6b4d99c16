"""The whole program: top-level declarations, one after the other, going on after errors."""

from __future__ import annotations

from collections.abc import Callable

from agglab.compiler import ast
from agglab.compiler.diagnostics import Diagnostics
from agglab.compiler.syntax.blocks import BlockParser
from agglab.compiler.syntax.cursor import SyntaxFailure
from agglab.compiler.syntax.declarations import STRUCT_KINDS, Annotations
from agglab.compiler.syntax.lexer import END, Token

_MISPLACED = {
    "table": "a table belongs inside a control",
    "state": "a state belongs inside a parser",
    "apply": "an apply block belongs inside a control",
    "transition": "a transition belongs inside a parser state",
    "if": "statements belong inside a control, parser state, action or function",
    "import": "use #include",
}


class Parser(BlockParser):
    def program(self) -> ast.Program:
        start = self.token.position
        declarations: list[ast.Declaration] = []
        self.extra = []
        recovering = False
        while not self.at(END):
            if self.at("}"):
                if not recovering:
                    self.diagnostics.error(self.token.position, "this '}' closes nothing")
                self.advance()
            elif not self.accept(";"):
                found = self._one()
                recovering = found is None
                declarations.extend([*self.extra, *(found or ())])
                self.extra = []
        return ast.Program(start, tuple(declarations))

    def _one(self) -> list[ast.Declaration] | None:
        """The next declaration as a list (empty for a forward declaration); None after errors."""
        try:
            declaration = self._top_level()
        except SyntaxFailure:
            self.skip_item()
            return None
        return [] if declaration is None else [declaration]

    def _top_level(self) -> ast.Declaration | None:
        annotations = self.annotations()
        if annotations and self.at(END):
            return None
        kind = self.token.kind
        read = self._readers().get(kind)
        if read is not None and not (kind == "error" and self.peek().kind != "{"):
            return read(annotations)
        if self.at_type() or kind == "void" or (self.at_name() and self.peek().kind != "="):
            if kind in _MISPLACED:
                self.fail(f"'{kind}' outside of its place", hint=_MISPLACED[kind])
            return self.function(annotations)
        self._misplaced(self.token)
        return None

    def _misplaced(self, token: Token) -> None:
        hint = _MISPLACED.get(token.kind, "")
        if hint:
            self.fail(f"'{token.text}' outside of its place", hint=hint)
        self._expected("a declaration")

    def _readers(self) -> dict[str, Callable[[Annotations], ast.Declaration | None]]:
        readers: dict[str, Callable[[Annotations], ast.Declaration | None]] = {
            "const": self.constant,
            "extern": self.extern,
            "action": self.action,
            "parser": self.parser_declaration,
            "control": self.control_declaration,
            "package": self.package,
            "enum": self.enum,
            "error": self.members,
            "match_kind": self.members,
            "typedef": self.typedef,
            "type": self.typedef,
        }
        readers.update(dict.fromkeys(STRUCT_KINDS, self.struct))
        return readers


def parse(tokens: list[Token], diagnostics: Diagnostics) -> ast.Program:
    """The syntax tree; where diagnostics gained errors, what could be read of it."""
    return Parser(tokens, diagnostics).program()
