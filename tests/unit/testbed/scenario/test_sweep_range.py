"""Ranges of swept keys: the lists that they stand for, and what is no range."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agglab.testbed.scenario import ScenarioError, load
from agglab.testbed.scenario.sweep_range import ALLOWED, RangeError, values
from agglab.testbed.schema.document import Mapping, parse


def listed(text: str) -> list[str]:
    node = parse(text, "a test")
    assert isinstance(node, Mapping)
    return [scalar.text for scalar in values(node)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{from: 2, to: 5}", ["2", "3", "4", "5"]),
        ("{from: 2, to: 8, step: 2}", ["2", "4", "6", "8"]),
        ("{from: 2, to: 9, step: 3}", ["2", "5", "8"]),
        ("{from: 0%, to: 1%, step: 0.25%}", ["0%", "0.25%", "0.5%", "0.75%", "1%"]),
        ("{from: 10mbit, to: 100mbit, count: 4}", ["10mbit", "40mbit", "70mbit", "100mbit"]),
        ("{from: 1, to: 1_000, count: 4, scale: log}", ["1", "10", "100", "1000"]),
        ("{from: 0.01%, to: 1%, count: 3, scale: log}", ["0.01%", "0.1%", "1%"]),
        ("{from: 1, to: 4, count: 9, scale: log}", ["1", "2", "3", "4"]),
        ("{from: 1ms, to: 2ms, count: 2, scale: linear}", ["1ms", "2ms"]),
        ("{from: 0.5s, to: 1s, count: 3}", ["0.5s", "0.75s", "1s"]),
    ],
)
def test_a_range_stands_for_a_list(text: str, expected: list[str]) -> None:
    assert listed(text) == expected


@given(st.integers(0, 10**6), st.integers(1, 10**6), st.integers(2, 50), st.booleans())
def test_values_rise_from_one_end_to_the_other(
    first: int, more: int, count: int, is_log: bool
) -> None:
    first += is_log
    scale = ", scale: log" if is_log else ""
    found = [
        int(t) for t in listed(f"{{from: {first}, to: {first + more}, count: {count}{scale}}}")
    ]
    assert (found[0], found[-1]) == (first, first + more)
    assert found == sorted(set(found)) and len(found) <= count
    steps = count - 1
    smallest_gap = first * (((first + more) / first) ** (1 / steps) - 1) if is_log else more / steps
    assert len(found) == count or smallest_gap < 1, "values apart by 1 or more stay distinct"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{to: 5}", "lacks 'from'"),
        ("{from: 1}", "lacks 'to'"),
        ("{from: 1, to: 5, too: 3}", "unknown key 'too' of a range"),
        ("{from: 1, to: [5]}", "'to' of a range must be a single value"),
        ("{from: 1, from: 2, to: 5}", "has 'from' twice"),
        ("{from: 5, to: 5}", "'5' is not greater than '5'"),
        ("{from: 1mbit, to: 1gbit}", "'1mbit' and '1gbit' have different units"),
        ("{from: -1, to: 5}", "'-1' is not a number of 0 or more, with or without a unit"),
        ("{from: auto, to: 5}", "'auto' is not a number of 0 or more, with or without a unit"),
        ("{from: 1, to: 5, step: 0}", "step is '0'"),
        ("{from: 1, to: 5, step: 1s}", "step is '1s'"),
        ("{from: 1, to: 5, count: 1}", "count is '1', which is not a whole number from 2 to 4096"),
        (
            "{from: 1, to: 5, count: 5000}",
            "count is '5000', which is not a whole number from 2 to 4096",
        ),
        ("{from: 1, to: 5, count: 2, step: 2}", "has both 'count' and 'step'"),
        ("{from: 1, to: 5, scale: log}", "has a 'scale' without a 'count'"),
        ("{from: 1, to: 5, count: 3, scale: cubic}", "scale is 'cubic'"),
        ("{from: 0, to: 5, count: 3, scale: log}", "a logarithmic range must begin above 0"),
        ("{from: 0, to: 5, step: 0.001}", "has 5001 values"),
        ("{from: 0, to: 9999999999999999999999}", "has 10000000000000000000000 values"),
    ],
)
def test_what_is_no_range(text: str, message: str) -> None:
    with pytest.raises(RangeError) as error:
        listed(text)
    assert str(error.value) == message


def test_a_scenario_has_a_point_for_each_value(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("sweep:\n  topology.workers: {from: 2, to: 8, step: 3}\n  seed: [7, 9]\n")
    settings = [point.settings for point in load(file).points]
    assert settings == [
        (("topology.workers", workers), ("seed", seed)) for workers in "258" for seed in "79"
    ]


def test_a_mistake_is_one_line_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("name: x\nsweep:\n  topology.workers: {from: 2}\n")
    with pytest.raises(ScenarioError) as error:
        load(file)
    assert str(error.value) == f"{file}:3: sweep.topology.workers: lacks 'to'; allowed: {ALLOWED}"
