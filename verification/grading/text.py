"""Writes a grade for people."""

from __future__ import annotations

from agglab.verification.grading.lab import COMPILES
from agglab.verification.grading.result import Grade


def number(points: float) -> str:
    """Returns points without needless digits."""
    return f"{points:.2f}".rstrip("0").rstrip(".")


def total(grade: Grade) -> str:
    return f"{number(grade.points)} of {number(grade.lab.points)} points"


def text(grade: Grade) -> str:
    """Returns the points of each part, and the diagnosis of the first case that did not pass."""
    lines = [f"{grade.lab.name} ({grade.lab.title}): {total(grade)}"]
    width = max(len(part.name) for part in grade.parts)
    for part in grade.parts:
        failed = f"  not passed: {', '.join(part.failed)}" if part.failed else ""
        if part.failed == (COMPILES,):
            failed = "  no"
        lines.append(f"  {part.name:<{width}}  {number(part.points)}/{number(part.of)}{failed}")
    return "\n".join([*lines, *diagnosis(grade)])


def diagnosis(grade: Grade) -> list[str]:
    """Returns lines about the first case that did not pass; none if all passed."""
    if grade.is_full:
        return []
    verdict = grade.verdict(grade.failed)
    lines = ["", *filter(None, [grade.says]), *verdict.story]
    if verdict.seed is not None:
        lines.append(f"seed {verdict.seed}")
    if verdict.replay:
        lines.append(f"to see it again: {verdict.replay}")
    return lines
