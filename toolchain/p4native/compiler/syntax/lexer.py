"""Turns preprocessed text into tokens. The position of a token is that in the file that the user
wrote."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from p4native.compiler.diagnostics import Diagnostics
from p4native.compiler.source import Position, read_source

IDENTIFIER = "identifier"
INTEGER = "integer"
STRING = "string"
END = "end of file"
UNEXPECTED = "unexpected character"
PRAGMA = "@pragma"
END_PRAGMA = "end of pragma"

KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """abstract action actions apply bool bit break const continue control default else entries
        enum error exit extern false for header header_union if in inout int key list match_kind
        out package parser priority return select state string struct switch table this
        transition true tuple type typedef value_set varbit void _""",
    )
)

# `>>` is two tokens: the parser joins adjacent ones where it reads an operator, so that `>>` may
# also close two lists of type arguments. Longer ones first.
_PUNCTUATION = re.findall(
    r"\S+",
    """&&& ... |+|= |-|= <<= >>= {#} |+| |-| .. << && || == != >= <= ++ += -= *= /= %=
    &= |= ^= +: + - * / % | & ^ ~ ( ) [ ] { } < > ! : , ? . = ; @""",
)

_TOKEN = re.compile(
    r"(?P<marker>(?:(?<=\n)|(?<![\s\S]))[ \t]*\#[^\n]*)"
    r"|(?P<blank>[ \t\r\f\v]+)"
    r"|(?P<newline>\n)"
    r"|(?P<comment>//[^\n]*|/\*.*?\*/)"
    r"|(?P<pragma>@pragma\b)"
    r"|(?P<identifier>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<integer>[0-9]+[ws][0-9A-Za-z_]*|[0-9][0-9A-Za-z_]*)"
    r'|(?P<string>"(?:[^"\\]|\\.)*")'
    r"|(?P<punctuation>" + "|".join(map(re.escape, _PUNCTUATION)) + r")"
    r"|(?P<bad>.)",
    re.DOTALL,
)
_MARKER = re.compile(r'[ \t]*#[ \t]*(?:line[ \t]+)?(\d+)(?:[ \t]+"((?:[^"\\]|\\.)*)")?')
_NUMBER = re.compile(
    r"(?:(?P<width>[0-9]+)(?P<sign>[ws]))?"
    r"(?:0[xX](?P<hex>[0-9a-fA-F_]+)|0[bB](?P<bin>[01_]+)|0[oO](?P<oct>[0-7_]+)"
    r"|(?:0[dD])?(?P<dec>[0-9_]+))"
)
_BASES = {"hex": 16, "bin": 2, "oct": 8, "dec": 10}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}
# Of one literal: beyond this Python itself refuses decimal conversion, and no width needs it.
MAX_DIGITS = 4000
MAX_TOKENS = 1_000_000


class Token(NamedTuple):
    """A token. kind: for keywords and punctuation, the text itself; for other tokens, one of the
    kinds that this module defines as constants.

    joined: whether the next token is a `>` that follows without a blank. The positions do not tell
    this, because all tokens of a macro share its position.
    """

    kind: str
    text: str
    position: Position
    joined: bool = False


class Number(NamedTuple):
    """The parts of an integer literal. width: None for arbitrary precision."""

    value: int
    width: int | None
    signed: bool


class Lexer:
    """The lexer, which reads the text once. The list `tokens` ends with an END token."""

    def __init__(
        self, text: str, file: str, diagnostics: Diagnostics, sources: Mapping[str, str]
    ) -> None:
        self.text = text
        self.file = file
        self.line = 1
        self.line_start = 0
        self.in_pragma = False
        self.diagnostics = diagnostics
        self.tokens: list[Token] = []
        self.fresh = 0  # index of the first token of the current line
        self.sources = {name: source.split("\n") for name, source in sources.items()}

    def run(self) -> list[Token]:
        append = self.tokens.append
        for match in _TOKEN.finditer(self.text):
            kind = match.lastgroup
            if len(self.tokens) > MAX_TOKENS:
                place = self._position(match.start(), 1)
                self.diagnostics.error(place, f"the program has more than {MAX_TOKENS} tokens")
                self.tokens.clear()
                break
            if kind == "blank":
                continue
            if kind == "newline":
                self._newline(match.end())
                continue
            text = match.group()
            if kind == "identifier":
                place = self._position(match.start(), len(text))
                append(Token(text if text in KEYWORDS else IDENTIFIER, text, place))
            elif kind == "punctuation":
                place = self._position(match.start(), len(text))
                append(Token(text, text, place, self.text.startswith(">", match.end())))
            else:
                self._rare(kind or "", text, match.start())
        self._newline(len(self.text))
        append(Token(END, "", self._end()))
        return self.tokens

    def _end(self) -> Position:
        """Returns the place right behind the last token. This may be lines before the end of the
        text, to which the preprocessor adds lines."""
        if not self.tokens:
            return self._position(0, 1)
        file, line, column, length = self.tokens[-1].position
        return Position(file, line, column + length)

    def _position(self, start: int, length: int) -> Position:
        return Position(self.file, self.line, start - self.line_start + 1, length)

    def _rare(self, kind: str, text: str, start: int) -> None:
        place = self._position(start, len(text))
        if kind == "comment":
            self._comment(text, start)
        elif kind == "marker":
            self._marker(text, place)
        elif kind == "pragma":
            self.in_pragma = True
            self.tokens.append(Token(PRAGMA, text, place))
        elif kind == "bad":
            self._bad(text, place)
        else:
            self.tokens.append(Token(kind, text, place))
            if kind == STRING and "\n" in text:
                self._skip_lines(text, start)

    def _comment(self, text: str, start: int) -> None:
        if "\n" in text:
            self._newline(start)
            self.line -= 1
            self._skip_lines(text, start)

    def _skip_lines(self, text: str, start: int) -> None:
        self.line += text.count("\n")
        self.line_start = start + text.rindex("\n") + 1

    def _bad(self, text: str, place: Position) -> None:
        """Adds a token for a character that P4 does not have. The parser reports the error, because
        inside annotations any character is allowed."""
        self.tokens.append(Token(UNEXPECTED, text, place))

    def _newline(self, after: int) -> None:
        if self.in_pragma:
            self.in_pragma = False
            self.tokens.append(Token(END_PRAGMA, "", self._position(after, 1)))
        if self.fresh < len(self.tokens):
            self._align(self.text[self.line_start : max(after - 1, self.line_start)])
        self.line += 1
        self.line_start = after
        self.fresh = len(self.tokens)

    def _marker(self, text: str, place: Position) -> None:
        match = _MARKER.match(text)
        if match is None:
            message = f"preprocessor directive without effect: {text.strip()}"
            self.diagnostics.warning(place, message, kind="preprocessor")
            return
        self.line = int(match[1]) - 1  # the newline that ends the marker counts as one
        if match[2] is not None:
            self.file = _ESCAPE.sub(r"\1", match[2])

    def _align(self, line: str) -> None:
        """Gives the tokens of a line the columns of the original line. These differ if the
        preprocessor removed blanks or expanded macros."""
        original = self._original_line()
        if original is None or original.rstrip() == line.rstrip():
            return
        fresh = self.tokens[self.fresh :]
        if fresh[0].position.line != self.line:
            return
        self.tokens[self.fresh :] = _realigned(fresh, _plain_tokens(original))

    def _original_line(self) -> str | None:
        if self.file not in self.sources:
            try:
                text = read_source(self.file)
            except OSError:
                text = ""
            self.sources[self.file] = text.split("\n")
        lines = self.sources[self.file]
        return lines[self.line - 1] if 0 < self.line <= len(lines) else None


def _plain_tokens(line: str) -> list[tuple[str, int]]:
    """Returns (text, column) of a line's tokens."""
    return [
        (m.group(), m.start() + 1)
        for m in _TOKEN.finditer(line)
        if m.lastgroup not in ("blank", "newline", "comment")
    ]


def _realigned(tokens: list[Token], original: list[tuple[str, int]]) -> list[Token]:
    """Returns the tokens of a preprocessed line with the columns that they have in the original
    line.

    The tokens of an expanded macro get the place of the macro's name. The equal beginnings and ends
    of both lines are matched first. If the line has one macro, only the macro's expansion is left
    between them.
    """
    texts, written = [t.text for t in tokens], [text for text, _ in original]
    shorter = min(len(texts), len(written))
    start = next((i for i in range(shorter) if texts[i] != written[i]), shorter)
    rest = shorter - start
    end = next((i for i in range(rest) if texts[-1 - i] != written[-1 - i]), rest)
    last, last_written = len(texts) - end, len(written) - end
    middle = _expanded(tokens[start:last], original[start:last_written])
    return [
        *map(_moved, tokens[:start], original[:start]),
        *middle,
        *map(_moved, tokens[last:], original[last_written:]),
    ]


def _moved(token: Token, to: tuple[str, int]) -> Token:
    text, column = to
    place = token.position._replace(column=column, length=max(1, len(text)))
    return token._replace(position=place)


def _expanded(tokens: list[Token], original: list[tuple[str, int]]) -> list[Token]:
    """Returns the same as `_realigned`. The tokens begin with the expansion of a macro."""
    out: list[Token] = []
    at = 0
    macro: tuple[str, int] | None = None
    for token in tokens:
        resume = _after_macro(original, at) if macro else at
        if resume < len(original) and original[resume][0] == token.text:
            out.append(_moved(token, original[resume]))
            at, macro = resume + 1, None
        else:
            macro = macro or (original[at] if at < len(original) else None)
            out.append(_moved(token, macro) if macro else token)
    return out


def _after_macro(original: list[tuple[str, int]], at: int) -> int:
    """Returns the index behind a macro's name, which is at index `at`, and behind the macro's
    arguments, if it has any."""
    at += 1
    if at >= len(original) or original[at][0] != "(":
        return at
    depth = 0
    for index in range(at, len(original)):
        depth += {"(": 1, ")": -1}.get(original[index][0], 0)
        if depth == 0:
            return index + 1
    return len(original)


def tokenize(
    text: str,
    file: str,
    diagnostics: Diagnostics,
    sources: Mapping[str, str] = MappingProxyType({}),
) -> list[Token]:
    """Returns the tokens of preprocessed text. file: the name of the file until the first line
    marker. sources: the original text of files that are not on the disk in this form."""
    return Lexer(text, file, diagnostics, sources).run()


def parse_number(text: str) -> Number | str:
    """Returns the parts of an integer literal, or a text that says what is wrong with it."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return f"malformed number {text}"
    base_name = next(name for name in _BASES if match[name] is not None)
    digits = match[base_name].replace("_", "")
    if not digits:
        return f"malformed number {text}: no digits"
    if len(text) > MAX_DIGITS:
        return f"number of {len(text)} characters; at most {MAX_DIGITS} are allowed"
    width = int(match["width"]) if match["width"] else None
    return Number(int(digits, _BASES[base_name]), width, match["sign"] == "s")


def parse_string(text: str) -> str:
    """Returns the value of a string literal. text: the literal with its quotes."""
    return _ESCAPE.sub(lambda m: _ESCAPES.get(m[1], m[0]), text[1:-1])
