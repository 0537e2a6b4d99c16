"""Rounds without whole arrays: every value that any worker hands over is judged."""

from __future__ import annotations

import ctypes
import gc
import io
import json
import tracemalloc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agglab.testbed import systems
from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.scenario import load
from agglab.testbed.scenario.workloads.correctness import verify
from agglab.testbed.systems.base import Truth
from agglab.testbed.virtual import native
from agglab.testbed.virtual.gathered import Gathered, Gatherings, Share
from agglab.testbed.virtual.workers import AgentNode

ELEMENTS, CHUNK = 10, 4
FLOAT = np.dtype(np.float32)
RESULTS = np.arange(ELEMENTS, dtype=np.float32)
SUMS = np.arange(ELEMENTS, dtype=np.int32) * 100


def gathered(with_sums: bool = True) -> Gathered:
    return Gathered(ELEMENTS, FLOAT, CHUNK, with_sums)


def take(share: Share, first: int, results: np.ndarray, sums: np.ndarray | None = SUMS) -> None:
    """Hands over results, beginning at element `first`."""
    part = None if sums is None else np.ascontiguousarray(sums[first : first + results.size])
    to = None if part is None else part.ctypes.data
    native.load().share_take(share.address, first, results.size, results.ctypes.data, to)


def take_all(share: Share, results: np.ndarray = RESULTS, sums: np.ndarray | None = SUMS) -> None:
    for first in range(0, ELEMENTS, CHUNK):
        take(share, first, np.ascontiguousarray(results[first : first + CHUNK]), sums)


def changed(array: np.ndarray, index: int) -> np.ndarray:
    other = array.copy()
    other[index] += 1
    return other


def test_workers_that_received_the_same_have_one_object_in_common() -> None:
    both = gathered()
    shares = [Share(both) for _ in range(3)]
    for share in shares:
        take_all(share)
    found = [share.received({}) for share in shares]
    assert found[0] is found[1] is found[2]
    assert found[0].result is not None and found[0].result.tobytes() == RESULTS.tobytes()
    assert found[0].sums is not None and found[0].sums.tobytes() == SUMS.tobytes()


@pytest.mark.parametrize("index", range(ELEMENTS))
@pytest.mark.parametrize("what", ["results", "sums"])
@pytest.mark.parametrize("order", [1, -1])
def test_one_value_that_differs_at_one_worker_is_what_it_received(
    index: int, what: str, order: int
) -> None:
    all_of = gathered()
    right, wrong = Share(all_of), Share(all_of)
    other = {"results": RESULTS, "sums": SUMS}
    other[what] = changed(other[what], index)
    for act in [lambda: take_all(right), lambda: take_all(wrong, **other)][::order]:
        act()
    one, another = right.received({}), wrong.received({})
    assert one.result is not None and one.result.tobytes() == RESULTS.tobytes()
    assert one.sums is not None and one.sums.tobytes() == SUMS.tobytes()
    assert another.result is not None and another.sums is not None
    assert another.result.tobytes() == other["results"].tobytes()
    assert another.sums.tobytes() == other["sums"].tobytes()


def test_bits_are_compared_and_not_numbers() -> None:
    all_of = gathered(with_sums=False)
    shares = [Share(all_of) for _ in range(2)]
    for share, zero in zip(shares, (0.0, -0.0), strict=True):
        take_all(share, np.full(ELEMENTS, zero, np.float32), None)
    came = [share.received({}).result for share in shares]
    assert [np.signbit(each[:]).any() for each in came if each is not None] == [False, True]


def sizes(share: Share) -> list[int]:
    found = share.received({})
    assert found.result is not None and found.sums is not None
    return [found.result.shape[0], found.sums.shape[0]]


def test_a_chunk_that_did_not_come_is_missing_in_the_arrays() -> None:
    all_of = gathered()
    whole, part, nothing = (Share(all_of) for _ in range(3))
    take_all(whole)
    take(part, 0, RESULTS[:4].copy())
    take(part, 8, RESULTS[8:].copy())
    assert [sizes(share) for share in (whole, part, nothing)] == [[10, 10], [6, 6], [0, 0]]
    found = part.received({}).result
    assert found is not None and found[:].tolist() == [0, 1, 2, 3, 8, 9]


