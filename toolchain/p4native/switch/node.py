"""The class Node: a JSON value that knows its path in the document, so that error messages can name
the path."""

from __future__ import annotations

import re
from typing import Any

from p4native.switch.errors import ProgramError

HEX = re.compile(r"-?(0[xX])?[0-9a-fA-F]+\Z")
MAX_HEX_DIGITS = 20_000


class Node:
    """One value of the document. Its methods check its type, and raise ProgramError with its
    path."""

    __slots__ = ("path", "value")

    def __init__(self, value: Any, path: str = "") -> None:
        self.value = value
        self.path = path

    def error(self, message: str) -> ProgramError:
        return ProgramError(self.path, message)

    def __getitem__(self, key: str) -> Node:
        """Returns the member `key` of an object, which must be present."""
        members = self.members()
        if key not in members:
            raise self.error(f"lacks '{key}'")
        return members[key]

    def get(self, key: str) -> Node | None:
        """Returns the member `key`, or None if it is absent or null."""
        if not isinstance(self.value, dict):
            raise self.error("must be an object")
        if self.value.get(key) is None:
            return None
        return self[key]

    def members(self) -> dict[str, Node]:
        if not isinstance(self.value, dict):
            raise self.error("must be an object")
        prefix = f"{self.path}." if self.path else ""
        return {key: Node(value, prefix + key) for key, value in self.value.items()}

    def elements(self, count: int | None = None) -> list[Node]:
        """Returns the elements of an array. With `count`, refuses an array that has another number
        of elements."""
        if not isinstance(self.value, list):
            raise self.error("must be an array")
        if count is not None and len(self.value) != count:
            raise self.error(f"must have {count} elements, has {len(self.value)}")
        return [Node(value, f"{self.path}[{i}]") for i, value in enumerate(self.value)]

    def list(self, key: str) -> list[Node]:
        """Returns the elements of the array member `key`, or an empty list if it is absent."""
        member = self.get(key)
        return [] if member is None else member.elements()

    def source(self) -> str:
        """Returns the P4 text from which a node comes, as in "prog.p4:12 x = y;", or an empty
        string."""
        members = self.value.get("source_info") if isinstance(self.value, dict) else None
        if not isinstance(members, dict):
            return ""
        name = str(members.get("filename", "")).rsplit("/", 1)[-1]
        return f"{name}:{members.get('line', '?')} {members.get('source_fragment', '')}".rstrip()

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.error("must be a string")
        return self.value

    def boolean(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.error("must be true or false")
        return self.value

    def truth(self) -> bool:
        """Returns a boolean, which p4c may also write as 0 or 1."""
        return bool(self.integer(0, 1)) if isinstance(self.value, int) else self.boolean()

    def flag(self, key: str, default: bool = False) -> bool:
        member = self.get(key)
        return default if member is None else member.boolean()

    def integer(self, low: int, high: int) -> int:
        """Returns an integer from `low` to `high` (true and false count as 1 and 0)."""
        if not isinstance(self.value, int):
            raise self.error("must be an integer")
        if not low <= self.value <= high:
            raise self.error(f"must be {low} to {high}, is {self.value}")
        return int(self.value)

    def hex_integer(self) -> int:
        """Returns the value of a hexadecimal string such as "0x0800" or "-0x1"."""
        text = self.text()
        if len(text) > MAX_HEX_DIGITS or not HEX.match(text):
            raise self.error("must be a hexadecimal string")
        return int(text, 16)

    def hex_bytes(self, length: int) -> bytes:
        """Returns the bytes of a hexadecimal string, which must be exactly `length`."""
        text = self.text()
        digits = text[2:] if text[:2] in ("0x", "0X") else text
        if not HEX.match(text) or text.startswith("-") or (len(digits) + 1) // 2 != length:
            raise self.error(f"must be a hexadecimal string of {length} bytes")
        return int(digits, 16).to_bytes(length, "big")
