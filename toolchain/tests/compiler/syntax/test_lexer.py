"""Tokens: every literal form, positions of the files the user wrote, pragmas."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4native.compiler.diagnostics import Diagnostics
from p4native.compiler.syntax import lexer
from p4native.compiler.syntax.lexer import Token, parse_number, parse_string, tokenize


def tokens_of(text: str) -> list[Token]:
    return tokenize(text, "test.p4", Diagnostics())


@pytest.mark.parametrize(
    ("text", "value", "width", "signed"),
    [
        ("0", 0, None, False),
        ("255", 255, None, False),
        ("1_000", 1000, None, False),
        ("0xFF", 255, None, False),
        ("0x_Ff_00", 0xFF00, None, False),
        ("0b1010_1111", 0b10101111, None, False),
        ("0o17", 15, None, False),
        ("0d19", 19, None, False),
        ("010", 10, None, False),
        ("8w255", 255, 8, False),
        ("4s7", 7, 4, True),
        ("32w0xDEAD_BEEF", 0xDEADBEEF, 32, False),
        ("5s0b1_0101", 21, 5, True),
        ("16w0o7", 7, 16, False),
    ],
)
def test_integer_literals(text: str, value: int, width: int | None, signed: bool) -> None:
    assert tokens_of(text)[0].kind == lexer.INTEGER
    assert parse_number(text) == (value, width, signed)


@pytest.mark.parametrize("text", ["0x", "0b2", "0o8", "8w", "8w0x", "3x", "0xG", "1__a"])
def test_malformed_integers_say_so(text: str) -> None:
    problem = parse_number(text)
    assert isinstance(problem, str) and "malformed" in problem


@given(st.integers(min_value=0, max_value=1 << 2048), st.sampled_from(["", "0x", "0b", "0o"]))
def test_integers_of_any_size(value: int, prefix: str) -> None:
    digits = {"": str, "0x": "{:x}".format, "0b": "{:b}".format, "0o": "{:o}".format}[prefix](value)
    assert parse_number(prefix + digits) == (value, None, False)


def test_shift_is_two_tokens_but_other_operators_are_longest() -> None:
    texts = [t.text for t in tokens_of("a >> b <<= c |+|= d &&& e .. f ... {#} ++ g")][:-1]
    assert " ".join(texts) == "a > > b <<= c |+|= d &&& e .. f ... {#} ++ g"


def test_only_angles_that_touch_make_a_shift() -> None:
    """Told by the text: the tokens of a macro all have the position of its use."""
    joined = [t.joined for t in tokens_of("a >> b > > c") if t.kind == ">"]
    assert joined == [True, False, False, False]


def test_strings_keep_escapes() -> None:
    assert parse_string(r'"a\"b\\c\n"') == 'a"b\\c\n'


def test_a_string_with_a_quote_is_one_token() -> None:
    kinds = [t.kind for t in tokens_of(r'"a\"b" x')]
    assert kinds == [lexer.STRING, lexer.IDENTIFIER, lexer.END]


def test_pragma_ends_with_its_line() -> None:
    kinds = [t.kind for t in tokens_of("@pragma name 1\nbit")]
    expected = [lexer.PRAGMA, lexer.IDENTIFIER, lexer.INTEGER, lexer.END_PRAGMA, "bit", lexer.END]
    assert kinds == expected


def test_positions_follow_line_markers() -> None:
    found = tokens_of('x\n# 41 "other.p4" 2\ny\nz\n#line 7\nw')
    places = [(t.text, t.position.file, t.position.line) for t in found[:-1]]
    assert places == [
        ("x", "test.p4", 1),
        ("y", "other.p4", 41),
        ("z", "other.p4", 42),
        ("w", "other.p4", 7),
    ]


def test_comments_are_skipped_and_count_lines() -> None:
    found = tokens_of("a /* 1\n2\n*/ b // c\nd")
    places = [(t.text, t.position.line, t.position.column) for t in found[:-1]]
    assert places == [("a", 1, 1), ("b", 3, 4), ("d", 4, 1)]


def test_columns_are_those_of_the_original_line(tmp_path: Path) -> None:
    """The preprocessor squeezes blanks and expands macros; columns do not show it."""
    source = tmp_path / "a.p4"
    source.write_text("bit<8>     x   =  TWICE(3,  4)    +   y;\n")
    expanded = f'# 1 "{source}"\nbit<8> x = 3 * 2 + 4 * 2 + y;\n'
    columns = {t.text: t.position.column for t in tokenize(expanded, str(source), Diagnostics())}
    assert columns["x"] == 12
    assert columns["*"] == 19
    assert columns["y"] == 39
    assert columns[";"] == 40


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\r\f\v#\\"), max_size=80))
def test_every_character_lands_in_some_token(text: str) -> None:
    """Nothing is lost but blanks and comments."""
    without_comments = re.sub(
        r'"(?:[^"\\]|\\.)*"|/\*.*?\*/|//[^\n]*', _keep_string, text, flags=re.S
    )
    expected = re.sub(r"\s", "", without_comments)
    written = "".join(t.text for t in tokens_of(text))
    assert re.sub(r"\s", "", written) == expected


def _keep_string(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith('"') else " "
