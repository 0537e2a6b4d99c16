"""The keys of a scenario that are Libra's own."""

from __future__ import annotations

from dataclasses import dataclass

from agglab.testbed.scenario.key import key, keys_list
from agglab.testbed.scenario.kinds import Pattern, Whole


@dataclass(frozen=True)
class LibraKeys:
    """The section `libra`."""

    servers: tuple[str, ...] = keys_list(
        "servers",
        Pattern(),
        "hosts, by name or pattern, that only serve; without any, a server runs beside each worker",
    )
    hot: int = key(
        "hot",
        Whole(0, 100_000),
        1024,
        "how many keys switches sum, of all servers together; 0: servers alone sum, to which "
        "workers then send directly",
    )
    sample_every: int = key(
        "sample_every",
        Whole(1, 1_000_000),
        10,
        "rounds from one sample to the next, the first included: there all keys are cold, and the "
        "servers choose the keys that are hot until the next",
    )
    fraction_bits: int = key(
        "fraction_bits",
        Whole(0, 30),
        20,
        "float32: values are summed as integers, this power of two times as large",
    )
