"""The programs for floats of 16 bits add halves exactly and round once: docs/numbers.md."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from halves import (
    FORMATS,
    HEADERS,
    PORTS,
    RESULT,
    SIGN,
    VALUES,
    Format,
    Halves,
    Switch,
    check,
    frame,
    programmed,
    run,
    sums,
)

from agglab.hosts.bfloat16 import BFLOAT16
from agglab.systems.switchml.halves import rounded_sum

Integers = Any
DTYPES = {"float16": np.dtype(np.float16), "bfloat16": BFLOAT16}
NEAR = range(-12, 13)
"""How far a second exponent is from the first where a sum is rounded; more changes nothing."""


@pytest.fixture(scope="module", params=list(FORMATS))
def switch(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Switch:
    return programmed(tmp_path_factory.mktemp("half"), request.param)


SESSIONS = itertools.count(1, 1 << 20)


@pytest.fixture
def tag() -> int:
    """Ahead of all that the tests before have used."""
    return next(SESSIONS)


def packed(own: Format, signs: Integers, fields: Integers, fractions: Integers) -> Halves:
    """Fields beyond the last are those of Inf and NaN, below the first those of subnormals."""
    fields = np.clip(fields, 0, own.fields - 1)
    bits: Halves = (signs << 15 | fields << own.fraction_bits | fractions).astype(np.uint16)
    return bits


def edges(own: Format) -> tuple[int, ...]:
    """Fractions at the ends, the middle and beside them: what decides how a sum is rounded."""
    one, half = 1 << own.fraction_bits, 1 << own.fraction_bits - 1
    return 0, 1, half - 1, half, half + 1, one - 1


def any_halves(own: Format, seed: int, workers: int = 3, packets: int = 60) -> list[Halves]:
    chance = np.random.default_rng(seed)
    return list(chance.integers(0, 65536, (workers, packets * VALUES), np.uint16))


def alike(own: Format, seed: int, packets: int = 80) -> list[Halves]:
    """Of three workers: exponents that differ by at most one, so that sums cancel and round."""
    chance = np.random.default_rng(seed)
    shape = 3, packets * VALUES
    fields = chance.integers(0, own.fields, packets * VALUES) + chance.integers(-1, 2, shape)
    signs, fractions = (chance.integers(0, n, shape) for n in (2, 1 << own.fraction_bits))
    return list(packed(own, signs, fields, fractions))


def cancelled(own: Format, seed: int) -> list[Halves]:
    """The first two leave nothing, or their last bits, beside a third from anywhere below."""
    first, last, _ = any_halves(own, seed)
    return [first, first ^ SIGN ^ (last & 1), last]


def undecided(own: Format, seed: int) -> list[Halves]:
    """Half a last place on top of a value, and a third that is too small for all but this tie."""
    chance, bits = np.random.default_rng(seed), own.fraction_bits
    size = 60 * VALUES
    fields = chance.integers(bits + 2, own.fields - 1, size)
    signs = chance.integers(0, 2, (3, size))
    value = packed(own, signs[0], fields, chance.integers(0, 1 << bits, size))
    tie = packed(own, signs[1], fields - bits - 1, np.zeros(size, np.int64))
    below = chance.integers(0, fields - bits - 1)
    return [value, tie, packed(own, signs[2], below, chance.integers(0, 2, size))]


def crowd(own: Format, seed: int) -> list[Halves]:
    """Of 64 workers: the largest values of one sign and one bin, which fill that bin; then values
    of any exponent, of which most cancel."""
    chance = np.random.default_rng(seed)
    size, one = 12 * VALUES, (1 << own.fraction_bits) - 1
    top = np.clip(chance.integers(1, 10, size) * 32, 0, own.fields - 2)
    full = packed(own, chance.integers(0, 2, size), top, np.full(size, one))
    any_fields = chance.integers(0, own.fields - 1, (32, size))
    half = packed(own, chance.integers(0, 2, (32, size)), any_fields, chance.integers(0, one, size))
    scattered = np.concatenate([half, half ^ SIGN ^ (chance.random((32, size)) < 0.05)])
    return list(np.concatenate([np.tile(full, (64, 1)), scattered], axis=1).astype(np.uint16))


MANY = {each.__name__: each for each in (any_halves, alike, cancelled, undecided)}


def wanted(own: Format, inputs: list[Halves]) -> list[int]:
    return [own.exact_sum(halves) for halves in zip(*(x.tolist() for x in inputs), strict=True)]


def edge_pairs(own: Format, signs: tuple[int, int]) -> tuple[Halves, Halves]:
    """Each exponent with those near it and with the ends, and all fractions at edges."""
    ends = (0, 1, own.fields - 2, own.fields - 1)
    fields = [
        (field, other)
        for field in range(own.fields)
        for other in {*(field + near for near in NEAR), *ends}
        if 0 <= other < own.fields
    ]
    pairs = np.array(list(itertools.product(fields, edges(own), edges(own))), object)
    first, second = np.array(pairs[:, 0].tolist()).T
    a, b = pairs[:, 1].astype(np.int64), pairs[:, 2].astype(np.int64)
    return packed(own, signs[0], first, a), packed(own, signs[1], second, b)


@pytest.mark.long(but=["float16-signs1", "bfloat16-signs2"])
@pytest.mark.parametrize("signs", [(0, 0), (0, 1), (1, 1)])
def test_pairs_of_every_exponent_and_rounding_case(
    switch: Switch, tag: int, signs: tuple[int, int]
) -> None:
    check(switch, *edge_pairs(switch.format, signs), tag)


def test_pairs_of_any_bits(switch: Switch, tag: int) -> None:
    check(switch, *any_halves(switch.format, 1, 2, 2000), tag)


@pytest.mark.parametrize("made", MANY.values(), ids=MANY)
def test_three_are_rounded_once(
    switch: Switch, tag: int, made: Callable[[Format, int], list[Halves]]
) -> None:
    inputs = made(switch.format, 2)
    got = np.concatenate(list(sums(switch, inputs, tag)))
    assert got.tolist() == wanted(switch.format, inputs)


def test_the_most_workers_fill_no_bin(switch: Switch, tag: int) -> None:
    inputs = crowd(switch.format, 3)
    right = wanted(switch.format, inputs)
    got = np.concatenate(list(sums(switch, inputs, tag)))
    assert got.tolist() == right
    dtype = DTYPES[switch.format.name]
    truth = rounded_sum([values.view(dtype) for values in inputs]).view(np.uint16)
    assert truth.tolist() == right


@pytest.mark.parametrize("made", MANY.values(), ids=MANY)
@pytest.mark.parametrize("name", FORMATS)
def test_the_truth_is_the_same_by_whole_numbers(
    name: str, made: Callable[[Format, int], list[Halves]]
) -> None:
    own = FORMATS[name]
    inputs = [*made(own, 4), *made(own, 5)[:1]]
    size = min(part.size for part in inputs)
    inputs = [part[:size] for part in inputs]
    truth = rounded_sum([values.view(DTYPES[name]) for values in inputs]).view(np.uint16)
    assert truth.tolist() == wanted(own, inputs)


FLOAT16_CASES = [
    ((0x8000, 0x8000, 0x8000), 0x8000),  # -0
    ((0x8000, 0x0000, 0x8000), 0x0000),
    ((0x3C00, 0xBC00, 0x8000), 0x0000),  # 1 - 1 - 0
    ((0x7BFF, 0x7BFF, 0xFBFF), 0x7BFF),  # beyond the largest on the way, not in the end
    ((0x7BFF, 0x4BFF, 0x0000), 0x7BFF),  # 65,504 + 15.99
    ((0x7BFF, 0x4C00, 0x0000), 0x7C00),  # 65,504 + 16: the tie goes to Inf
    ((0x7BFF, 0x4C00, 0x8001), 0x7BFF),  # less 2^-24: no tie
    ((0x7C00, 0xFBFF, 0xFBFF), 0x7C00),  # Inf
    ((0x7C00, 0xFC00, 0x0000), 0x7E00),  # Inf - Inf
    ((0xFFFF, 0x3C00, 0xFC00), 0x7E00),  # NaN
    ((0x0001, 0x0001, 0x03FE), 0x0400),  # subnormals make a normal
]
BFLOAT16_CASES = [
    ((0x8000, 0x8000, 0x8000), 0x8000),  # -0
    ((0x8000, 0x0000, 0x8000), 0x0000),
    ((0x3F80, 0xBF80, 0x8000), 0x0000),  # 1 - 1 - 0
    ((0x7F7F, 0x7F7F, 0xFF7F), 0x7F7F),  # beyond the largest on the way, not in the end
    ((0x7F7F, 0x7AFF, 0x0000), 0x7F7F),  # the largest and not quite half its last place
    ((0x7F7F, 0x7B00, 0x0000), 0x7F80),  # half its last place: the tie goes to Inf
    ((0x7F7F, 0x7B00, 0x8001), 0x7F7F),  # less 2^-133: no tie
    ((0x7F7F, 0xFF7F, 0x0001), 0x0001),  # 2^-133 is left of sums of 2^127
    ((0x7F80, 0xFF7F, 0xFF7F), 0x7F80),  # Inf
    ((0x7F80, 0xFF80, 0x0000), 0x7FC0),  # Inf - Inf
    ((0xFFFF, 0x3F80, 0xFF80), 0x7FC0),  # NaN
    ((0x0001, 0x0001, 0x007E), 0x0080),  # subnormals make a normal
    ((0x2C5B, 0x2C1A, 0x2C0A), 0x2D00),  # ones up to a word's end, rounded up
]


@pytest.mark.parametrize("case", range(max(len(FLOAT16_CASES), len(BFLOAT16_CASES))))
def test_what_has_a_rule_of_its_own(switch: Switch, tag: int, case: int) -> None:
    cases = FLOAT16_CASES if switch.format.name == "float16" else BFLOAT16_CASES
    halves, right = cases[min(case, len(cases) - 1)]
    assert switch.format.exact_sum(halves) == right
    inputs = [np.full(VALUES, half, np.uint16) for half in halves]
    (got,) = sums(switch, inputs, tag)
    assert got.tolist() == [right] * VALUES


def test_a_result_is_repeated_and_a_slot_begins_afresh(switch: Switch, tag: int) -> None:
    job, ports = PORTS[3]
    own = switch.format
    first, second = alike(own, 6, 1), alike(own, 7, 1)
    (before,) = sums(switch, first, tag)
    again = switch.pipeline.process(ports[0], frame(ports[0], job, tag, first[0], own.kind))
    assert [port for port, _ in again] == [ports[0]]
    assert again[0][1][HEADERS:] == before.astype(">u2").tobytes()
    assert again[0][1][HEADERS - 11] == own.kind | RESULT
    (after,) = sums(switch, second, tag + 2)  # the same set of the slot
    assert after.tolist() == wanted(own, second)


def test_a_packet_that_came_twice_counts_once(switch: Switch, tag: int) -> None:
    job, ports = PORTS[3]
    own = switch.format
    inputs = alike(own, 8, 1)
    for _ in range(2):
        sent = frame(ports[0], job, tag, inputs[0], own.kind)
        assert switch.pipeline.process(ports[0], sent) == []
    (got,) = sums(switch, inputs, tag)
    assert got.tolist() == wanted(own, inputs)


@pytest.mark.parametrize("values", [VALUES - 1, VALUES + 1])
def test_another_length_is_refused(switch: Switch, tag: int, values: int) -> None:
    job, ports = PORTS[2]
    zeros = np.zeros(values, np.uint16)
    for port in ports:
        sent = frame(port, job, tag, zeros, switch.format.kind)
        assert switch.pipeline.process(port, sent) == []


def test_another_kind_is_not_summed_with_it(switch: Switch, tag: int) -> None:
    job, ports = PORTS[2]
    zeros, kind = np.zeros(VALUES, np.uint16), switch.format.kind
    process = switch.pipeline.process
    assert process(ports[0], frame(ports[0], job, tag, zeros, kind)) == []
    assert process(ports[1], frame(ports[1], job, tag, zeros, 0)) == []
    assert len(process(ports[1], frame(ports[1], job, tag, zeros, kind))) == 2


def test_the_other_type_of_16_bits_is_unknown(switch: Switch, tag: int) -> None:
    job, ports = PORTS[2]
    zeros = np.zeros(VALUES, np.uint16)
    for own in FORMATS.values():
        first, second = (
            switch.pipeline.process(port, frame(port, job, tag, zeros, own.kind)) for port in ports
        )
        assert first == []
        assert len(second) == (2 if own == switch.format else 0)


@pytest.mark.parametrize("numbers", [["random", "65_537"], ["every", "0x3c00", "0x3c02"]])
def test_the_longer_tests_go_on_with_tags_that_no_packet_had(numbers: list[str]) -> None:
    """Two batches, whose last packets are not full."""
    run("float16", *numbers)
