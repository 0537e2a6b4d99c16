"""Impairments and faults of real links do what their definitions in testbed/run/impairments/
say."""

from __future__ import annotations

import struct
from collections import Counter
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from network_case import case

from agglab.testbed.run.impairments import FrameDecision, decider, deciders, direction_key, flip
from agglab.topologies import (
    Corrupt,
    Drop,
    DropList,
    Duplicate,
    GilbertElliott,
    Impairment,
    PeriodicDrop,
)

pytestmark = pytest.mark.root


KINDS: dict[str, tuple[Impairment, ...]] = {
    "bursts": (GilbertElliott(0.05, 0.3, 0.01, 0.9),),
    # Never forgets: every draw changes the state or none does.
    "even bursts": (GilbertElliott(0.5, 0.5, 0.1, 1.0),),
    "periodic": (PeriodicDrop(7, 2, 30),),
    "list": (DropList((0, 5, 6, 999, 100_000)),),
    "corrupt": (Corrupt(0.3),),
    "duplicate": (Duplicate(0.2),),
    "all": (
        Corrupt(0.3),
        PeriodicDrop(11),
        GilbertElliott(0.02, 0.2),
        DropList((7,)),
        Duplicate(0.3),
        Drop(0.1),
    ),
}


def same_but_for_copies(received: list[Any], expected: list[Any]) -> None:
    """The same frames as often, in the same order; a copy may be behind others that had come."""
    assert list(dict.fromkeys(received)) == list(dict.fromkeys(expected))
    assert Counter(received) == Counter(expected)


@pytest.mark.long(but=["all"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_kernel_does_what_its_twin_says(tmp_path: Path, kind: str) -> None:
    head = bytes.fromhex("02ee00000001 02ee00000002 88b5")
    sent = [(head + struct.pack("!I", k)).ljust(60 + k % 900, b"\xa5") for k in range(2000)]
    got = case(tmp_path, "kinds", impairments=repr(KINDS[kind]), frames=len(sent))
    decide = deciders(KINDS[kind], 7, "h1-s1", "h1->s1")
    dropped, arrived, corrupted, copied = [], [], 0, 0
    for k, frame in enumerate(sent):
        decision = FrameDecision()
        for each in decide:
            each(k, len(frame), decision)
        if decision.dropped:
            dropped.append(k)
            continue
        for bit in decision.flipped:
            frame = flip(frame, bit)
        corrupted += len(decision.flipped)
        copied += len(decision.copies_ns)
        arrived += [frame.hex()] * (1 + len(decision.copies_ns))
    assert got["dropped_numbers"] == dropped
    same_but_for_copies(got["received"], arrived)
    assert got["corrupted"] == corrupted
    assert got["duplicated"] == copied
    assert got["seen"] == len(sent)
    assert 0 < len(dropped) + corrupted + copied < len(sent)


@pytest.mark.long(but=["kind0"])
@pytest.mark.parametrize("kind", [GilbertElliott(0.2, 0.4), GilbertElliott(0.5, 0.5)])
def test_bursts_go_on_over_frames_that_are_still_elsewhere(
    tmp_path: Path, kind: GilbertElliott
) -> None:
    numbers = list(accumulate(step % 16 + 1 for step in range(1500)))
    got = case(tmp_path, "gaps", impairments=repr((kind,)), numbers=numbers)
    decide = decider(kind, direction_key(7, "h1-s1", "h1->s1"))
    dropped = []
    for k in numbers:
        decide(k, 60, decision := FrameDecision())
        if decision.dropped:
            dropped.append(k)
    assert got["dropped_numbers"] == dropped


def test_faults_begin_and_end_between_frames(tmp_path: Path) -> None:
    each = 400
    got = case(tmp_path, "link_faults", each=each)
    kinds: dict[int, Impairment] = {3: GilbertElliott(0.05, 0.2), 4: Drop(0.25), 5: Duplicate(0.25)}
    decide = {
        number: decider(kind, direction_key(7, "h1-s1", "h1->s1", f"fault{number}"))
        for number, kind in kinds.items()
    }
    on: list[set[int]] = [set(), {3}, {3, 4, 5}, {3, 4, 5}, {3, 4, 5}, set()]
    lost = range(3 * each, 4 * each)
    dropped, received = [], []
    for k in range(6 * each):
        decision = FrameDecision(dropped=k >= 50 and (k - 50) % 100 == 0)
        for number in on[k // each]:
            decide[number](k, 60, decision)
        if k in lost:
            continue
        if decision.dropped:
            dropped.append(k)
        else:
            received += [k] * (1 + len(decision.copies_ns))
    assert got["dropped_numbers"] == dropped
    assert got["lost_link_down"] == each
    same_but_for_copies(got["received"], received)
    assert got["duplicated"] == len(received) - len(set(received)) > 0
    assert got["seen"] == 6 * each


@pytest.mark.long
def test_a_rate_changes_and_comes_back(tmp_path: Path) -> None:
    """20 frames of 10,000 bits: half of them, less the bucket's two, at 1 and at 4 Mbit/s."""
    got = case(tmp_path, "rate_change", shaped=True, frames=20)
    slow, fast, again = got["took"]
    assert fast < 0.5 * slow and fast < 0.5 * again
    assert got["dropped"] == 0, "the queue keeps its length of 20 frames"


@pytest.mark.long
def test_an_unshaped_link_gets_a_rate_for_a_time(tmp_path: Path) -> None:
    got = case(tmp_path, "rate_change", shaped=False, frames=40)
    before, during, after = got["took"]
    assert during > 0.03, "19 frames of 10,000 bits at 4 Mbit/s take 48 ms"
    assert before < 0.5 * during and after < 0.5 * during
