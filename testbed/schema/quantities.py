"""Tells of which quantity a value or a metric is, and knows the units in which figures show it."""

from __future__ import annotations

from agglab.testbed.base.problems import Where
from agglab.testbed.schema.document import Scalar
from agglab.testbed.schema.kinds import InvalidText, Kind, Share, decimal, duration, rate, size

SECONDS, RATE, BYTES, SHARE, PLAIN = "seconds", "bits per second", "bytes", "share", ""
UNITS_OF_QUANTITIES = {
    SECONDS: {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0},
    RATE: {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9},
    BYTES: {"B": 1.0, "kB": 1e3, "KiB": 2.0**10, "MB": 1e6, "MiB": 2.0**20, "GB": 1e9},
    SHARE: {"%": 0.01},
    PLAIN: {"thousand": 1e3, "million": 1e6, "billion": 1e9},
}
UNITS = {
    unit: (quantity, factor)
    for quantity, units in UNITS_OF_QUANTITIES.items()
    for unit, factor in units.items()
}
"""The units of figures: the quantity of each, and the factor that turns it into the plain unit."""
OF_SERIES = {"bit/s": RATE, "s": SECONDS, "bytes": BYTES}
"""The quantities of metrics over time, by their unit there."""


def quantity_of_value(text: str) -> str:
    """Returns the quantity of a scalar of a scenario; PLAIN for numbers and for words."""
    if decimal(text) is not None:
        return PLAIN
    kinds: dict[str, Kind] = {RATE: rate(), SECONDS: duration(), BYTES: size(), SHARE: Share()}
    for quantity, kind in kinds.items():
        try:
            kind.read(Scalar(text, False, Where("")))
        except InvalidText:
            continue
        return quantity
    return PLAIN


def quantity_of_metric(path: str) -> str:
    """Returns the quantity of a metric, which the words of its path end in: `time_s.median` is of
    seconds, and `ate_per_s` is a plain number."""
    for word in path.split("."):
        if word.endswith("_s") and not word.endswith("_per_s"):
            return SECONDS
        if word.endswith("_bps"):
            return RATE
        if word == "bytes" or word.endswith("_bytes") or word.startswith("bytes_"):
            return BYTES
    return PLAIN


def units_of(quantity: str) -> list[str]:
    """Returns the units in which values of a quantity can be shown. A plain number may be a
    share."""
    quantities = (PLAIN, SHARE) if quantity in (PLAIN, SHARE) else (quantity,)
    return [unit for each in quantities for unit in UNITS_OF_QUANTITIES[each]]
