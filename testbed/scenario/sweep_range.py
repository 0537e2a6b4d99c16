"""Reads the values of a swept key from a range: `{from: 10mbit, to: 100mbit, count: 4, scale:
log}`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping as Named
from dataclasses import dataclass
from decimal import Decimal

from agglab.testbed.schema.document import Mapping, Scalar

ALLOWED = "{from: 2, to: 8}, and step: 2, or count: 4 and scale: linear or log"
COUNT_MAX = 4096
DIGITS = 6
"""The number of significant digits of a value between the ends, if the ends are not whole
numbers."""
SCALES = ("linear", "log")
_NUMBER = re.compile(r"([0-9][0-9_]*(?:\.[0-9]+)?)\s*([A-Za-z%/]*)")


class RangeError(ValueError):
    """Raised for a wrong range. The message is one line."""


@dataclass(frozen=True)
class _Ends:
    first: Decimal
    last: Decimal
    unit: str

    @property
    def are_whole(self) -> bool:
        return self.first == self.first.to_integral() and self.last == self.last.to_integral()


def values(node: Mapping) -> tuple[Scalar, ...]:
    """Returns the values of a range, in the form that a list of values has. Each value occurs once.
    With `count`, values are rounded to whole numbers if both ends are whole. Raises RangeError."""
    given = _given(node)
    ends = _ends(given)
    numbers = _stepped(ends, given) if "count" not in given else _counted(ends, given)
    texts = dict.fromkeys(f"{number}{ends.unit}" for number in numbers)
    return tuple(Scalar(text, False, node.where) for text in texts)


def _given(node: Mapping) -> dict[str, str]:
    given: dict[str, str] = {}
    for name, value in node.entries:
        if name.text not in ("from", "to", "step", "count", "scale"):
            raise RangeError(f"unknown key '{name.text}' of a range")
        if name.text in given:
            raise RangeError(f"has '{name.text}' twice")
        if not isinstance(value, Scalar):
            raise RangeError(f"'{name.text}' of a range must be a single value")
        given[name.text] = value.text
    for end in ("from", "to"):
        if end not in given:
            raise RangeError(f"lacks '{end}'")
    if given.get("scale", "linear") not in SCALES:
        raise RangeError(f"scale is '{given['scale']}'")
    if "count" in given and "step" in given:
        raise RangeError("has both 'count' and 'step'")
    if "scale" in given and "count" not in given:
        raise RangeError("has a 'scale' without a 'count'")
    return given


def _ends(given: Named[str, str]) -> _Ends:
    (first, unit), (last, other) = _number(given["from"]), _number(given["to"])
    if unit != other:
        raise RangeError(f"'{given['from']}' and '{given['to']}' have different units")
    if not first < last:
        raise RangeError(f"'{given['to']}' is not greater than '{given['from']}'")
    return _Ends(first, last, unit)


def _number(text: str) -> tuple[Decimal, str]:
    match = _NUMBER.fullmatch(text.strip())
    if not match:
        raise RangeError(f"'{text}' is not a number of 0 or more, with or without a unit")
    return Decimal(match[1].replace("_", "")), match[2]


def _stepped(ends: _Ends, given: Named[str, str]) -> list[str]:
    step, unit = _number(given.get("step", "1"))
    if unit not in ("", ends.unit) or not step > 0:
        raise RangeError(f"step is '{given['step']}'")
    count = int((ends.last - ends.first) / step) + 1
    if count > COUNT_MAX:
        raise RangeError(f"has {count} values")
    return [_plain(ends.first + step * number) for number in range(count)]


def _counted(ends: _Ends, given: Named[str, str]) -> list[str]:
    text = given["count"]
    if not (text.isdecimal() and 2 <= int(text) <= COUNT_MAX):
        raise RangeError(f"count is '{text}', which is not a whole number from 2 to {COUNT_MAX}")
    count = int(text)
    if given.get("scale") == "log" and not ends.first:
        raise RangeError("a logarithmic range must begin above 0")
    inner = (_between(ends, place / (count - 1), given) for place in range(1, count - 1))
    return [_plain(ends.first), *inner, _plain(ends.last)]


def _between(ends: _Ends, share: float, given: Named[str, str]) -> str:
    first, last = float(ends.first), float(ends.last)
    if given.get("scale") == "log":
        value = math.exp(math.log(first) + share * (math.log(last) - math.log(first)))
    else:
        value = first + share * (last - first)
    if ends.are_whole:
        return str(round(value))
    return _plain(Decimal(f"{value:.{DIGITS}g}"))


def _plain(number: Decimal) -> str:
    """Returns the number as text, without an exponent and without superfluous zeros."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
