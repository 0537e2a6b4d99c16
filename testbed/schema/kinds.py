"""Kinds of values. Each kind reads a scalar's text, says what is allowed, and writes the value
back."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from agglab.testbed.base.problems import nearest, quote
from agglab.testbed.schema.document import Scalar

RATE_UNITS = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
TIME_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
SIZE_UNITS = {"B": 1, "kB": 10**3, "KiB": 2**10, "MB": 10**6, "MiB": 2**20}

_INTEGER = re.compile(r"[+-]?\d[\d_]*")
_DECIMAL = re.compile(r"[+-]?(\d[\d_]*\.?[\d_]*|\.\d[\d_]*)([eE][+-]?\d+)?")
_QUANTITY = re.compile(r"([+-]?[\d_.]+(?:[eE][+-]?\d+(?=\D|$))?)\s*([A-Za-zµ%/]*)")
_DIGITS_MAX = 40


class InvalidText(ValueError):
    """Raised for a text that is not of the kind that reads it. The message says why."""


class Kind(ABC):
    """A kind of values, which reads a scalar's text into a value. `allowed` completes an error
    message."""

    allowed: str

    @abstractmethod
    def read(self, scalar: Scalar) -> Any:
        """Returns the value. Raises InvalidText if the text is not of this kind."""

    def write(self, value: Any) -> Any:
        """Returns the value in the form that it has in a resolved scenario (a YAML scalar)."""
        return value

    @abstractmethod
    def json_schema(self) -> dict[str, Any]:
        """Returns the JSON Schema (draft 7) of the values that are allowed, as YAML 1.2 reads them.
        It refuses no text that `read` accepts."""


_MAGNITUDE = r"([+]?[\d_.]+|-[0_.]+)([eE][+-]?\d+)?"
_UNDERSCORED = {"type": "string", "pattern": r"^[+-]?\d[\d.]*_[\d_.]*([eE][+-]?\d+)?$"}
"""The JSON Schema of a number such as `1_000`, which is text in YAML 1.2."""


def integer(text: str) -> int | None:
    """Returns an integer such as `1_000` or `-4`. Texts such as `1e6` and `2.0` are accepted too,
    because their values are whole. Returns None for other texts."""
    if len(text) > _DIGITS_MAX:
        return None
    if _INTEGER.fullmatch(text):
        return int(text.replace("_", ""))
    number = decimal(text)
    return int(number) if number is not None and number.is_integer() else None


def decimal(text: str) -> float | None:
    """Returns a finite decimal number; None if the text is none."""
    if len(text) > _DIGITS_MAX or not _DECIMAL.fullmatch(text):
        return None
    number = float(text.replace("_", ""))
    return number if math.isfinite(number) else None


def _plain(scalar: Scalar, what: str) -> str:
    if scalar.quoted:
        raise InvalidText(f"{quote(scalar.text)} in quotes is text and not {what}")
    return scalar.text


def _in_range(value: float, low: float, high: float, text: str) -> None:
    if value < low:
        raise InvalidText(f"{quote(text)} is too small")
    if value > high:
        raise InvalidText(f"{quote(text)} is too large")


@dataclass(frozen=True)
class Whole(Kind):
    low: int
    high: int

    @property
    def allowed(self) -> str:  # type: ignore[override]
        return f"a whole number from {self.low} to {self.high}"

    def read(self, scalar: Scalar) -> int:
        value = integer(_plain(scalar, "a number"))
        if value is None:
            raise InvalidText(f"{quote(scalar.text)} is not a whole number")
        _in_range(value, self.low, self.high, scalar.text)
        return value

    def json_schema(self) -> dict[str, Any]:
        limits = {"minimum": self.low, "maximum": self.high}
        return {"anyOf": [{"type": "integer", **limits}, _UNDERSCORED]}


@dataclass(frozen=True)
class OneOf(Kind):
    """One of a few whole numbers."""

    options: tuple[int, ...]

    @property
    def allowed(self) -> str:  # type: ignore[override]
        return ", ".join(map(str, self.options))

    def read(self, scalar: Scalar) -> int:
        value = integer(_plain(scalar, "a number"))
        if value not in self.options:
            raise InvalidText(f"{quote(scalar.text)} is none of these")
        return value

    def json_schema(self) -> dict[str, Any]:
        return {"enum": list(self.options)}


@dataclass(frozen=True)
class Quantity(Kind):
    """A number with a unit of bits per second, seconds or bytes."""

    what: str
    units: dict[str, float]
    low: float
    high: float
    whole: bool = False

    @property
    def allowed(self) -> str:  # type: ignore[override]
        units = ", ".join(self.units)
        return f"{self.what} from {self.write(self.low)} to {self.write(self.high)} in {units}"

    def read(self, scalar: Scalar) -> float:
        match = _QUANTITY.fullmatch(scalar.text.strip())
        number = decimal(match[1]) if match else None
        if match is None or number is None:
            raise InvalidText(f"{quote(scalar.text)} is not {self.what}")
        value = number * self._factor(match[2], number, scalar.text)
        _in_range(value, self.low, self.high, scalar.text)
        return round(value) if self.whole else value

    def _factor(self, unit: str, number: float, text: str) -> float:
        if unit in self.units:
            return self.units[unit]
        if not unit and number == 0:
            return 0.0
        if not unit:
            raise InvalidText(f"{quote(text)} has no unit")
        return self._similar(unit, text)

    def _similar(self, unit: str, text: str) -> float:
        """Returns the factor of a unit whose spelling differs from a known one, but is clear:
        `100Mbit`, `100 mbit/s`, `5µs`. Units of sizes differ only by case, so their spelling must
        be exact."""
        plain = unit.replace("µ", "u")
        plain = plain if self.units is SIZE_UNITS else plain.lower().removesuffix("/s")
        if plain not in self.units:
            raise InvalidText(f"{quote(text)} has the unknown unit {quote(unit)}")
        return self.units[plain]

    def write(self, value: float) -> str:
        """Returns the value in the unit that makes it shortest, without rounding: reading the text
        gives `value` again."""
        base = next(unit for unit, factor in self.units.items() if factor == 1)
        texts = [f"{value!r}{base}"]
        for unit, factor in self.units.items():
            number = f"{value / factor:.15g}"
            if float(number) * factor == value and "e" not in number:
                texts.append(number + unit)
        shortest = min(reversed(texts), key=lambda text: (text.startswith("0."), len(text)))
        return shortest if value else f"0{base}"

    def json_schema(self) -> dict[str, Any]:
        units = "|".join(
            _any_case(unit) if self.units is not SIZE_UNITS else unit for unit in self.units
        )
        text = {"type": "string", "pattern": rf"^\s*{_MAGNITUDE}\s*({units})\s*$"}
        return {"anyOf": [text, {"const": 0}]} if self.low == 0 else text


def _any_case(unit: str) -> str:
    """Returns a regular expression for the spellings of a unit that `_similar` understands, such as
    `Mbit/s` and `µs`."""
    letters = (f"[{letter}{letter.upper()}{'µ' * (letter == 'u')}]" for letter in unit)
    return "".join(letters) + "(/[sS])?"


def rate(low: str = "8kbit", high: str = "400gbit") -> Quantity:
    return _quantity("a rate", RATE_UNITS, low, high, whole=True)


def duration(low: str = "0s", high: str = "60min") -> Quantity:
    return _quantity("a time", TIME_UNITS, low, high)


def size(low: str = "0B", high: str = "1024MiB") -> Quantity:
    return _quantity("a size", SIZE_UNITS, low, high, whole=True)


def _quantity(
    what: str, units: dict[str, Any], low: str, high: str, whole: bool = False
) -> Quantity:
    def number(text: str) -> float:
        digits = re.match(r"\d+", text)
        assert digits
        return int(digits[0]) * units[text[digits.end() :]]

    return Quantity(what, units, number(low), number(high), whole)


class Fraction(Kind):
    """A probability below 1: `0.1%` or `0.001`."""

    allowed = "a percentage or a fraction from 0 to below 100% (0.1% is 0.001)"
    below_1 = True

    def read(self, scalar: Scalar) -> float:
        text = scalar.text.strip()
        percent = text.endswith("%")
        number = decimal(text.rstrip("%").strip() if percent else text)
        if number is None:
            raise InvalidText(f"{quote(scalar.text)} is neither a percentage nor a fraction")
        value = number / 100 if percent else number
        if not percent and (value > 1 or (value == 1 and self.below_1)):
            meant = f", did you mean '{text}%'?" if number < 100 else ""
            raise InvalidText(f"{quote(scalar.text)} would be {number * 100:g} %{meant}")
        if not 0 <= value <= 1 or (self.below_1 and value == 1):
            raise InvalidText(f"{quote(scalar.text)} is out of range")
        return value

    def write(self, value: float) -> str | float:
        percent = f"{value * 100:.15g}"
        return f"{percent}%" if float(percent) / 100 == value else value

    def json_schema(self) -> dict[str, Any]:
        limit = "exclusiveMaximum" if self.below_1 else "maximum"
        percent: dict[str, Any] = {"type": "string", "pattern": rf"^\s*{_MAGNITUDE}\s*%\s*$"}
        if self.below_1:
            percent["not"] = {"pattern": "^\\s*100\\s*%"}
        return {"anyOf": [{"type": "number", "minimum": 0, limit: 1}, percent, _UNDERSCORED]}


class Share(Fraction):
    """A probability up to and including 1."""

    allowed = "a percentage or a fraction from 0 to 100% (0.1% is 0.001)"
    below_1 = False


@dataclass(frozen=True)
class Number(Kind):
    """A number without a unit."""

    low: float
    high: float

    @property
    def allowed(self) -> str:  # type: ignore[override]
        return f"a number from {self.low:g} to {self.high:g}"

    def read(self, scalar: Scalar) -> float:
        value = decimal(_plain(scalar, "a number").strip())
        if value is None:
            raise InvalidText(f"{quote(scalar.text)} is not a number")
        _in_range(value, self.low, self.high, scalar.text)
        return value

    def json_schema(self) -> dict[str, Any]:
        limits = {"minimum": self.low, "maximum": self.high}
        return {"anyOf": [{"type": "number", **limits}, _UNDERSCORED]}


class Flag(Kind):
    allowed = "true or false"

    def read(self, scalar: Scalar) -> bool:
        text = _plain(scalar, "true or false")
        if text not in ("true", "false", "True", "False"):
            raise InvalidText(f"{quote(text)} is not true or false")
        return text.lower() == "true"

    def json_schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


@dataclass(frozen=True)
class Choice(Kind):
    options: tuple[str, ...]

    @property
    def allowed(self) -> str:  # type: ignore[override]
        return ", ".join(self.options)

    def read(self, scalar: Scalar) -> str:
        if scalar.text not in self.options:
            raise InvalidText(
                f"unknown value {quote(scalar.text)}{nearest(scalar.text, self.options)}"
            )
        return scalar.text

    def json_schema(self) -> dict[str, Any]:
        return {"enum": list(self.options)}


@dataclass(frozen=True)
class Text(Kind):
    """Free text, or a word of a given pattern."""

    what: str = "text"
    pattern: str = r"[^\x00]*"
    length_max: int = 2000

    @property
    def allowed(self) -> str:  # type: ignore[override]
        return f"{self.what}, at most {self.length_max} characters"

    def read(self, scalar: Scalar) -> str:
        if len(scalar.text) > self.length_max:
            raise InvalidText(f"has {len(scalar.text)} characters")
        if not re.fullmatch(self.pattern, scalar.text, re.DOTALL):
            raise InvalidText(f"{quote(scalar.text)} is not {self.what}")
        return scalar.text

    def json_schema(self) -> dict[str, Any]:
        return {
            "type": ["string", "number", "boolean"],  # `2024` is a text, too
            "pattern": f"^(?:{self.pattern})$",
            "maxLength": self.length_max,
        }


@dataclass(frozen=True)
class AutoOr(Kind):
    """The word `auto`, or a value of another kind. `auto` is read as None, which `resolved.resolve`
    replaces."""

    kind: Kind
    meaning: str

    @property
    def allowed(self) -> str:  # type: ignore[override]
        return f"auto ({self.meaning}), or {self.kind.allowed}"

    def read(self, scalar: Scalar) -> Any:
        return None if scalar.text == "auto" else self.kind.read(scalar)

    def write(self, value: Any) -> Any:
        return "auto" if value is None else self.kind.write(value)

    def json_schema(self) -> dict[str, Any]:
        return {"anyOf": [{"const": "auto"}, self.kind.json_schema()]}


class Pattern(Kind):
    """A shell-style pattern over names of links, hosts or switches."""

    allowed = "a name or a pattern such as 'h1-*'"

    def read(self, scalar: Scalar) -> str:
        if not scalar.text or len(scalar.text) > 100:
            raise InvalidText(f"{quote(scalar.text)} is not a name or pattern")
        return scalar.text

    def json_schema(self) -> dict[str, Any]:
        return {"type": ["string", "number", "boolean"], "minLength": 1, "maxLength": 100}
