"""Formats a comparison as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from agglab.testbed.cli.comparing.differences import LIKELY, Change, Comparison, Pair, Times
from agglab.testbed.results.metric_values import show
from agglab.testbed.results.noise import LEAST, Difference
from agglab.testbed.scenario.workloads.judged_time import ROUND

KEYS_MAX = 40
NONE = "nothing differs"


def text(found: Comparison) -> str:
    """Returns the comparison as text for people."""
    lines = [f"A  {found.a.folder}", f"B  {found.b.folder}"]
    lines += ["", "scenario", *_changes(found.scenario)]
    lines += ["", "produced by (manifest)", *_changes(found.made_by)]
    lines += ["", *(f"only in A: {label}" for label in found.only_a)] if found.only_a else []
    lines += ["", *(f"only in B: {label}" for label in found.only_b)] if found.only_b else []
    for pair in found.pairs:
        lines += ["", pair.label or "result", *_pair(pair)]
    lines += ["", _verdict(found)]
    return "\n".join(lines)


def as_json(found: Comparison) -> dict[str, Any]:
    """Returns the comparison as JSON for programs."""
    return {
        "a": str(found.a.folder),
        "b": str(found.b.folder),
        "alike": found.alike,
        "scenario": [asdict(each) for each in found.scenario],
        "made_by": [asdict(each) for each in found.made_by],
        "only_a": list(found.only_a),
        "only_b": list(found.only_b),
        "runs": [
            {
                "label": pair.label,
                "alike": pair.alike,
                "flags": [asdict(each) for each in pair.flags],
                "numbers": [asdict(each) for each in pair.numbers],
                "times": [{**asdict(t), "more_than_noise": t.more_than_noise} for t in pair.times],
            }
            for pair in found.pairs
        ],
    }


def _changes(changes: Sequence[Change]) -> list[str]:
    lines = [f"  {each.path}: {show(each.a)} -> {show(each.b)}" for each in changes[:KEYS_MAX]]
    if len(changes) > KEYS_MAX:
        lines.append(f"  and {len(changes) - KEYS_MAX} more")
    return lines or [f"  {NONE}"]


def _pair(pair: Pair) -> Iterator[str]:
    yield from (f"  {each.path}: {show(each.a)} -> {show(each.b)}" for each in pair.flags)
    several = len(pair.times) > 1
    for times in pair.times:
        yield f"  {times.job + ': ' if several else ''}{_judged(times)}"
    for each in pair.numbers:
        yield f"  {each.path}: {show(each.a)} -> {show(each.b)}{_percent(each)}"


def _percent(change: Change) -> str:
    numbers = all(isinstance(v, (int, float)) and v > 0 for v in (change.a, change.b))
    return f" ({change.b / change.a - 1:+.1%})" if numbers else ""


def _judged(times: Times) -> str:
    """Returns a sentence about the times of a job's rounds or steps."""
    many = f"{times.of}s"
    if times.same:
        return f"time of a {times.of}: the same in all {len(times.a)} {many}"
    if times.difference is None:
        return (
            f"time of a {times.of}: only {len(times.a)} and {len(times.b)} {many} were completed, "
            "so there is nothing to compare"
        )
    found = times.difference
    said = (
        f"time of a {times.of}: B takes {found.ratio:.4g} times as long as A "
        f"({_interval(found)}{len(times.a)} and {len(times.b)} {many}): "
    )
    if times.more_than_noise is None:
        needed = "workload.rounds: 8 rounds" if times.of == ROUND.of else f"8 {many}"
        return said + (
            f"too few {many} to tell (the smallest p that so few can give is "
            f"{found.p_least:.2g}, and {LIKELY} is needed); run both with at least {needed}"
        )
    verdict = "more than noise" if times.more_than_noise else "not more than noise"
    few = not times.more_than_noise and min(len(times.a), len(times.b)) < LEAST
    caution = f"; with fewer than {LEAST} {many}, only large differences can be told" if few else ""
    return f"{said}{verdict} (p = {times.p:.2g}{caution})"


def _interval(found: Difference) -> str:
    if found.interval is None:
        return ""
    return f"95 % interval {found.interval.low:.4g} to {found.interval.high:.4g}, "


def _verdict(found: Comparison) -> str:
    if found.alike:
        return "ALIKE: no difference is more than noise"
    if any(pair.flags for pair in found.pairs) or found.unmatched or not found.pairs:
        return "DIFFERENT"
    if any(times.more_than_noise for pair in found.pairs for times in pair.times):
        return "DIFFERENT: the times differ by more than noise"
    return "CANNOT TELL: the times differ, but there are too few rounds"
