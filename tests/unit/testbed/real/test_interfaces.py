"""Masks of processors as the kernel's bitmap parser takes them (Documentation: cpumask, `%*pb`)."""

from __future__ import annotations

import pytest

from agglab.testbed.real.interfaces import processor_mask


@pytest.mark.parametrize(
    ("processor", "mask"),
    [(0, "1"), (5, "20"), (31, "80000000"), (32, "1,00000000"), (70, "40,00000000,00000000")],
)
def test_a_mask_of_one_processor(processor: int, mask: str) -> None:
    assert processor_mask(processor) == mask
