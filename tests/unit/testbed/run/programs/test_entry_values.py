"""Values of keys and parameters, as p4lang's tutorials write them."""

from __future__ import annotations

from typing import Any

import pytest

from agglab.testbed.run.programs.entry_values import Wrong, number


@pytest.mark.parametrize(
    ("value", "bits", "expected"),
    [
        (7, 8, 7),
        ("0x1f", 9, 31),
        ([3], 9, 3),
        (["10.0.1.2"], 32, 0x0A000102),
        ("08:00:00:00:01:11", 48, 0x080000000111),
        ("2001:db8::8a2e:370:7334", 128, 0x20010DB8000000000000_8A2E03707334),
        ("::ffff:10.0.0.1", 128, 0xFFFF0A000001),
        (-1, 16, 0xFFFF),
        (-128, 8, 0x80),
        ("-2", 8, 0xFE),
        (True, 1, 1),
        (False, 1, 0),
        ([True], 1, 1),
    ],
)
def test_a_value_of_each_kind(value: Any, bits: int, expected: int) -> None:
    assert number("key", value, bits) == expected


@pytest.mark.parametrize(
    ("value", "bits"),
    [
        (256, 8),
        (-129, 8),
        (True, 8),
        ([], 8),
        ([1, 2], 8),
        ([[1]], 8),
        (1.0, 8),
        (None, 8),
        ("", 8),
        ("::1", 32),
        ("::g", 128),
        ("10.0.0.256", 32),
        ("08:00:00:00:01", 48),
    ],
)
def test_what_is_no_value_of_so_many_bits(value: Any, bits: int) -> None:
    with pytest.raises(Wrong) as refused:
        number("key", value, bits)
    path, problem, allowed = refused.value.args
    assert (path, problem) == ("key", f"{value!r} does not fit into the key or parameter")
    assert allowed.endswith(f"of {bits} bits") and str((1 << bits) - 1) in allowed
