"""Says in few lines why runs of a sweep or comparison failed. Runs that failed for the same reason
share a line, whatever the numbers in their reasons are."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agglab.testbed.schema.finding_kinds import FINDING_KINDS
from p4native.common.printable import one_line

LINES_MAX = 10
ALIKE_MAX = 3
TEXT_MAX = 200
_BEGINNINGS = ("expected ", *(f"{kind}: " for kind in FINDING_KINDS))
_NEXT_REASON = re.compile(f"; (?={'|'.join(map(re.escape, _BEGINNINGS))})")
_NUMBER = re.compile(r"\d+(\.\d+)?(e[-+]?\d+)?")


def split(reason: str) -> list[str]:
    """Returns the single reasons of a run, of which its `reason` consists."""
    return _NEXT_REASON.split(reason) if reason else []


def grouped(failed: Sequence[tuple[str, str]]) -> list[str]:
    """Returns at most LINES_MAX lines. failed: the label and the `reason` of each failed run; a
    single run has no label. Up to ALIKE_MAX reasons of a kind are kept as they are, each after its
    run's label."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for label, reason in failed:
        for text in split(reason):
            groups.setdefault(_kind(text), []).append((label, text))
    lines = [line for members in groups.values() for line in _lines(members)]
    if len(lines) <= LINES_MAX:
        return lines
    most_first = sorted(groups.values(), key=len, reverse=True)
    if len(most_first) <= LINES_MAX:
        return [_line(members) for members in most_first]
    shown, others = most_first[: LINES_MAX - 1], most_first[LINES_MAX - 1 :]
    runs = {label for members in others for label, _ in members}
    return [*map(_line, shown), f"{len(runs)} runs for {len(others)} other reasons"]


def _kind(text: str) -> str:
    """Returns what reasons of the same kind have in common: the kind of a finding, or the text
    without its numbers."""
    start, _, _ = text.partition(": ")
    return start if start in FINDING_KINDS else _NUMBER.sub("0", text)


def _lines(members: Sequence[tuple[str, str]]) -> list[str]:
    if len(members) > ALIKE_MAX:
        return [_line(members)]
    return [_labelled(label, text) for label, text in members]


def _line(members: Sequence[tuple[str, str]]) -> str:
    label, text = members[0]
    runs = {label for label, _ in members}
    start = f"{len(runs)} runs, such as " if len(runs) > 1 else ""
    return start + _labelled(label, one_line(text, TEXT_MAX))


def _labelled(label: str, text: str) -> str:
    return f"{label}: {text}" if label else text
