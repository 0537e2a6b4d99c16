"""Hints for a token that does not fit: how P4 writes what a word or sign of another language
means."""

from __future__ import annotations

import re
from collections.abc import Sequence

from p4native.compiler.syntax.lexer import IDENTIFIER, INTEGER, KEYWORDS, Token

STATEMENTS = {
    "while": "P4 has no while: repeat with for, or by states of a parser that lead back",
    "do": "P4 has no do: repeat with for, or by states of a parser that lead back",
    "elif": "write `else if (...)`",
    "elseif": "write `else if (...)`",
    "elsif": "write `else if (...)`",
    "unless": "write `if (!(...))`",
    "foreach": "write `for (bit<8> x in a .. b)`",
}
WORDS = {
    "goto": "in a parser, `transition NAME;` leads to the next state",
    "var": "write the type: bit<32> name",
    "let": "write the type: bit<32> name",
    "auto": "write the type: bit<32> name",
    "header_type": "P4_16 writes `header NAME { bit<8> field; ... }`",
}
"""Words of other languages that stand where P4 has a type."""
"""Statements of other languages that begin with a name and look like a call before a block."""
_OPERATORS = {"and": "&&", "or": "||", "not": "!", "is": "=="}
_C_TYPE = re.compile(r"(u?)int_?(\d+)(_t)?|(byte|char|uchar|u_char)|(unsigned|uint|long|short)")
_AFTER_VALUE = "'=' or a call's arguments"
_FUNCTIONS = "functions are declared outside of parsers and controls; in a control, use an action"
_POINT = "an address is a number: 10.0.0.1 is 32w0x0a000001; numbers with fractions do not exist"
_DEFINE = "does a #define contain '='? Write `#define NAME value`"
_TRANSITION = "a state ends with one transition: transition select(...) { value: state; ... }"
_BODY = "statements stand in the body: apply { ... } of a control, or an action or state"


def for_token(expected: str, before: Sequence[Token], token: Token) -> str:
    """Returns a hint for `token` where `expected` should stand, such as "';'", or an empty string.
    before: the tokens in front of it, the last one last."""
    previous = before[-1] if before else token
    if token.text in _OPERATORS and token.kind == IDENTIFIER:
        return f"P4 writes {_OPERATORS[token.text]}"
    if previous.text in _OPERATORS and previous.kind == IDENTIFIER:
        return f"P4 writes {_OPERATORS[previous.text]}"
    if token.kind == IDENTIFIER and token.text.lower() in KEYWORDS:
        return f"keywords are written in small letters: {token.text.lower()}"
    if previous.kind == IDENTIFIER and previous.text == "case":
        return "a label is written without `case`"
    return _for_sign(expected, before, token)


def _for_sign(expected: str, before: Sequence[Token], token: Token) -> str:
    previous = before[-1].kind if before else ""
    if token.kind in ("++", "--", "-", "+") and expected in ("a statement", _AFTER_VALUE):
        sign = token.text[0]
        return f"P4 has no {sign}{sign}: write `x = x {sign} 1;`"
    if token.kind == ";" and previous == "}":
        return "no ';' follows a block"
    if token.kind == "void" or (token.kind == ";" and expected == "'>'"):
        return _FUNCTIONS if token.kind == "void" else "does a #define end with ';'?"
    if token.kind == "=" and expected == "')'":
        return "a comparison is written =="
    if token.kind == "=" and expected == "an expression":
        return "P4 writes ==" if previous == "==" else _DEFINE
    if token.kind == "*" and previous == "*":
        return "P4 has no **: a power of two is written 1 << n"
    if token.kind == "transition":
        return _TRANSITION
    if token.kind == "default" and previous == "transition":
        return "write `transition accept;` or `transition reject;`, or the name of a state"
    if token.kind == INTEGER and previous == ".":
        return _POINT
    if token.text == "'":
        return "P4 has no characters: write the number, such as 8w97"
    if token.kind in ("bit", "int", "varbit") and expected == "an expression":
        return f"a cast is written `({token.kind}<16>) x`"
    if token.kind == INTEGER and previous in ("bit", "int", "varbit"):
        return f"a width is written {previous}<{token.text}>"
    if expected in ("'}'", "';'") and token.kind == ",":
        return "each element ends with ';'"
    return _for_missing(expected, before, token) or _for_type(before)


def _for_missing(expected: str, before: Sequence[Token], token: Token) -> str:
    """Returns a hint where what is missing says what was meant."""
    first = before[-2].text if len(before) > 1 else ""
    if expected == "'('" and token.kind == "{":
        if first == "action":
            return f"an action has parentheses: action {before[-1].text}() {{ ... }}"
        if first == "header_type":
            return f"P4_16 writes `header {before[-1].text} {{ bit<8> field; ... }}`"
    if expected == "':'" and token.kind == ";":
        return "a key says how it matches: `field: exact;`, or lpm, ternary, range, optional"
    return _BODY if expected == "a declaration" and token.kind == IDENTIFIER else ""


def _for_type(before: Sequence[Token]) -> str:
    """Returns a hint for a type of another language in front of the token."""
    closed = len(before) > 1 and before[-1].kind == ")"
    candidates = [t for t in before[-2 if closed else -1 :] if t.kind == IDENTIFIER]
    return for_type(candidates[0].text) if candidates else ""


def for_type(name: str) -> str:
    """Returns a hint for a name of another language in place of a type, or an empty string."""
    if name in WORDS:
        return WORDS[name]
    fits = _C_TYPE.fullmatch(name)
    if fits is None:
        return ""
    if fits[2]:
        return f"write {'bit' if fits[1] else 'int'}<{fits[2]}>"
    return "write bit<8>" if fits[4] else "write bit<32>, or the width that it has"
