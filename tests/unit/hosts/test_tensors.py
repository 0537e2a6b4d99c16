"""The input tensors: repeatable, different at every rank and position, varied in magnitude."""

import numpy as np
import pytest

from agglab.hosts.tensors import BLOCK, OVERLAPS, Sparsity, filled_blocks, make_tensor

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


def sparsity(**change) -> Sparsity:
    plain = {"density": 0.1, "block": 64, "overlap": "random", "workers": 4, "elements": 64_010}
    return Sparsity(**{**plain, **change})


def filled(tensor, block: int):
    return [bool(np.any(tensor[at : at + block])) for at in range(0, tensor.size, block)]


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("density", [0, 0.001, 0.1, 0.5, 1])
@pytest.mark.parametrize("overlap", OVERLAPS)
def test_so_many_blocks_of_a_sparse_tensor_are_not_zero(dtype, density, overlap):
    shape = sparsity(density=density, overlap=overlap)
    arguments = {"elements": shape.elements, "dtype": dtype, "sparsity": shape}
    tensors = [make_tensor(7, 1, rank, 3, **arguments) for rank in range(4)]
    blocks = np.array([filled(tensor, shape.block) for tensor in tensors])
    own, union = round(density * 1001), np.any(blocks, axis=0).sum()
    assert blocks.sum(axis=1).tolist() == [own] * 4
    assert union == own if overlap == "full" else union >= own
    if overlap == "none":
        assert union == min(1001, 4 * own)
    if overlap == "random" and density in (0.1, 0.5):
        assert union == pytest.approx(1001 * (1 - (1 - density) ** 4), rel=0.06)
    values = tensors[0][np.repeat(blocks[0], 64)[: shape.elements]]
    assert np.count_nonzero(values) >= 0.999 * values.size


def test_workers_without_overlap_share_only_what_they_have_to():
    shape = sparsity(density=0.4, overlap="none")
    blocks = [filled_blocks(shape, 7, 1, rank, 0) for rank in range(4)]
    times = np.sum(blocks, axis=0)
    assert set(times.tolist()) == {1, 2} and times.sum() == 4 * 400


@pytest.mark.parametrize("overlap", OVERLAPS)
def test_which_blocks_of_a_sparse_tensor_changes_with_everything(overlap):
    shape, plain = sparsity(overlap=overlap), (7, 1, 2, 3)
    first = filled_blocks(shape, *plain)
    for changed in ((8, 1, 2, 3), (7, 2, 2, 3), (7, 1, 2, 4), (7, 1, 3, 3)):
        same = np.array_equal(first, filled_blocks(shape, *changed))
        assert same == (overlap == "full" and changed == (7, 1, 3, 3))


@pytest.mark.parametrize("elements", [0, 1, 255, BLOCK + 1])
@pytest.mark.parametrize("start", [0, 1, 77, BLOCK, 2 * BLOCK + 77])
def test_a_part_of_a_sparse_tensor_is_the_same_as_in_the_whole(elements, start):
    shape = sparsity(elements=6 * BLOCK, block=100, density=0.5)
    whole = make_tensor(7, 1, 2, 3, 6 * BLOCK, "float32", sparsity=shape)
    part = make_tensor(7, 1, 2, 3, elements, "float32", start, shape)
    np.testing.assert_array_equal(part, whole[start : start + elements])


def test_what_is_not_zero_of_a_sparse_tensor_is_as_in_a_dense_one():
    """But for the zero blocks of a dense one."""
    shape = sparsity(elements=20 * BLOCK)
    dense = make_tensor(7, 1, 2, 3, shape.elements, "float32")
    sparse = make_tensor(7, 1, 2, 3, shape.elements, "float32", sparsity=shape)
    both = (dense != 0) & (sparse != 0)
    assert both.sum() > 0.05 * dense.size
    np.testing.assert_array_equal(dense[both], sparse[both])
