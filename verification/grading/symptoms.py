"""What a packet case that failed shows: the symptoms by which an exercise tells one mistake from
another, and says what is meant for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agglab.verification.grading.lab import Case
from p4native.stf import Binder, Mismatch
from p4native.stf.described import differing

Frames = list[tuple[int, bytes]]
Symptoms = Mapping[str, set[str]]


@dataclass(frozen=True)
class Sent:
    """One packet of a script. came: what the program sent because of it. before, after: the cells
    that the case names."""

    port: int
    frame: bytes
    came: Frames
    before: Mapping[str, int]
    after: Mapping[str, int]


def of(sent: Sent, wrong: Mismatch, binder: Binder) -> Symptoms:
    """Returns the symptoms of the first packet that went wrong: `came` (how), `port` (by which
    ports packets came), `differs` (in which fields), and each cell that the case names."""
    return {
        "came": {_came(sent, wrong)},
        "port": {str(port) for port, _ in sent.came},
        "differs": set(_fields(wrong, binder)),
        **{cell: {str(value)} for cell, value in sent.after.items()},
    }


def remark(case: Case, symptoms: Symptoms) -> str:
    """Returns the id of the first remark of a case that fits; empty if none does."""
    return next(
        (
            each.id
            for each in case.remarks
            if all(symptoms.get(name, set()) & {*values} for name, values in each.when.items())
        ),
        "",
    )


def _came(sent: Sent, wrong: Mismatch) -> str:
    """Returns how what came differs from what was expected."""
    ports = {port for port, _ in sent.came}
    if wrong.expect is None:
        return "undropped" if ports == {0} else "unexpected"
    if wrong.frame is not None:
        return "different"
    return "elsewhere" if ports else "nothing"


def _fields(wrong: Mismatch, binder: Binder) -> Iterator[str]:
    if wrong.expect is not None and wrong.frame is not None:
        yield from (text.partition(":")[0] for text in differing(binder, wrong.expect, wrong.frame))
