"""Adds the annotations of a program to P4Info: as text, as structures and as documentation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from p4native.compiler import ast
from p4native.compiler.backend.storage import Unsupported
from p4native.compiler.typed import TypedProgram

Message = Any
# What P4Info says elsewhere than in a list of annotations.
SAID_ELSEWHERE = frozenset({"name", "id", "brief", "description", "p4runtime_translation"})
INT64_LIMIT = 1 << 63


def annotate(
    typed: TypedProgram,
    message: Message,
    annotations: Iterable[ast.Annotation],
    hidden: frozenset[str] = frozenset(),
) -> None:
    """Adds annotations to a message that has fields for annotations. Leaves out those named in
    `hidden`, and those that other fields of P4Info express."""
    for annotation in annotations:
        if annotation.name in SAID_ELSEWHERE or annotation.name in hidden:
            continue
        if annotation.structured:
            _structure(typed, message.structured_annotations.add(), annotation)
        else:
            message.annotations.append(_text(annotation))


def document(message: Message, annotations: Iterable[ast.Annotation]) -> None:
    """Copies `@brief` and `@description` to the message's documentation."""
    for annotation in annotations:
        given = annotation.arguments[0] if annotation.arguments else None
        if annotation.name in ("brief", "description") and isinstance(given, ast.StringLiteral):
            setattr(message.doc, annotation.name, given.value)


def string_pairs(annotation: ast.Annotation) -> list[tuple[str, str]]:
    """Returns (key, string) for each `key = "string"` in either form of annotation, `(...)` or
    `[...]`."""
    pairs = [(k, v.value) for k, v in annotation.pairs if isinstance(v, ast.StringLiteral)]
    words = annotation.text
    for key, equals, value in zip(words, words[1:], words[2:], strict=False):
        if equals == "=" and value.startswith('"'):
            pairs.append((key, value.strip('"')))
    return pairs


def _text(annotation: ast.Annotation) -> str:
    """Returns an annotation in P4Info's form: `@name` or `@name(body)`."""
    if not annotation.text:
        return f"@{annotation.name}"
    return f"@{annotation.name}({' '.join(annotation.text)})"


def _structure(typed: TypedProgram, message: Message, annotation: ast.Annotation) -> None:
    message.name = annotation.name
    if annotation.pairs:
        for key, value in annotation.pairs:
            pair = message.kv_pair_list.kv_pairs.add()
            pair.key = key
            _value(typed, pair.value, value)
        return
    message.expression_list.SetInParent()
    for value in annotation.arguments:
        _value(typed, message.expression_list.expressions.add(), value)


def _value(typed: TypedProgram, message: Message, expression: ast.Expression) -> None:
    value = typed.const_value[expression]
    if isinstance(value, bool):
        message.bool_value = value
    elif isinstance(value, str):
        message.string_value = value
    else:
        assert isinstance(value, int)
        if not -INT64_LIMIT <= value < INT64_LIMIT:
            raise Unsupported(expression.position, "a number beyond 64 bits in an annotation")
        message.int64_value = value
