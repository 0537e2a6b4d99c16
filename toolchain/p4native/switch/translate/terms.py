"""Reports the terms of a condition with their values, for the trace: `a == 1: 2 == 1, false`."""

from __future__ import annotations

from collections.abc import Iterator

from p4native.switch.expression import (
    Arithmetic,
    Bool,
    BoolToData,
    ChooseBool,
    Compare,
    Complement,
    Const,
    Data,
    DataToBool,
    Expression,
    FieldOf,
    HeaderRef,
    LastElement,
    Logic,
    Lookahead,
    Not,
    RegisterCell,
    StackElement,
    Valid,
)
from p4native.switch.translate.expressions import Expressions
from p4native.switch.translate.opaque_string import OpaqueString
from p4native.switch.translate.writer import quoted

Words = tuple["str | OpaqueString", ...]


def write_terms(condition: Bool, expressions: Expressions, indent: str) -> int:
    """Writes C that reports each comparison and each test for validity in a condition. Values of
    more than 64 bits are left out. Returns how many terms there are."""
    terms = list(_terms(condition))
    for term in terms:
        if isinstance(term, Compare):
            _write_comparison(term, expressions, indent)
        else:
            _say(expressions, indent, "%s: %s\n", _words(term), _truth(expressions, term))
    return len(terms)


def _terms(condition: Bool) -> Iterator[Compare | Valid]:
    if isinstance(condition, Logic):
        yield from _terms(condition.left)
        yield from _terms(condition.right)
    elif isinstance(condition, Not):
        yield from _terms(condition.value)
    elif isinstance(condition, ChooseBool):
        for each in (condition.condition, condition.yes, condition.no):
            yield from _terms(each)
    elif isinstance(condition, DataToBool):
        yield from _of_data(condition.value)
    elif isinstance(condition, Compare | Valid):
        yield condition


def _of_data(value: Data) -> Iterator[Compare | Valid]:
    if isinstance(value, BoolToData):
        yield from _terms(value.value)
    elif isinstance(value, FieldOf) and value.field is None:
        yield Valid(value.path, value.header)


def _write_comparison(term: Compare, expressions: Expressions, indent: str) -> None:
    values = [_value(side, expressions) for side in (term.left, term.right)]
    truth = _truth(expressions, term)
    if all(values):
        left, right = (value for value in values if value)
        form = f"%s: {left[0]} {term.op} {right[0]}, %s\n"
        _say(expressions, indent, form, _words(term), left[1], right[1], truth)
    else:
        _say(expressions, indent, "%s: %s\n", _words(term), truth)


def _say(expressions: Expressions, indent: str, form: str, words: Words, *values: str) -> None:
    arguments = ", ".join(["p", quoted(form), quoted(indent, *words), *values])
    expressions.out.line(f"say({arguments});")


def _truth(expressions: Expressions, term: Bool) -> str:
    return f'{expressions.boolean(term)} ? "true" : "false"'


def _value(data: Data, expressions: Expressions) -> tuple[str, str] | None:
    """Returns the printf conversion and the C expression of a value; None if it is too wide."""
    span = expressions.ranges.of(data)
    if not span.fits64:
        return None
    if span.low < 0:
        return "%lld", f"(long long){expressions.u64(data)}"
    return "%llu", f"(unsigned long long){expressions.u64(data)}"


def _words(node: Expression) -> Words:
    """Returns the text of an expression, with the names that the JSON has."""
    if isinstance(node, Const):
        return (str(node.value),)
    if isinstance(node, FieldOf):
        member = node.field.name if node.field else "$valid$"
        return (*_header(node.header), ".", member)
    if isinstance(node, Valid):
        return (*_header(node.header), ".isValid()")
    if isinstance(node, RegisterCell):
        return (node.register.name, "[", *_words(node.index), "]")
    if isinstance(node, Complement):
        return ("~", *_words(node.value))
    if isinstance(node, Lookahead):
        return ("lookahead",)
    if isinstance(node, Compare):
        return (*_words(node.left), f" {node.op} ", *_words(node.right))
    if isinstance(node, Arithmetic):
        return _arithmetic(node)
    return ("...",)


def _arithmetic(node: Arithmetic) -> Words:
    """Casts, and the masks that keep a result within its width, are left out, because the source
    has none."""
    is_computed = isinstance(node.left, Arithmetic | Complement)
    is_mask = node.op == "&" and isinstance(node.right, Const) and _all_ones(node.right.value)
    if (is_mask and is_computed) or node.op in ("two_comp_mod", "usat_cast", "sat_cast"):
        return _words(node.left)
    return ("(", *_words(node.left), f" {node.op} ", *_words(node.right), ")")


def _all_ones(value: int) -> bool:
    return value > 0 and value & (value + 1) == 0


def _header(node: Expression) -> Words:
    if isinstance(node, HeaderRef):
        return (node.header.name,)
    if isinstance(node, StackElement):
        return (node.stack.name, "[", *_words(node.index), "]")
    if isinstance(node, LastElement):
        return (node.stack.name, ".last")
    return ("...",)
