"""What went where: collectives of training scripts, and systems that were to sum and did not."""

from __future__ import annotations

from typing import Any

import pytest

from agglab.testbed.judge.collectives import Calls, calls_of, not_aggregated, sentence

SHARDED = {
    "reduce_scatter_tensor_collective": 5,
    "reduce_scatter_tensor_collective_bytes": 4_000_000,
    "all_gather_into_tensor_collective": 1,
    "all_gather_into_tensor_collective_bytes": 6_000_000,
}
REPLICATED = {
    "allreduce_system": 7,
    "allreduce_system_bytes": 5_000_000,
    "broadcast_collective": 1,
    "broadcast_collective_bytes": 9_000_000,
    "allreduce_dtype": 1,
    "allreduce_dtype_bytes": 8,
    "priority_votes": 3,
}
NOTHING: dict[str, int] = {}


def job(counts: dict[str, int], reduced_bytes: int) -> dict[str, Any]:
    return {
        "training": {"counts": counts, "reductions": reduced_bytes, "reduced_bytes": reduced_bytes}
    }


def test_calls_are_told_apart_by_collective_and_way() -> None:
    assert calls_of(job(REPLICATED, 1)) == [
        Calls("broadcast", "collective", 1, 9_000_000),
        Calls("allreduce", "system", 7, 5_000_000),
        Calls("allreduce", "dtype", 1, 8),
    ]
    assert sentence(calls_of(job(REPLICATED, 1))) == (
        "through the system: allreduce 7 times, 5 MB; "
        "by Gloo (no all-reduce): broadcast once, 9 MB; "
        "by Gloo (a type of values that the system does not sum): allreduce once, 8 bytes"
    )
    assert calls_of({}) == calls_of({"training": {"delay": {}}}) == []


@pytest.mark.parametrize(
    ("counts", "by_system", "says"),
    [
        (
            SHARDED,
            0,
            "the system summed nothing for job1; by Gloo (no all-reduce): all_gather_into_tensor "
            "once, 6 MB, reduce_scatter_tensor 5 times, 4 MB",
        ),
        (
            NOTHING,
            0,
            "the system summed nothing for job1; its script called no collective of the backend "
            "agglab",
        ),
        (
            {**SHARDED, "allreduce_system": 1, "allreduce_system_bytes": 8},
            8,
            "the system summed 8 bytes for job1, and Gloo 4 MB; through the system: allreduce "
            "once, 8 bytes; by Gloo (no all-reduce): all_gather_into_tensor once, 6 MB, "
            "reduce_scatter_tensor 5 times, 4 MB",
        ),
        (REPLICATED, 5_000_000, None),
        (SHARDED, 4_000_000, None),  # as much by the system: what a hook sums is not in `counts`
    ],
)
def test_a_system_that_was_to_sum_and_did_not_is_found(
    counts: dict[str, int], by_system: int, says: str | None
) -> None:
    found = list(not_aggregated({"job1": job(counts, by_system), "plain": {"rounds": 3}}))
    assert [text for text, _ in found] == ([] if says is None else [says])
    if says:
        by_gloo = 4_000_000 if counts else 0
        assert found[0][1] == {"system_bytes": by_system, "gloo_bytes": by_gloo}


def test_another_workload_and_a_job_without_a_round_have_no_such_finding() -> None:
    assert not list(not_aggregated({"a": {"training": {"delay": {}}}, "b": {}}))
