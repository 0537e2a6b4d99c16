"""The keys of a scenario that are Libra's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agglab.testbed.schema.key import key, keys_list
from agglab.testbed.schema.kinds import Pattern, Whole


@dataclass(frozen=True)
class LibraKeys:
    """The keys of the section `libra`."""

    servers: tuple[str, ...] = keys_list(
        "servers",
        Pattern(),
        "hosts, by name or pattern, that only run servers; without any, a server runs beside "
        "each worker",
    )
    hot: int = key(
        "hot",
        Whole(0, 100_000),
        1024,
        "how many keys switches sum, for all servers together; with 0 only servers sum, and "
        "workers send directly to them",
    )
    sample_every: int = key(
        "sample_every",
        Whole(1, 1_000_000),
        10,
        "number of rounds from one sample to the next. The first round is a sample: all keys "
        "are cold then, and the servers choose the keys that are hot until the next sample",
    )
    fraction_bits: int = key(
        "fraction_bits",
        Whole(0, 30),
        20,
        "float32: values are multiplied by 2 to the power of this number and summed as integers",
    )


def unused_keys(own: LibraKeys, rounds: int) -> Iterator[tuple[str, str]]:
    """Yields the path of each key without effect, and why it has none. rounds: how many the longest
    job has."""
    if not own.hot and own.sample_every != LibraKeys().sample_every:
        yield "libra.sample_every", "without hot keys (`libra.hot: 0`) no round is a sample"
    if own.hot and min(own.sample_every, rounds) == 1:
        yield "libra.hot", "every round is a sample, in which all keys are cold"
