"""Reads the values of table keys and action parameters as p4lang's tutorials write them: whole
numbers, MAC, IPv4 and IPv6 addresses, truth values, and one-element lists of these.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from typing import Any

from p4native.switch import Key, Table

MAC = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")
IPV6_BITS = 128
KINDS = {
    "lpm": ("an lpm key", "[value, prefix length]"),
    # BMv2's JSON calls an optional key a ternary one.
    "ternary": ("a ternary or optional key", "[value, mask], or a value"),
    "range": ("a range key", "[low, high]"),
}
"""The kinds of keys that may be left out, with the values that they take."""


class Wrong(Exception):
    """Raised for a mistake in a file. Its arguments are the path of the key, what is wrong and what
    is allowed."""


def matches(
    path: str, match: Mapping[str, Any], table: Table
) -> Iterator[tuple[str, int | tuple[int, int]]]:
    """Yields the name and the value of each key of an entry. A key that accepts any value is left
    out, as P4Runtime requires. Raises Wrong."""
    for key in table.keys:
        if key.name in match:
            value = _match(f"{path}.{key.name}", match[key.name], key)
            if not _is_anything(value, key):
                yield key.name, value
        elif key.kind not in KINDS:
            raise Wrong(path, f"lacks {key.name!r}", f"a value for each {key.kind} key")


def _match(path: str, value: Any, key: Key) -> int | tuple[int, int]:
    parts = len(value) if isinstance(value, list) else 1
    if key.kind not in KINDS:
        return number(path, value, key.bits)
    if key.kind == "ternary" and parts == 1:
        return number(path, value, key.bits), (1 << key.bits) - 1
    described, allowed = KINDS[key.kind]
    if parts != 2:
        raise Wrong(path, f"{value!r} is not a value of {described}", allowed)
    first = number(f"{path}[0]", value[0], key.bits)
    if key.kind == "lpm":
        return _prefix(path, first, value[1], key)
    second = number(f"{path}[1]", value[1], key.bits)
    if key.kind == "range" and second < first:
        raise Wrong(path, f"{second} is less than {first}", allowed)
    return (first & second if key.kind == "ternary" else first), second


def _prefix(path: str, value: int, length: Any, key: Key) -> tuple[int, int]:
    if type(length) is not int or not 0 <= length <= key.bits:
        raise Wrong(f"{path}[1]", f"{length!r} is not a prefix length", f"0 to {key.bits}")
    shift = key.bits - length
    return value >> shift << shift, length


def _is_anything(value: int | tuple[int, int], key: Key) -> bool:
    everything = {"lpm": (0, 0), "ternary": (0, 0), "range": (0, (1 << key.bits) - 1)}
    return value == everything.get(key.kind)


def number(path: str, value: Any, bits: int) -> int:
    """Returns a value of so many bits as an unsigned integer. A negative number becomes its two's
    complement, as in the tutorials. Raises Wrong."""
    is_list = isinstance(value, list) and len(value) == 1
    parsed = _parsed(value[0] if is_list else value, bits)
    if parsed is None or not -(1 << bits >> 1) <= parsed < 1 << bits:
        names = "a MAC, IPv4 or IPv6 address" + (", true or false" if bits == 1 else "")
        allowed = f"{-(1 << bits >> 1)} to {(1 << bits) - 1}, {names}, of {bits} bits"
        raise Wrong(path, f"{value!r} does not fit into the key or parameter", allowed)
    return parsed % (1 << bits)


def _parsed(value: Any, bits: int) -> int | None:
    if isinstance(value, bool):
        return int(value) if bits == 1 else None
    return value if isinstance(value, int) else _from_text(value, bits)


def _from_text(value: Any, bits: int) -> int | None:
    if not isinstance(value, str):
        return None
    if MAC.fullmatch(value):
        return int(value.replace(":", ""), 16)
    try:
        if ":" in value:
            return int(ipaddress.IPv6Address(value)) if bits == IPV6_BITS else None
        return int(ipaddress.IPv4Address(value)) if "." in value else int(value, 0)
    except ValueError:
        return None
