"""Meters, digests, value sets and idle entries of an instance."""

from __future__ import annotations

import ctypes
import errno
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from agglab.switch.arrays import Arrays
from agglab.switch.encoding import encode_value_set
from agglab.switch.errors import PipelineError
from agglab.switch.library import U32, Rate, check
from agglab.switch.matches import Match
from agglab.switch.model import Meter, Table

DIGEST_ROOM = 1 << 18
"""DIGEST_ROOM of state.h: what waits to be taken never has more bytes."""
LIST = struct.Struct("=H")
MAX_PER_S = 1e12
MAX_BURST = (1 << 64) - 1


@dataclass(frozen=True)
class MeterRates:
    """A meter's two rates, in packets or bytes: above peak red, above committed yellow."""

    committed_per_s: float
    committed_burst: int
    peak_per_s: float
    peak_burst: int


class State(Arrays):
    """What `Pipeline` does with meters, digests, value sets and idle entries."""

    def _meter(self, name: str, index: int) -> Meter:
        meter = self.program.meters.get(name)
        if meter is None:
            raise PipelineError(f"no meter is called '{name}'")
        if not 0 <= index < meter.size:
            raise PipelineError(f"meter '{name}' has the indexes 0 to {meter.size - 1}")
        return meter

    def meter_write(self, name: str, index: int, rates: MeterRates | None) -> None:
        """Set a meter; its buckets begin full. None: all packets are green, as at the start."""
        meter = self._meter(name, index)
        result = self.library.pl_meter_set(self.handle, meter.index, index, encode_rates(rates))
        check(result, f"meter '{name}'")

    def meter_read(self, name: str, index: int) -> MeterRates | None:
        """A meter's rates, None if it has none."""
        meter = self._meter(name, index)
        rates, configured = (Rate * 2)(), U32()
        result = self.library.pl_meter_read(self.handle, meter.index, index, rates, configured)
        check(result, f"meter '{name}'")
        return decode_rates(rates) if configured.value else None

    def direct_meter_write(self, table: str, handle: int, rates: MeterRates | None) -> None:
        """Set the meter of a table entry."""
        found = self._table(table)
        result = self.library.pl_entry_meter_set(
            self.handle, found.index, handle, encode_rates(rates)
        )
        self._check_entry(result, found, "direct meters")

    def direct_meter_read(self, table: str, handle: int) -> MeterRates | None:
        """The rates of a table entry's meter."""
        found = self._table(table)
        rates, configured = (Rate * 2)(), U32()
        result = self.library.pl_entry_meter_read(
            self.handle, found.index, handle, rates, configured
        )
        self._check_entry(result, found, "direct meters")
        return decode_rates(rates) if configured.value else None

    def _check_entry(self, result: int, table: Table, what: str) -> None:
        if result == -errno.EPERM:
            raise PipelineError(f"table '{table.name}' has no {what}")
        check(result, f"table '{table.name}'")

    def entry_take_hit(self, table: str, handle: int) -> bool:
        """Whether a packet has matched an entry since the last call; the table must have
        support_timeout."""
        found = self._table(table)
        hit = int(self.library.pl_entry_take_hit(self.handle, found.index, handle))
        self._check_entry(min(hit, 0), found, "timeouts")
        return hit > 0

    def value_set_write(self, name: str, members: Sequence[Sequence[Match]]) -> None:
        """Set all members of a parser value set, each with a match for every field of the key."""
        value_set = self.program.value_sets.get(name)
        if value_set is None:
            raise PipelineError(f"no value set is called '{name}'")
        if not value_set.bits:
            raise PipelineError(f"no parser state uses the value set '{name}'")
        data = b"".join(encode_value_set(value_set, member) for member in members)
        result = self.library.pl_value_set_fill(self.handle, value_set.index, data, len(members))
        check(result, f"value set '{name}'")

    def take_digests(self) -> list[tuple[str, tuple[int, ...]]]:
        """The (name, fields) of the digests since the last call, in order. What is not taken in
        time is dropped when 256 KiB wait, counted `digest`."""
        if not self.program.learn_lists:
            return []
        buffer = ctypes.create_string_buffer(DIGEST_ROOM)
        size = self.library.pl_take_digests(self.handle, buffer, DIGEST_ROOM)
        data = buffer.raw[:size]
        found, at = [], 0
        while at < size:
            learned = self.program.learn_lists[LIST.unpack_from(data, at)[0]]
            at += LIST.size
            values = []
            for _, field in learned.fields:
                values.append(int.from_bytes(data[at : at + field.bytes], "big"))
                at += field.bytes
            found.append((learned.name, tuple(values)))
        return found


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
