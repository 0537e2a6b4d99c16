"""Tensors of every layout in every collective that Gloo performs, with another layout at each rank,
compared with NumPy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import needs
import numpy as np
import pytest

needs.require("PyTorch")

import torch  # noqa: E402
from torch import distributed as dist  # noqa: E402
from training_ranks import run_ranks  # noqa: E402

from agglab.hosts.training.layout import share_memory  # noqa: E402

WORKERS = 3
SHAPES = [(3, 2, 4, 2), (6, 3), (3,), (3, 0)]
DTYPES = [torch.float64, torch.int64, torch.uint8]
Array = Any


def sliced(shape: tuple[int, ...], dtype: Any) -> Any:
    """Every second value of a larger tensor, from an offset on."""
    wide = torch.zeros([2 * n + 1 for n in shape], dtype=dtype)
    return wide[tuple(slice(1, None, 2) for _ in shape)]


def transposed(shape: tuple[int, ...], dtype: Any) -> Any:
    return torch.zeros(shape[::-1], dtype=dtype).permute(*reversed(range(len(shape))))


def channels_last(shape: tuple[int, ...], dtype: Any) -> Any:
    plain = torch.zeros(shape, dtype=dtype)
    return plain.contiguous(memory_format=torch.channels_last) if len(shape) == 4 else plain


LAYOUTS = [sliced, transposed, channels_last, torch.zeros]


class Case:
    """One shape and type, and the layout of each tensor of this rank. part(rank, n): the n-th array
    that a rank gives."""

    def __init__(self, rank: int, shape: tuple[int, ...], dtype: Any, turn: int) -> None:
        self.rank, self.shape, self.dtype, self._turn = rank, shape, dtype, turn + rank

    def part(self, rank: int, n: int = 0, shape: tuple[int, ...] | None = None) -> Array:
        chance = np.random.default_rng([rank, n])
        drawn = chance.integers(1, 40, self.shape if shape is None else shape)
        return drawn.astype(torch.empty(0, dtype=self.dtype).numpy().dtype)

    def tensor(self, values: Array) -> Any:
        """A tensor of these values in the next layout."""
        self._turn += 1
        made = LAYOUTS[self._turn % len(LAYOUTS)](tuple(values.shape), dtype=self.dtype)
        return made.copy_(torch.from_numpy(values))

    def room(self, shape: tuple[int, ...] | None = None) -> Any:
        """A tensor for an output."""
        return self.tensor(np.zeros_like(self.part(0, 0, shape)))

    def expanded(self, values: Array) -> Any:
        """An input whose rows are all the first one, and the array that it stands for."""
        row = self.tensor(np.ascontiguousarray(values[:1]))
        return row.expand(values.shape)


Run = Iterator[tuple[Any, list[Any], list[Array]]]
"""The Work of each collective, its outputs, and the arrays that they must be."""


def all_reduces(case: Case) -> Run:
    parts = [case.part(rank) for rank in range(WORKERS)]
    kinds = {
        dist.ReduceOp.SUM: np.add,
        dist.ReduceOp.MAX: np.maximum,
        dist.ReduceOp.MIN: np.minimum,
    }
    for op, function in kinds.items():
        mine = case.tensor(parts[case.rank])
        expected = function.reduce(parts)
        yield dist.all_reduce(mine, op, async_op=True), [mine], [expected]
        mine = case.tensor(parts[case.rank])
        at_root = [expected] if case.rank == 1 else []
        yield dist.reduce(mine, 1, op, async_op=True), [mine][: len(at_root)], at_root
    both = [case.tensor(case.part(case.rank, n)) for n in range(2)]
    sums = [sum(case.part(rank, n) for rank in range(WORKERS)) for n in range(2)]
    yield dist.group.WORLD.allreduce_coalesced(both), both, sums


def of_a_pair(case: Case) -> Run:
    if case.rank < 2:
        mine = case.tensor(case.part(case.rank))
        work = dist.all_reduce(mine, group=PAIR[0], async_op=True)
        yield work, [mine], [case.part(0) + case.part(1)]


def broadcasts(case: Case) -> Run:
    mine = case.tensor(case.part(case.rank))
    yield dist.broadcast(mine, 2, async_op=True), [mine], [case.part(2)]


def gathers(case: Case) -> Run:
    parts = [case.part(rank) for rank in range(WORKERS)]
    for given in (case.tensor, case.expanded):
        expected = [given(part).numpy() for part in parts]
        out = [case.room() for _ in parts]
        yield dist.all_gather(out, given(parts[case.rank]), async_op=True), out, expected
        whole = case.room((WORKERS * case.shape[0], *case.shape[1:]))
        work = dist.all_gather_into_tensor(whole, given(parts[case.rank]), async_op=True)
        yield work, [whole], [np.concatenate(expected)]
        out = [case.room() for _ in parts] if case.rank == 0 else None
        work = dist.gather(given(parts[case.rank]), out, 0, async_op=True)
        yield work, out or [], expected if out else []


def coalesced_gathers(case: Case) -> Run:
    group, shape = dist.group.WORLD, (WORKERS * case.shape[0], *case.shape[1:])
    mine = [case.tensor(case.part(case.rank, n)) for n in range(2)]
    out = [case.room(shape) for _ in range(2)]
    expected = [np.concatenate([case.part(r, n) for r in range(WORKERS)]) for n in range(2)]
    yield group.allgather_into_tensor_coalesced(out, mine), out, expected
    lists = [[case.room() for _ in range(2)] for _ in range(WORKERS)]
    work = group.allgather_coalesced(lists, mine)
    yield (
        work,
        [out for each in lists for out in each],
        [case.part(r, n) for r in range(WORKERS) for n in range(2)],
    )


def scatters(case: Case) -> Run:
    for given in (case.tensor, case.expanded):
        parts = [case.part(1, n) for n in range(WORKERS)]
        mine, expected = case.room(), given(parts[case.rank]).numpy()
        listed = [given(part) for part in parts] if case.rank == 1 else None
        yield dist.scatter(mine, listed, 1, async_op=True), [mine], [expected]


def reduce_scatters(case: Case) -> Run:
    for given in (case.tensor, case.expanded):
        shape = (WORKERS * case.shape[0], *case.shape[1:])
        wholes = [given(case.part(rank, 0, shape)).numpy() for rank in range(WORKERS)]
        expected = np.split(sum(wholes), WORKERS)[case.rank]
        mine = case.room()
        whole = given(case.part(case.rank, 0, shape))
        yield dist.reduce_scatter_tensor(mine, whole, async_op=True), [mine], [expected]
        listed = [case.tensor(part) for part in np.split(wholes[case.rank], WORKERS)]
        mine = case.room()
        yield dist.reduce_scatter(mine, listed, async_op=True), [mine], [expected]
    mine = [case.room()]
    work = dist.group.WORLD.reduce_scatter_tensor_coalesced(mine, [whole])
    yield work, mine, [expected]


def all_to_alls(case: Case) -> Run:
    parts = [case.part(rank) for rank in range(WORKERS)]
    expected = np.concatenate([np.split(part, WORKERS)[case.rank] for part in parts])
    mine, out = case.tensor(parts[case.rank]), case.room()
    yield dist.all_to_all_single(out, mine, async_op=True), [out], [expected]


def sends(case: Case) -> Run:
    if not min(case.shape):
        return  # Gloo cannot send nothing
    after, before = (case.rank + 1) % WORKERS, (case.rank - 1) % WORKERS
    sent = dist.isend(case.expanded(case.part(case.rank)), after)
    out = case.room()
    yield dist.irecv(out, before), [out], [case.expanded(case.part(before)).numpy()]
    sent.wait()
    sent, out = dist.isend(case.tensor(case.part(case.rank)), after), case.room()
    assert dist.recv(out) == before
    sent.wait()
    assert np.array_equal(out.numpy(), case.part(before))


def future_of(work: Any) -> Any:
    """The future of a Work, or the Work itself: Gloo has none for a receive or a reduce-scatter."""
    try:
        return work.get_future()
    except RuntimeError as error:
        assert "not implemented" in str(error)
        return work


PAIR: list[Any] = []
RUNS: list[Callable[[Case], Run]] = [
    *(all_reduces, of_a_pair, broadcasts, gathers, coalesced_gathers),
    *(scatters, reduce_scatters, all_to_alls, sends),
]


def run_all(rank: int, workers: int) -> int:
    dist.init_process_group("agglab")
    PAIR[:] = [dist.new_group([0, 1])]
    chosen = next(run for run in RUNS if run.__name__ == os.environ["RUN"])
    compared = 0
    for turn in range(len(LAYOUTS)):
        for shape in SHAPES:
            for dtype in DTYPES:
                for work, outputs, expected in chosen(Case(rank, shape, dtype, turn)):
                    (future_of(work) if turn % 2 else work).wait()
                    assert len(outputs) == len(expected)
                    for output, wanted in zip(outputs, expected, strict=True):
                        assert output.numpy().tolist() == wanted.tolist(), (shape, dtype, turn)
                        compared += output.numel()
    return compared


@pytest.mark.parametrize("run", [run.__name__ for run in RUNS])
def test_every_collective_takes_every_layout(run: str) -> None:
    ranks = run_ranks(run_all, WORKERS, environment={"RUN": run})
    assert [rank.error for rank in ranks] == [""] * WORKERS
    assert [rank.result > 400 for rank in ranks] == [True, True, run != "of_a_pair"]


def what_gloo_leaves_wrong(rank: int, workers: int) -> list[float]:
    dist.init_process_group("agglab")
    x = torch.full((3, 2), rank + 1.0, dtype=torch.float64)[:, 1]
    dist.all_reduce(x)
    scalar = torch.tensor(rank + 1.0, dtype=torch.float64)
    dist.all_reduce(scalar)
    needs_gradient = torch.nn.Parameter(torch.full((3, 2), float(rank), dtype=torch.float64).t())
    dist.broadcast(needs_gradient, 1)
    with torch.inference_mode():
        inferred = torch.full((3, 2), float(rank), dtype=torch.float64).t()
        dist.broadcast(inferred, 2)
    negated = torch._neg_view(torch.full((3,), float(rank), dtype=torch.float64))
    dist.all_reduce(negated)
    assert negated.tolist() == [-3.0] * 3
    both = *needs_gradient.reshape(-1).tolist(), *inferred.reshape(-1).tolist()
    return [*x.tolist(), scalar.item(), *both]


def test_the_example_of_the_report_and_tensors_that_autograd_guards() -> None:
    ranks = run_ranks(what_gloo_leaves_wrong, WORKERS)
    assert [rank.error for rank in ranks] == [""] * WORKERS
    assert [rank.result for rank in ranks] == [[6.0] * 4 + [1.0] * 6 + [2.0] * 6] * WORKERS


def overlapping(rank: int, workers: int) -> list[str]:
    dist.init_process_group("agglab")
    errors = []
    wide, x = torch.ones(1, dtype=torch.float64).expand(3), torch.ones(3, dtype=torch.float64)
    windows = torch.ones(5, dtype=torch.float64).as_strided((3, 3), (1, 1))
    attempts: list[Callable[[], Any]] = [
        lambda: dist.all_reduce(wide),
        lambda: dist.all_reduce(windows),
        lambda: dist.broadcast(wide, 0),
        lambda: dist.reduce(wide, 0),
        lambda: dist.all_gather([wide] * 2, x),
        lambda: dist.all_gather([x, x], torch.ones(3, dtype=torch.float64)),
        lambda: dist.all_gather_into_tensor(wide.expand(2, 3), x),
        lambda: dist.reduce_scatter_tensor(wide, torch.ones(6, dtype=torch.float64)),
        lambda: dist.scatter(wide, [x, x] if rank == 0 else None),
        lambda: dist.all_to_all_single(wide[:2], x[:2]),
        lambda: dist.recv(wide, 0),
        lambda: dist.all_reduce(windows.float().as_strided((3, 3), (1, 1))),
    ]
    for attempt in attempts:
        with pytest.raises(RuntimeError) as caught:
            attempt()
        errors.append(str(caught.value))
    dist.all_reduce(x)
    assert x.tolist() == [2.0] * 3
    return errors


def test_outputs_that_overlap_are_refused_in_one_line() -> None:
    ranks = run_ranks(overlapping)
    assert [rank.error for rank in ranks] == ["", ""]
    for error in ranks[0].result:
        assert "share memory" in error and "clone()" in error and "\n" not in error


@pytest.mark.parametrize(
    ("make", "shares"),
    [
        (lambda x: [x[::2], x[1::2]], False),
        (lambda x: [x[:4], x[4:]], False),
        (lambda x: [x[:4], x[3:]], True),
        (lambda x: [x.as_strided((2, 2), (2, 3))], False),
        (lambda x: [x.as_strided((2, 3), (2, 1))], True),
        (lambda x: [x[:1].expand(1)], False),
        (lambda x: [x[:1].expand(2)], True),
        (lambda x: [x[:0], x[:0], x], False),
        (lambda x: [x, x.view(torch.int32)[3:4]], True),
        (lambda x: [x[1:], x.view(torch.int32)[:2]], False),
    ],
)
def test_where_tensors_share_memory(make: Any, shares: bool) -> None:
    assert share_memory(make(torch.zeros(12, dtype=torch.float64))) is shares
