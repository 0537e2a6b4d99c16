"""Reads the parameters of requests, which come from outside, and forms what answers contain."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, unquote, urlsplit

from p4native.compiler.diagnostics import ERROR
from p4native.lsp.completion import Completion
from p4native.lsp.text import Place, Span
from p4native.lsp.workspace import Hover, Message

T = TypeVar("T")

_SEVERITIES = {ERROR: 1}
_WARNING = 2
_COMPLETION_KINDS = {
    "method": 2,
    "function": 3,
    "field": 5,
    "variable": 6,
    "type": 22,
    "keyword": 14,
    "member": 20,
    "constant": 21,
    "state": 18,
}


class InvalidParamsError(Exception):
    """Parameters that lack something or have it in a wrong form."""


def value_at(params: Any, keys: str, kind: type[T]) -> T:
    """Returns the value at a path of keys, such as "textDocument.uri".

    Raises InvalidParamsError if it is missing or of another type.
    """
    value = params
    for key in keys.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise InvalidParamsError(f"{keys} must be given, as {kind.__name__}")
    return value


def path_at(params: Any, keys: str) -> str:
    """Returns the file that a URI names, without symbolic links. A text that has no file yet gets a
    name in the root folder that no file has."""
    uri = value_at(params, keys, str)
    try:
        parts = urlsplit(uri)
        if parts.scheme == "file":
            return os.path.realpath(unquote(parts.path) or "/")
        return f"/{quote(uri, safe='')}"[:200]
    except ValueError as error:
        raise InvalidParamsError(f"{keys} is no URI: {error}") from error


def place_at(params: Any, keys: str) -> Place:
    line, character = (value_at(params, f"{keys}.{key}", int) for key in ("line", "character"))
    if line < 0 or character < 0:
        raise InvalidParamsError(f"{keys} must not be negative")
    return Place(line, character)


def change_of(change: Any) -> tuple[Span | None, str]:
    """Returns the span that a change replaces, None for the whole text, and the new text."""
    text = value_at(change, "text", str)
    if change.get("range") is None:
        return None, text
    return Span(place_at(change, "range.start"), place_at(change, "range.end")), text


def strings_at(params: Any, keys: str) -> tuple[str, ...]:
    """Returns a list of strings, which may be missing."""
    try:
        values = value_at(params, keys, list)
    except InvalidParamsError:
        return ()
    return tuple(value for value in values if isinstance(value, str))


def uri_of(path: str) -> str:
    return Path(path).as_uri()


def range_of(span: Span) -> dict[str, Any]:
    return {"start": span.start._asdict(), "end": span.end._asdict()}


def diagnostic_of(message: Message) -> dict[str, Any]:
    diagnostic = message.diagnostic
    hint = f"\nhint: {diagnostic.hint}" if diagnostic.hint else ""
    code = {"code": diagnostic.kind} if diagnostic.kind else {}
    return {
        "range": range_of(message.span),
        "severity": _SEVERITIES.get(diagnostic.level, _WARNING),
        "source": "p4native",
        "message": diagnostic.message + hint,
        **code,
    }


def hover_of(hover: Hover) -> dict[str, Any]:
    text = f"```p4\n{hover.code}\n```" + (f"\n\n{hover.text}" if hover.text else "")
    return {
        "contents": {"kind": "markdown", "value": text},
        "range": range_of(hover.span),
    }


def completion_of(completion: Completion) -> dict[str, Any]:
    return {
        "label": completion.label,
        "kind": _COMPLETION_KINDS[completion.kind],
        "detail": completion.detail,
    }
