"""What a system's packets say, for whoever shows packets of a run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np


@dataclass(frozen=True)
class Message:
    """One packet. kind: its name, such as `SCALED RESULT`. chunk: the values of the fields that say
    which chunk of which job the packet is about. is_answer: whether its receiver has waited for it.
    attempt: how often it was sent before. fields: every field of the header that is one number."""

    kind: str
    chunk: tuple[int, ...]
    is_answer: bool
    attempt: int
    fields: Mapping[str, int]


@dataclass(frozen=True)
class Messages:
    """The UDP payloads of a system.

    header: the header with which every payload begins. Its fields include `kind`, `job` and
    `attempt`. kinds: the names of its kinds. bits: the bits of `kind` that are set beside the
    kind's number, by name. answers: the names of those kinds and bits that make a packet an answer;
    none if one answer may be about many packets.
    chunk: the fields whose values a packet and its answer have in common, and no other packet that
    its sender has under way to the same receiver.
    """

    header: np.dtype
    kinds: type[IntEnum]
    answers: Collection[str]
    chunk: Sequence[str]
    bits: Mapping[str, int] = field(default_factory=dict)

    def read(self, payload: bytes) -> Message | None:
        """Returns what a payload says; None if it is not one of this system's."""
        if len(payload) < self.header.itemsize:
            return None
        record = np.frombuffer(payload, self.header, 1)[0]
        numbers = {
            name: int(record[name])
            for name in self.header.names or ()
            if self.header[name].subdtype is None
        }
        names = self._names(numbers["kind"])
        if not names:
            return None
        chunk = (numbers["job"], *(numbers[each] for each in self.chunk))
        is_answer = any(name in self.answers for name in names)
        return Message(" ".join(names), chunk, is_answer, numbers["attempt"], numbers)

    def words(self, message: Message) -> str:
        """Returns a name for the chunk that a message is about, such as `slot 3 tag 7`."""
        return " ".join(
            f"{name} {value}" for name, value in zip(self.chunk, message.chunk[1:], strict=True)
        )

    def _names(self, number: int) -> list[str]:
        """Returns the names of a kind and of its bits; none for an unknown kind."""
        known = sum(self.bits.values())
        for kind in self.kinds:
            rest = number ^ kind
            if not rest & ~known:
                return [kind.name, *(name for name, bit in self.bits.items() if rest & bit)]
        return []
