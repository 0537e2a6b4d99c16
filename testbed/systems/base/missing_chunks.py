"""The chunks for which a host or switch is to blame if a round does not end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

Waiting = Sequence[int]
"""One thing that an agent waits for, as its endpoint's `waiting` returns it. The first item is a
chunk."""
RANGES_MAX = 8


@dataclass
class MissingChunks:
    """The chunks for which one host or switch is to blame, each in one of six ways.

    never_sent: it never sent its values. never_heard: it never received the sum.
    never_delivered: it sent its values, which never arrived. not_taken: a switch received a
    contribution and does not hold it. not_answered: a switch holds the sum, and who asks for it
    receives no valid answer. not_sent_on: a switch received packets that it should have forwarded.

    slot: what the switch holds of the first of these chunks, in words. behind: how many other
    chunks workers wait for that can only come after chunks for which anybody is to blame.
    """

    never_sent: set[int] = field(default_factory=set)
    never_heard: set[int] = field(default_factory=set)
    never_delivered: set[int] = field(default_factory=set)
    not_taken: set[int] = field(default_factory=set)
    not_answered: set[int] = field(default_factory=set)
    not_sent_on: set[int] = field(default_factory=set)
    slot: str = ""
    behind: int = 0

    @property
    def count(self) -> int:
        return sum(len(chunks) for chunks, _ in self._said())

    @property
    def is_proven(self) -> bool:
        """Whether the counts of links exclude that packets were lost on their way instead."""
        return bool(self.not_taken or self.not_answered or self.not_sent_on)

    @property
    def chunks(self) -> set[int]:
        return set().union(*(chunks for chunks, _ in self._said()))

    def _said(self) -> tuple[tuple[set[int], str], ...]:
        return (
            (self.never_sent, "never sent"),
            (self.never_delivered, "never delivered"),
            (self.not_taken, "received and does not hold"),
            (self.not_answered, "holds the sum and gives no valid answer for"),
            (self.not_sent_on, "did not send on packets of"),
            (self.never_heard, "never heard the sum of"),
        )

    @property
    def _these(self) -> str:
        return "it" if self.count == 1 else "them"

    def __str__(self) -> str:
        return " and ".join(f"{verb} {spans(chunks)}" for chunks, verb in self._said() if chunks)

    def of(self, job: str) -> str:
        """Returns all of this about the chunks of a job, in words."""
        waits = "1 chunk waits" if self.behind == 1 else f"{self.behind} chunks wait"
        more = [self.slot, f"{waits} behind {self._these}" if self.behind else ""]
        return "; ".join([f"{self} of {job}", *filter(None, more)])


def spans(chunks: Iterable[int]) -> str:
    """Returns a text such as `chunk 7` or `chunks 3, 8-12`."""
    runs: list[list[int]] = []
    for chunk in sorted(chunks):
        if runs and chunk == runs[-1][1] + 1:
            runs[-1][1] = chunk
        else:
            runs.append([chunk, chunk])
    shown = [str(a) if a == b else f"{a}-{b}" for a, b in runs[:RANGES_MAX]]
    more = f" and {len(runs) - RANGES_MAX} more ranges" if len(runs) > RANGES_MAX else ""
    single = len(runs) == 1 and runs[0][0] == runs[0][1]
    return f"chunk{'' if single else 's'} {', '.join(shown)}{more}"
