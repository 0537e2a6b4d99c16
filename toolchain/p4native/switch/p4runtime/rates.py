"""Checks and converts MeterConfig and CounterData. Rates are per second, here and in the
library."""

from __future__ import annotations

from p4.v1.p4runtime_pb2 import CounterData, MeterConfig

from p4native.switch import MeterRates
from p4native.switch.meters import MAX_PER_S
from p4native.switch.p4runtime.status import invalid


def check_counts(where: str, data: CounterData) -> None:
    """Raises INVALID_ARGUMENT for a count that no counter can hold."""
    if data.packet_count < 0 or data.byte_count < 0:
        raise invalid(f"{where}: a count is negative")


def decode_rates(where: str, config: MeterConfig) -> MeterRates:
    """Returns the rates of a configuration, after checking them."""
    for name in ("cir", "cburst", "pir", "pburst"):
        if getattr(config, name) < 0:
            raise invalid(f"{where}: {name} is negative")
    if config.pir > MAX_PER_S:
        raise invalid(f"{where}: pir is {config.pir}; at most {MAX_PER_S:.0f} are allowed")
    if config.eburst:
        raise invalid(f"{where}: eburst is given, but the meter has two rates")
    if config.cir > config.pir:
        raise invalid(f"{where}: cir {config.cir} is above pir {config.pir}")
    return MeterRates(config.cir, config.cburst, config.pir, config.pburst)


def encode_rates(rates: MeterRates) -> MeterConfig:
    """Returns the configuration that has these rates, which are whole numbers."""
    return MeterConfig(
        cir=round(rates.committed_per_s),
        cburst=rates.committed_burst,
        pir=round(rates.peak_per_s),
        pburst=rates.peak_burst,
    )
