"""Wraps the strings of a program for the translator, so that they cannot become C by mistake."""

from __future__ import annotations

import dataclasses
from typing import Any, NoReturn

from p4native.switch.program import Program

CHECKED = frozenset(("op", "kind", "algorithm", "match_type", "path"))
"""The members of the model that keep plain strings. The reader itself has chosen their values from
fixed words, except `path`, which error messages contain."""


class OpaqueString:
    """A string of the program. It can be compared, used as a key, and passed to the functions of
    writer.py that make C of it. Formatting or joining it raises TypeError, whatever its text is."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __eq__(self, other: object) -> bool:
        return self._text == (other._text if isinstance(other, OpaqueString) else other)

    def __hash__(self) -> int:
        return hash(self._text)

    def __bool__(self) -> bool:
        return bool(self._text)

    def __str__(self) -> NoReturn:
        raise TypeError("a string of the program is not C: see p4native/switch/translate/writer.py")

    def __repr__(self) -> str:
        return f"OpaqueString({self._text!r})"

    def __format__(self, spec: str) -> NoReturn:
        self.__str__()

    def split(self, separator: str) -> list[OpaqueString]:
        """Returns the parts as str.split does, as opaque strings."""
        return [OpaqueString(part) for part in self._text.split(separator)]


def plain_text(text: object) -> str:
    """Returns the text of an opaque string. Only writer.py may call this."""
    assert isinstance(text, OpaqueString), "only strings of the program are opaque"
    return text._text


def with_opaque_strings(program: Program) -> Program:
    """Returns a copy of a program for the translator, in which every string is an OpaqueString. The
    type annotations of the model still say `str`. The members in CHECKED keep their plain
    strings."""
    copy: Program = _copied(program, {})
    return copy


def _copied(value: Any, copies: dict[int, Any]) -> Any:
    if isinstance(value, str):
        return OpaqueString(value)
    if isinstance(value, (int, bytes, type(None))):
        return value
    found = copies.get(id(value))
    if found is not None:
        return found
    if isinstance(value, tuple):
        return tuple([_copied(item, copies) for item in value])
    if isinstance(value, list):
        return [_copied(item, copies) for item in value]
    if isinstance(value, dict):
        return {_copied(k, copies): _copied(v, copies) for k, v in value.items()}
    assert dataclasses.is_dataclass(value)
    copy: Any = object.__new__(type(value))
    copies[id(value)] = copy
    for name, member in vars(value).items():
        # Not by setattr, which frozen classes refuse.
        vars(copy)[name] = member if name in CHECKED else _copied(member, copies)
    return copy
