"""Parts of inputs that are made in C: the values of make_tensor, bit for bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agglab.hosts.tensor_parts import TensorParts
from agglab.hosts.tensors import BLOCK, make_tensor

ELEMENTS = 40 * BLOCK + 77


@given(
    st.sampled_from(["int32", "float32"]),
    st.tuples(*[st.integers(0, 2**16)] * 4),
    st.integers(0, ELEMENTS),
    st.one_of(st.integers(0, 20), st.integers(0, 3 * BLOCK)),
)
def test_a_part_has_the_values_of_the_tensor(dtype, key, start, count):
    count = min(count, ELEMENTS - start)
    part = TensorParts(*key, ELEMENTS, dtype).part(start, count)
    expected = make_tensor(*key, count, dtype, start)
    assert part.dtype == expected.dtype and part.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("elements", [0, 1, 2, BLOCK - 1, BLOCK + 1])
def test_short_tensors_are_whole(dtype, elements):
    whole = TensorParts(7, 1, 2, 3, elements, dtype).part(0, elements)
    assert whole.tobytes() == make_tensor(7, 1, 2, 3, elements, dtype).tobytes()


def test_parts_from_far_behind_are_made_without_those_before():
    elements = 2**40
    parts = TensorParts(7, 1, 2, 3, elements, "int32")
    start = elements - 5
    expected = make_tensor(7, 1, 2, 3, 5, "int32", start)
    assert parts.part(start, 5).tolist() == expected.tolist()


def test_some_blocks_are_zero():
    blocks = TensorParts(7, 1, 2, 3, 100 * BLOCK, "float32").part(0, 100 * BLOCK)
    zero = (blocks.reshape(100, BLOCK) == 0).all(axis=1)
    assert 0 < zero.sum() < 40 and not zero[0]


def test_nothing_is_written_beside_a_part():
    room = np.full(12, 9, np.int32)
    TensorParts(7, 1, 2, 3, 100, "int32").write(1, room[1:10])
    assert room[0] == 9 and room[10:].tolist() == [9, 9]
    assert room[1:10].tolist() == make_tensor(7, 1, 2, 3, 9, "int32", 1).tolist()


def test_other_types_are_refused():
    with pytest.raises(TypeError, match="no parts of dtype float16: int32 or float32"):
        TensorParts(1, 0, 0, 0, 4, "float16")
