"""The state and helpers that all parts of the parser share: the current token, errors, limits, and
names of types. Parts of the parser that need each other call each other through the cursor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn, TypeVar

from p4native.compiler import ast
from p4native.compiler.diagnostics import Diagnostics
from p4native.compiler.source import Position
from p4native.compiler.syntax.hints import for_token
from p4native.compiler.syntax.lexer import END, IDENTIFIER, KEYWORDS, STRING, UNEXPECTED, Token

# Keywords that are names wherever they do not begin their own construct (nonTypeName).
NAME_KEYWORDS = frozenset({"actions", "apply", "entries", "key", "priority", "state", "type"})
BASE_TYPES = frozenset({"bit", "bool", "error", "int", "match_kind", "string", "varbit"})
MAX_NESTING = 256
MAX_OPERATORS = 4000

TOP_LEVEL = frozenset(
    [
        "control",
        "parser",
        "header",
        "header_union",
        "struct",
        "package",
        "extern",
        "enum",
        "typedef",
    ]
)
"""Keywords that begin a declaration outside of every block, and nothing inside one."""
IN_CONTROL = TOP_LEVEL | {"action", "table", "apply"}
IN_PARSER = TOP_LEVEL | {"state"}

# What cannot follow a `{` that was only forgotten.
_NO_CONTENT = frozenset({";", ")", "]", ",", "=", END})
_OPENERS = {"(": ")", "{": "}", "[": "]"}
_CLOSERS = frozenset(_OPENERS.values())

T = TypeVar("T")


class SyntaxFailure(Exception):
    """Raised for a construct that cannot be parsed to its end. The error has been reported, unless
    the parser was only trying whether the construct fits (`Cursor.trying`)."""


class NestingFailure(SyntaxFailure):
    """Raised for a source that is nested more deeply than the limit allows."""


def join(first: Position, last: Position) -> Position:
    """Returns the position from the start of `first` to the end of `last`. If they are not on the
    same line, returns `first`."""
    if first.file != last.file or first.line != last.line or last.column < first.column:
        return first
    return first._replace(length=last.column + last.length - first.column)


class Cursor:
    """A reader of tokens, one by one. token: the next token, which has not been consumed yet.

    A part of the parser is given the parts that it needs when it is made. The grammar is recursive:
    a type contains an expression, which contains a type. Of parts that need each other, the one
    made last therefore stores its rule in an attribute of the cursor. The parts made before it call
    the rule from there.
    """

    # Entered by ExpressionParser.
    expression: Callable[[], ast.Expression]
    type_argument_expression: Callable[[], ast.Expression]
    # Entered by DeclarationParser.
    initializer: Callable[[], tuple[ast.Declaration, ...]]

    def __init__(self, tokens: list[Token], diagnostics: Diagnostics) -> None:
        self.tokens = tokens
        self.index = 0
        self.token = tokens[0]
        self.previous = tokens[0]
        self.diagnostics = diagnostics
        self.depth = 0
        self.operators = 0
        self.trying = 0
        self.failed_tries: set[int] = set()
        self.type_names: list[dict[str, bool]] = [{}]

    # ---- tokens

    def peek(self, ahead: int = 1) -> Token:
        return self.tokens[min(self.index + ahead, len(self.tokens) - 1)]

    def advance(self) -> Token:
        self.previous = self.token
        if self.index + 1 < len(self.tokens):
            self.index += 1
            self.token = self.tokens[self.index]
        return self.previous

    def at(self, *kinds: str) -> bool:
        return self.token.kind in kinds

    def accept(self, kind: str) -> bool:
        if self.token.kind != kind:
            return False
        self.advance()
        return True

    def expect(self, kind: str, context: str = "") -> Token:
        if self.token.kind != kind:
            if kind == ";" and self.token.position.line > self.previous.position.line:
                self._missing_semicolon()
            self.fail_expected(f"'{kind}'", context)
        return self.advance()

    def _missing_semicolon(self) -> NoReturn:
        """Reports a missing semicolon behind the previous token, and not at the first token of the
        next line."""
        last = self.previous.position
        place = last._replace(column=last.column + last.length, length=1)
        self.fail(f"expected ';' after {describe(self.previous)}", place)

    def fail_expected(self, what: str, context: str = "") -> NoReturn:
        where = f" {context}" if context else ""
        before = self.tokens[max(0, self.index - 3) : self.index]
        hint = for_token(what, before, self.token)
        self.fail(f"expected {what}{where}, found {describe(self.token)}", hint=hint)

    def open_block(self) -> Token:
        """Consumes a `{`. Reports a missing one, and goes on as if it were there."""
        if self.at("{") or self.trying or self.token.kind in _NO_CONTENT:
            return self.expect("{")
        last = self.previous.position
        place = last._replace(column=last.column + last.length, length=1)
        self.diagnostics.error(place, f"expected '{{' after {describe(self.previous)}")
        return Token("{", "{", place)

    def span(self, start: Position) -> Position:
        """Returns the position from start to the last token that was consumed."""
        return join(start, self.previous.position)

    def fail(self, message: str, position: Position | None = None, hint: str = "") -> NoReturn:
        if not self.trying:
            self.diagnostics.error(position or self.token.position, message, hint)
        raise SyntaxFailure

    # ---- names

    def is_type_name(self, token: Token) -> bool:
        if token.kind != IDENTIFIER:
            return False
        for scope in reversed(self.type_names):
            known = scope.get(token.text)
            if known is not None:
                return known
        return False

    def declare(self, name: str, is_type: bool) -> None:
        self.type_names[-1][name] = is_type

    @contextmanager
    def scope(self) -> Iterator[None]:
        self.type_names.append({})
        try:
            yield
        finally:
            self.type_names.pop()

    def at_name(self) -> bool:
        kind = self.token.kind
        return kind == IDENTIFIER or kind in NAME_KEYWORDS or kind == "list"

    def name(self, context: str = "") -> Token:
        if not self.at_name():
            self.fail_expected("a name", context)
        return self.advance()

    # ---- limits

    @contextmanager
    def nested(self) -> Iterator[None]:
        if self.depth >= MAX_NESTING:
            self.too_deep()
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def too_deep(self) -> NoReturn:
        """Reports code that is nested too deeply. The parser then does not try to parse the code in
        another way, because any other parse would be as deep."""
        message = f"nested too deeply: more than {MAX_NESTING} levels"
        self.diagnostics.error(self.token.position, message)
        raise NestingFailure

    def count_operator(self) -> None:
        """Counts an operator of an expression and refuses too many, because a chain of operators
        makes a tree as deep as the chain is long."""
        self.operators += 1
        if self.operators > MAX_OPERATORS:
            self.fail(f"expression too long: more than {MAX_OPERATORS} operators")

    # ---- lists and recovery

    def attempt(self, read: Callable[[], T | None]) -> T | None:
        """Calls `read` and returns its result. If `read` fails, returns None and consumes nothing.
        Later attempts at the same place then return None at once."""
        start = self.index
        if start in self.failed_tries:
            return None
        self.trying += 1
        try:
            result = read()
        except NestingFailure:
            raise
        except SyntaxFailure:
            result = None
        finally:
            self.trying -= 1
        if result is None:
            self.failed_tries.add(start)
            self.rewind(start)
        return result

    def rewind(self, index: int) -> None:
        self.index = index
        self.token = self.tokens[index]
        self.previous = self.tokens[index - 1] if index else self.token

    def comma_list(
        self, read: Callable[[], T], closer: str, trailing_comma: bool = False
    ) -> tuple[T, ...]:
        """Returns the items, which commas separate, up to the closer. Consumes the closer."""
        items: list[T] = []
        while not self.at(closer):
            items.append(read())
            if not self.accept(","):
                break
            if self.at(closer) and not trailing_comma:
                self.fail_expected("another item after ','")
        self.expect(closer)
        return tuple(items)

    def block(
        self,
        read: Callable[[], T | None],
        outside: frozenset[str] = TOP_LEVEL,
        outside_names: frozenset[str] = frozenset(),
    ) -> tuple[T, ...]:
        """Returns the items between `{` and `}`. A wrong item is skipped, and reading continues
        after it. The block ends where a declaration begins that belongs outside of it: then its `}`
        is missing.

        outside: keywords that begin such a declaration. outside_names: names that begin one by
        `name =`.
        """
        items: list[T] = []
        opener = self.open_block()
        while not self.at("}", END):
            if not self.trying and self._at_outside(outside, outside_names):
                self._missing_brace(opener)
                return tuple(items)
            try:
                item = read()
                if item is not None:
                    items.append(item)
            except SyntaxFailure:
                if self.trying:
                    raise
                self.skip_item()
        if self.at(END):
            self._missing_brace(opener)
            raise SyntaxFailure
        self.advance()
        return tuple(items)

    def _at_outside(self, keywords: frozenset[str], names: frozenset[str]) -> bool:
        kind, following = self.token.kind, self.peek().kind
        if kind == "apply":
            return kind in keywords and following == "{"
        if kind == "state":
            return kind in keywords and following == IDENTIFIER
        return kind in keywords or (self.token.text in names and following == "=")

    def _missing_brace(self, opener: Token) -> None:
        hint = f"the '{{' at {opener.position} is still open"
        if not self.trying:
            message = f"expected '}}', found {describe(self.token)}"
            self.diagnostics.error(self.token.position, message, hint)

    def skip_item(self) -> None:
        """Skips tokens up to and including the next `;` or block at this level of nesting. Stops
        before a `}` that ends the level."""
        while not self.at(END):
            kind = self.token.kind
            if kind == ";":
                self.advance()
                return
            if kind == "}":
                return
            if kind in _OPENERS:
                self._skip_group()
                if kind == "{" and not self.at(";", ")", ",", "else"):
                    return
                continue
            self.advance()

    def _skip_group(self) -> None:
        depth = 0
        while not self.at(END):
            if self.token.kind in _OPENERS:
                depth += 1
            elif self.token.kind in _CLOSERS:
                depth -= 1
            self.advance()
            if depth == 0:
                return


def describe(token: Token) -> str:
    if token.kind == END:
        return "the end of the file"
    if token.kind == STRING:
        return "a string"
    if token.kind == UNEXPECTED:
        return _describe_character(token.text)
    if token.kind in KEYWORDS:
        return f"the keyword '{token.text}'"
    return f"'{token.text}'" if token.text else token.kind


def _describe_character(character: str) -> str:
    if character == '"':
        return "a string without closing quote"
    name = f"'{character}'" if character.isprintable() else f"U+{ord(character):04X}"
    return f"{name}, a character without meaning in P4"
