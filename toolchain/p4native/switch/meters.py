"""The classes Meters, which reads and sets the meters of one running program, and MeterRates."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass

from p4native.switch.errors import PipelineError
from p4native.switch.library import U32, Instance, Rate, check
from p4native.switch.model import Meter
from p4native.switch.tables import Tables, check_entry

MAX_PER_S = 1e12
MAX_BURST = (1 << 64) - 1


@dataclass(frozen=True)
class MeterRates:
    """A meter's two rates, in packets or bytes. Traffic above the peak rate is red, and other
    traffic above the committed rate is yellow."""

    committed_per_s: float
    committed_burst: int
    peak_per_s: float
    peak_burst: int


class Meters:
    """The meters of one running program, including those of table entries. `pipeline.meters` is an
    instance."""

    def __init__(self, instance: Instance, tables: Tables) -> None:
        self._instance = instance
        self._tables = tables

    def _meter(self, name: str, index: int) -> Meter:
        meter = self._instance.program.meters.get(name)
        if meter is None:
            raise PipelineError(f"no meter is called '{name}'")
        if not 0 <= index < meter.size:
            raise PipelineError(
                f"meter '{name}' has the indexes 0 to {meter.size - 1}, not {index}"
            )
        return meter

    def write(self, name: str, index: int, rates: MeterRates | None) -> None:
        """Sets the rates of a meter, whose buckets are full at first. With None, the meter marks
        all packets green, as before any rates were set."""
        meter = self._meter(name, index)
        result = self._instance.call("pl_meter_set", meter.index, index, encode_rates(rates))
        check(result, f"meter '{name}'")

    def read(self, name: str, index: int) -> MeterRates | None:
        """Returns a meter's rates, or None if no rates are set."""
        meter = self._meter(name, index)
        rates, configured = (Rate * 2)(), U32()
        result = self._instance.call("pl_meter_read", meter.index, index, rates, configured)
        check(result, f"meter '{name}'")
        return decode_rates(rates) if configured.value else None

    def write_entry(self, table: str, handle: int, rates: MeterRates | None) -> None:
        """Sets the meter of a table entry."""
        found = self._tables.find(table)
        result = self._instance.call("pl_entry_meter_set", found.index, handle, encode_rates(rates))
        check_entry(result, found, "direct meters")

    def read_entry(self, table: str, handle: int) -> MeterRates | None:
        """Returns the rates of a table entry's meter, or None if no rates are set."""
        found = self._tables.find(table)
        rates, configured = (Rate * 2)(), U32()
        result = self._instance.call("pl_entry_meter_read", found.index, handle, rates, configured)
        check_entry(result, found, "direct meters")
        return decode_rates(rates) if configured.value else None


def encode_rates(rates: MeterRates | None) -> object:
    if rates is None:
        return None
    pairs = (
        (rates.committed_per_s, rates.committed_burst),
        (rates.peak_per_s, rates.peak_burst),
    )
    for per_s, burst in pairs:
        if not (math.isfinite(per_s) and 0 <= per_s <= MAX_PER_S):
            raise PipelineError(f"a meter's rate is 0 to {MAX_PER_S:.0f} a second, not {per_s}")
        if not 0 <= burst <= MAX_BURST:
            raise PipelineError(f"a meter's burst is 0 to {MAX_BURST}, not {burst}")
    if rates.committed_per_s > rates.peak_per_s:
        raise PipelineError("a meter's committed rate cannot be above its peak rate")
    return (Rate * 2)(*[Rate(per_s / 1e6, burst) for per_s, burst in pairs])


def decode_rates(rates: ctypes.Array[Rate]) -> MeterRates:
    committed, peak = rates
    return MeterRates(committed.per_us * 1e6, committed.burst, peak.per_us * 1e6, peak.burst)
