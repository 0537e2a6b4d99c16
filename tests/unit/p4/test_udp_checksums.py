"""Which UDP checksums each program that reads what a host sends takes for right (RFC 768): none,
which is written 0, and a sum of 0, which is written 0xffff, but never a wrong sum."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from conversations import Conversation
from frames import checksum
from rules import Rules, every
from tables import write_entries

from p4native.switch import Pipeline

CHECKING = [rules for rules in every() if rules.conversations and rules.program != "forwarding"]
UDP_IN_IPV4 = bytes([0x08, 0x00, 0x45])
NONE, ONES, WRONG = 0, 0xFFFF, 0x1234

Seen = tuple[object, ...]


def with_checksum(frame: bytes, value: int) -> bytes:
    return frame[:40] + value.to_bytes(2, "big") + frame[42:]


def summed_to_ones(frame: bytes) -> bytes:
    """The frame without a checksum. Its last two bytes, of a value, make the sum of all 0xffff."""
    bare = with_checksum(frame, NONE)[:-2] + bytes(2)
    pseudo = bare[26:34] + bytes([0, 17]) + (len(bare) - 34).to_bytes(2, "big")
    return bare[:-2] + checksum(pseudo + bare[34:]).to_bytes(2, "big")


def frames_of(rules: Rules) -> Iterator[tuple[Conversation, int, bytes]]:
    """UDP packets with an even length that hosts send in the program's conversations."""
    for make in rules.conversations.values():
        conversation = make(random.Random(1))
        for step in conversation.steps:
            is_udp = step.frame[12:15] == UDP_IN_IPV4 and step.frame[23] == 17
            if is_udp and len(step.frame) % 2 == 0:
                yield conversation, step.port, step.frame


@pytest.mark.long(but=["atp"])
@pytest.mark.parametrize("rules", CHECKING, ids=lambda rules: rules.program)
def test_no_checksum_and_a_sum_of_zero_are_right_and_nothing_else(
    rules: Rules, tmp_path: Path
) -> None:
    product = rules.compiled(tmp_path)

    def seen(conversation: Conversation, port: int, frame: bytes) -> Seen:
        """Whether anything leaves, and all counters, after only this frame."""
        pipeline = Pipeline.load(product)
        write_entries(pipeline, conversation.setup)
        out = pipeline.process(port, frame)
        counters = pipeline.program.counters.items()
        counts = {
            name: [pipeline.counters.read(name, index)[0] for index in range(counter.size)]
            for name, counter in counters
        }
        return bool(out), counts

    checked = 0
    for conversation, port, frame in frames_of(rules):
        right = summed_to_ones(frame)
        unchecked = seen(conversation, port, right)
        refused = seen(conversation, port, with_checksum(right, WRONG))
        if unchecked == refused:
            continue  # the program forwards it unread, or refuses it for something else
        checked += 1
        assert seen(conversation, port, with_checksum(right, ONES)) == unchecked
        damaged = right[:-1] + bytes([right[-1] ^ 1])
        assert seen(conversation, port, with_checksum(damaged, ONES)) == refused
        if checked == 3:
            return
    assert checked, "no packet of the conversations has a checksum that matters"
