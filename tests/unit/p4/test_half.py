"""p4/switchml.p4 with FLOAT16 adds halves exactly and rounds once: docs/numbers.md."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from halves import (
    HALF,
    HEADERS,
    PORTS,
    RESULT,
    SIGN,
    VALUES,
    Halves,
    check,
    compiled,
    exact_sum,
    frame,
    programmed,
    sums,
)

from agglab.switch import Pipeline
from agglab.testbed.systems.switchml.halves import rounded_sum

FRACTIONS = (0, 1, 2, 0x1FF, 0x200, 0x201, 0x3FE, 0x3FF)
"""The ends, the middle and their neighbours: what decides how a sum is rounded."""


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    return programmed(compiled(tmp_path_factory.mktemp("half")))


SESSIONS = itertools.count(1, 1 << 20)


@pytest.fixture
def tag() -> int:
    """Ahead of all that the tests before have used."""
    return next(SESSIONS)


def any_halves(seed: int, workers: int, packets: int) -> list[Halves]:
    chance = np.random.default_rng(seed)
    return list(chance.integers(0, 65536, (workers, packets * VALUES), np.uint16))


def alike(seed: int, packets: int) -> list[Halves]:
    """Of three workers: exponents that differ by at most one, so that sums cancel and round."""
    chance = np.random.default_rng(seed)
    fields = chance.integers(0, 32, packets * VALUES)
    near = np.clip(fields + chance.integers(-1, 2, (3, packets * VALUES)), 0, 31)
    halves = chance.integers(0, 65536, (3, packets * VALUES)) & 0x83FF | near << 10
    return list(halves.astype(np.uint16))


def test_pairs_of_every_exponent_and_rounding_case(pipeline: Pipeline, tag: int) -> None:
    halves = np.array(
        [s | f << 10 | m for s in (0, SIGN) for f in range(32) for m in FRACTIONS], np.uint16
    )
    check(pipeline, np.repeat(halves, halves.size), np.tile(halves, halves.size), tag)


def test_pairs_of_any_bits(pipeline: Pipeline, tag: int) -> None:
    check(pipeline, *any_halves(1, 2, 2000), tag)


@pytest.mark.parametrize("inputs", [any_halves(2, 3, 40), alike(3, 80)], ids=["any", "alike"])
def test_three_are_rounded_once(pipeline: Pipeline, tag: int, inputs: list[Halves]) -> None:
    got = np.concatenate(list(sums(pipeline, inputs, tag)))
    wanted = [exact_sum(halves) for halves in zip(*(x.tolist() for x in inputs), strict=True)]
    assert got.tolist() == wanted


def test_the_truth_is_the_same_by_whole_numbers() -> None:
    inputs = [*alike(4, 80), *any_halves(5, 1, 80)]
    truth = rounded_sum([values.view(np.float16) for values in inputs]).view(np.uint16)
    wanted = [exact_sum(halves) for halves in zip(*(x.tolist() for x in inputs), strict=True)]
    assert truth.tolist() == wanted


@pytest.mark.parametrize(
    ("halves", "wanted"),
    [
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
    ],
)
def test_what_has_a_rule_of_its_own(
    pipeline: Pipeline, tag: int, halves: tuple[int, ...], wanted: int
) -> None:
    assert exact_sum(halves) == wanted
    inputs = [np.full(VALUES, half, np.uint16) for half in halves]
    (got,) = sums(pipeline, inputs, tag)
    assert got.tolist() == [wanted] * VALUES


def test_a_result_is_repeated_and_a_slot_begins_afresh(pipeline: Pipeline, tag: int) -> None:
    job, ports = PORTS[3]
    first, second = alike(6, 1), alike(7, 1)
    (before,) = sums(pipeline, first, tag)
    again = pipeline.process(ports[0], frame(ports[0], job, tag, first[0]))
    assert [port for port, _ in again] == [ports[0]]
    assert again[0][1][HEADERS:] == before.astype(">u2").tobytes()
    assert again[0][1][HEADERS - 11] == HALF | RESULT
    (after,) = sums(pipeline, second, tag + 2)  # the same set of the slot
    assert after.tolist() == [exact_sum(h) for h in zip(*(x.tolist() for x in second), strict=True)]


def test_a_packet_that_came_twice_counts_once(pipeline: Pipeline, tag: int) -> None:
    job, ports = PORTS[3]
    inputs = alike(8, 1)
    for _ in range(2):
        assert pipeline.process(ports[0], frame(ports[0], job, tag, inputs[0])) == []
    (got,) = sums(pipeline, inputs, tag)
    assert got.tolist() == [exact_sum(h) for h in zip(*(x.tolist() for x in inputs), strict=True)]


@pytest.mark.parametrize("values", [VALUES - 1, VALUES + 1])
def test_another_length_is_refused(pipeline: Pipeline, tag: int, values: int) -> None:
    job, ports = PORTS[2]
    for port in ports:
        assert pipeline.process(port, frame(port, job, tag, np.zeros(values, np.uint16))) == []


def test_another_kind_is_not_summed_with_it(pipeline: Pipeline, tag: int) -> None:
    job, ports = PORTS[2]
    zeros = np.zeros(VALUES, np.uint16)
    assert pipeline.process(ports[0], frame(ports[0], job, tag, zeros)) == []
    assert pipeline.process(ports[1], frame(ports[1], job, tag, zeros, kind=0)) == []
    assert len(pipeline.process(ports[1], frame(ports[1], job, tag, zeros))) == 2
