"""The input tensors: repeatable, different at every rank and position, varied in magnitude."""

import numpy as np
import pytest

from agglab.hosts.tensors import BLOCK, make_tensor

RECORDED_INTEGERS = [2028634466, 597243394, 1909875557, 897436536]
RECORDED_FLOATS = [
    1.7062513624210851e-09,
    7.13444165967303e-08,
    6.2395195676856474e-09,
    3.6932004121581485e-09,
]
ARGUMENTS = {"seed": 7, "job": 1, "rank": 2, "round": 3, "elements": 5000, "dtype": "float32"}


def test_the_same_arguments_give_the_same_tensor_in_every_process():
    """Recorded once: a change here makes old results impossible to repeat."""
    integers = make_tensor(7, 1, 2, 3, 4, np.int32)
    assert integers.tolist() == RECORDED_INTEGERS
    assert make_tensor(7, 1, 2, 3, 4, np.float32).tolist() == RECORDED_FLOATS


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize(
    "change", [{"seed": 8}, {"job": 2}, {"rank": 1}, {"round": 2}, {"rank": 3, "round": 2}]
)
def test_every_argument_changes_nearly_every_value(change, dtype):
    arguments = ARGUMENTS | {"dtype": dtype}
    first, other = make_tensor(**arguments), make_tensor(**(arguments | change))
    assert (first != other).mean() > 0.8


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("elements", [0, 1, 2, 255, BLOCK, BLOCK + 1, 3 * BLOCK - 1])
@pytest.mark.parametrize("start", [0, 1, BLOCK, 2 * BLOCK + 77])
def test_a_part_is_the_same_as_in_the_whole(dtype, elements, start):
    whole = make_tensor(7, 1, 2, 3, 6 * BLOCK, dtype)
    part = make_tensor(7, 1, 2, 3, elements, dtype, start)
    assert part.shape == (elements,) and part.dtype == dtype and part.flags.c_contiguous
    np.testing.assert_array_equal(part, whole[start : start + elements])


def test_floats_have_both_signs_many_magnitudes_and_zero_blocks():
    ranks = [make_tensor(1, 0, rank, 0, 200 * BLOCK, np.float32) for rank in range(2)]
    blocks = [tensor.reshape(200, BLOCK) for tensor in ranks]
    zero = [(block == 0).all(axis=1) for block in blocks]
    assert (zero[0] & zero[1]).any() and (zero[0] ^ zero[1]).any()
    assert not zero[0][0] and zero[0].mean() < 0.3
    values = ranks[0][ranks[0] != 0]
    assert np.isfinite(values).all() and 0.45 < (values < 0).mean() < 0.55
    assert np.abs(values).max() < 2 and np.abs(values).min() < 2**-38
    assert np.unique(np.frexp(values)[1]).size == 40


def test_a_small_tensor_is_never_all_zero():
    for seed in range(100):
        assert np.count_nonzero(make_tensor(seed, 0, 0, 0, 100, np.float32)) == 100


def test_integers_cover_the_whole_range():
    values = make_tensor(1, 0, 0, 0, 100_000, np.int32)
    assert values.min() < -(2**31) + 2**20 and values.max() > 2**31 - 2**20
    assert np.unique(values).size > 99_900


def test_other_dtypes_are_refused():
    with pytest.raises(TypeError, match="no tensors of dtype float64"):
        make_tensor(1, 0, 0, 0, 4, np.float64)