@pytest.mark.parametrize("count", range(ELEMENTS + 2))
@pytest.mark.parametrize("missing", [None, 0, 4, 8])
def test_any_part_of_what_came_can_be_read(count: int, missing: int | None) -> None:
    share = Share(gathered())
    for first in range(0, ELEMENTS, CHUNK):
        if first != missing:
            take(share, first, RESULTS[first : first + CHUNK].copy())
    found = share.received({})
    assert found.result is not None and found.sums is not None
    came = [n for n in range(ELEMENTS) if missing is None or n // CHUNK != missing // CHUNK]
    assert found.result.shape == found.sums.shape == (len(came),)
    for first in range(ELEMENTS + 1):
        wanted = came[first : first + count]
        assert found.result[first : first + count].tolist() == wanted
        assert found.sums[first : first + count].tolist() == [100 * n for n in wanted]


def test_what_comes_after_a_round_does_not_change_its_results() -> None:
    share = Share(gathered())
    take_all(share)
    found = share.received({})
    take_all(share, changed(RESULTS, 5))
    assert found.result is not None and found.result.tobytes() == RESULTS.tobytes()


def test_workers_that_all_received_something_else_need_no_whole_arrays() -> None:
    elements, chunk, workers = 1 << 16, 1 << 10, 64
    all_of = Gathered(elements, FLOAT, chunk, with_sums=False)
    shares = [Share(all_of) for _ in range(workers)]
    tracemalloc.start()
    for rank, share in enumerate(shares):
        for first in range(0, elements, chunk):
            values = np.full(chunk, float(rank == first // chunk), np.float32)
            take(share, first, values, None)
    found = [share.received({}) for share in shares]
    verdict = verify(
        lambda start, count: [np.zeros(count, np.float32)] * workers,
        lambda start, inputs: Truth(inputs[0].astype(np.int32)),
        found,
        elements,
        "float32",
        chunk,
        with_sums=False,
        inputs_held=False,
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert verdict.wrong_results == workers * chunk
    assert peak < workers * elements * FLOAT.itemsize / 4


def test_a_round_leaves_nothing_behind() -> None:
    all_of = gathered()
    share = Share(all_of)
    take_all(share)
    found = share.received({})
    end = weakref.ref(all_of)
    gc.disable()
    try:
        del all_of, share, found
        assert end() is None
    finally:
        gc.enable()


def test_a_chunk_may_come_twice_if_it_is_the_same() -> None:
    share = Share(gathered())
    take_all(share)
    take_all(share)
    assert sizes(share) == [10, 10]


@pytest.mark.parametrize("times", [1, 2])
def test_a_chunk_that_came_with_different_values_counts_as_missing(times: int) -> None:
    """Also if the right values come once more."""
    share = Share(gathered())
    take_all(share)
    take_all(share, changed(RESULTS, 5))
    if times == 2:
        take_all(share)
    assert sizes(share) == [6, 6]


@pytest.mark.parametrize(("first", "count"), [(1, 4), (0, 3), (8, 1), (8, 4), (12, 2), (4, 6)])
def test_results_that_are_not_one_chunk_leave_nothing(first: int, count: int) -> None:
    share = Share(gathered())
    take_all(share)
    take(share, first, np.zeros(count, np.float32), np.zeros(99, np.int32))
    found = share.received({})
    assert (found.result, found.sums) == (None, None)


TEXT = """
name: tiny
backend: virtual
topology: {workers: 3}
links: {rate: 10mbit, loss: 2%}
switch: {lanes: 16, slots: 8}
workload: {elements: 1000, dtype: DTYPE, rounds: 2, give_up: 500ms}
"""
Take = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p
)
TakeFunction = Callable[[int, int, int, int, int | None], None]


def ran(folder: Path, text: str) -> tuple[int, dict[str, Any], str]:
    """Returns the exit code, the metrics and the summary."""
    folder.mkdir(exist_ok=True)
    (folder / "tiny.yaml").write_text(text)
    out = io.StringIO()
    code = run(load(folder / "tiny.yaml"), folder, [], out)
    metrics = json.loads((folder / "tiny" / "latest" / "metrics.json").read_text())
    return code, metrics, out.getvalue()


def hand_over(
    monkeypatch: pytest.MonkeyPatch, how: Callable[[TakeFunction, tuple[Any, ...]], None]
) -> None:
    """Worker 1 hands over chunk 5 (elements 80 to 95) of round 1 by `how`."""
    begin, pieces, kept = Gatherings.begin, Share.pieces, []

    def begun(
        self: Gatherings, now_ns: int, endpoint: Any, config: Any, number: int, with_sums: bool
    ) -> Share | None:
        is_wanted = (config.rank, number) == (1, 1)
        monkeypatch.setattr(Share, "pieces", spoiled if is_wanted else pieces)
        return begin(self, now_ns, endpoint, config, number, with_sums)

    def spoiled(self: Share, inputs: Any) -> Any:
        made = pieces(self, inputs)
        take = native.load().share_take

        def taken(*arguments: Any) -> None:
            if arguments[1] == 80:
                how(take, arguments)
            else:
                take(*arguments)

        kept.append(Take(taken))
        made._state.take = ctypes.cast(kept[-1], ctypes.c_void_p).value
        return made

    monkeypatch.setattr(Gatherings, "begin", begun)


def word(address: int, index: int) -> ctypes.c_uint32:
    return ctypes.c_uint32.from_address(address + 4 * index)


def spoil_result(take: TakeFunction, arguments: tuple[Any, ...]) -> None:
    word(arguments[3], 7).value ^= 1 << 22
    take(*arguments)


def spoil_sum(take: TakeFunction, arguments: tuple[Any, ...]) -> None:
    word(arguments[4], 7).value ^= 1
    take(*arguments)


def take_none(take: TakeFunction, arguments: tuple[Any, ...]) -> None:
    pass


def take_another_too(take: TakeFunction, arguments: tuple[Any, ...]) -> None:
    take(*arguments)
    spoil_result(take, arguments)
    word(arguments[3], 7).value ^= 1 << 22
    take(*arguments)


@pytest.mark.parametrize(
    ("dtype", "how", "sums", "results", "told"),
    [
        ("float32", spoil_result, 0, 1, "round 1: result[87] is "),
        ("float32", spoil_sum, 1, 0, "round 1: sum[87] is "),
        ("float32", take_none, 1000, 1000, "round 1: sum is int32 of 984, but int32 of 1000"),
        ("float32", take_another_too, 1000, 1000, "sum is int32 of 984, but int32 of 1000"),
        ("int32", spoil_result, 1, 1, "round 1: result[87] is "),
        ("int32", take_none, 1000, 1000, "result is int32 of 984, but int32 of 1000"),
        ("int32", take_another_too, 1000, 1000, "result is int32 of 984, but int32 of 1000"),
    ],
)
def test_a_wrong_hand_over_of_one_worker_fails_the_run(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    dtype: str,
    how: Callable[[TakeFunction, tuple[Any, ...]], None],
    sums: int,
    results: int,
    told: str,
) -> None:
    text = TEXT.replace("DTYPE", dtype)
    code, metrics, _ = ran(tmp_path / "right", text)
    assert (code, metrics["exact"], metrics["wrong_results"]) == (0, True, 0)
    hand_over(monkeypatch, how)
    code, metrics, said = ran(tmp_path / "wrong", text)
    assert (code, metrics["exact"]) == (1, not sums)
    assert (metrics["wrong_sums"], metrics["wrong_results"]) == (sums, results)
    assert "h2 (worker 1 of job1)" in said and told in said


def test_workers_that_differ_in_more_than_values_have_objects_of_their_own() -> None:
    all_of = gathered()
    shares = [Share(all_of) for _ in range(3)]
    for share in shares:
        take_all(share)
    more = [{"presence": np.array([bits], np.uint64)} for bits in (3, 3, 2)]
    found = [share.received(each) for share, each in zip(shares, more, strict=True)]
    assert found[0] is found[1] is not found[2]
    assert [int(each.more["presence"][0]) for each in found] == [3, 3, 2]


OF_FLOATS = [
    "switchml: {wire_bits: 8}\n",
    "switchml: {scale_log2: 20, rounding: stochastic}\n",
]
OF_ALL = ["", "switchml: {deadline: 500us}\n"]
CASES = [
    *(("float32", own) for own in (*OF_ALL, *OF_FLOATS)),
    *(("int32", own) for own in OF_ALL),
]


@pytest.mark.parametrize(("dtype", "own"), CASES)
def test_rounds_with_and_without_whole_arrays_are_alike(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, dtype: str, own: str
) -> None:
    text = TEXT.replace("DTYPE", dtype) + own
    code, in_pieces, _ = ran(tmp_path / "pieces", text)
    assert code == 0 and in_pieces["exact"]
    events = [tmp_path / how / "tiny" / "latest" / "events.jsonl" for how in ("pieces", "whole")]
    begun: list[int] = []

    def whole(self: AgentNode, number: int) -> None:
        begun.append(number)
        with_arrays(self, number)

    with_arrays = AgentNode._begin_with_arrays
    monkeypatch.setattr(AgentNode, "_begin_with_arrays", whole)
    monkeypatch.setattr("agglab.testbed.virtual.gathered.DTYPES", ())
    assert ran(tmp_path / "whole", text)[0] == 0
    assert sorted(begun) == [0, 0, 0, 1, 1, 1]
    assert events[0].read_bytes() == events[1].read_bytes()


@pytest.mark.long(but=["ring", "switchml"])
@pytest.mark.parametrize("system", systems.built_in())
def test_systems_say_which_types_they_reduce_in_pieces(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, system: str
) -> None:
    """What the testbed expects of workers, in checks of memory, is what they do."""
    able, begin = systems.find(system).abilities, Gatherings.begin
    if "virtual" not in able.clocks or "allreduce" not in able.workloads:
        assert not able.pieces
        return
    begun: list[bool] = []

    def watched(self: Gatherings, *arguments: Any) -> Share | None:
        share = begin(self, *arguments)
        begun.append(share is not None)
        return share

    monkeypatch.setattr(Gatherings, "begin", watched)
    lanes = "switch: {lanes: 16}\n" if "switch.lanes" in able.keys else ""
    for dtype in ("float32", "int32"):
        begun.clear()
        workload = f"workload: {{elements: 100, dtype: {dtype}, rounds: 1}}\n"
        code, metrics, _ = ran(
            tmp_path, f"name: tiny\nbackend: virtual\nsystem: {system}\n{lanes}{workload}"
        )
        assert code == 0, metrics["reason"]
        assert set(begun) == {dtype in able.pieces}
