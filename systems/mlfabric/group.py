"""Groups of updates that the scheduler grants together, and the sum of a group at a server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agglab.systems.mlfabric.wire import BITMAP, ENTRY, GRANT, REQUEST

Values = NDArray[np.int32]


def bitmap_of(chunks: Sequence[int] | NDArray) -> NDArray[np.uint8]:
    """Returns a set of chunks as a BITMAP: an array with a bit for each chunk."""
    bits = np.zeros(8 * BITMAP[2][0], np.uint8)
    bits[np.asarray(chunks, np.int64)] = 1
    return np.packbits(bits, bitorder="little")


def chunks_in(bitmap: NDArray[np.uint8]) -> list[int]:
    """Returns the numbers of the chunks whose bits are set in a BITMAP, in order."""
    bits: NDArray[np.uint8] = np.unpackbits(np.asarray(bitmap, np.uint8), bitorder="little")
    return [int(chunk) for chunk in np.flatnonzero(bits)]


@dataclass(frozen=True)
class Member:
    """One update of a group: the rank of its worker, the contents of its REQUEST, and the chunks in
    which it has values."""

    rank: int
    step: int
    read: int
    norm: int
    chunks: tuple[int, ...]

    @classmethod
    def of_request(cls, rank: int, body: bytes) -> Member:
        """Returns the member that the body of a REQUEST describes. rank: the rank of the sender."""
        return cls._of(rank, np.frombuffer(body, REQUEST, 1)[0])

    @classmethod
    def _of(cls, rank: int, one: np.void) -> Member:
        step, read, norm = (int(one[name]) for name in ("step", "read", "norm"))
        return cls(rank, step, read, norm, tuple(chunks_in(one["chunks"])))

    @property
    def request(self) -> bytes:
        """The body of the member's REQUEST."""
        return self._filled(REQUEST).tobytes()

    @property
    def entry(self) -> bytes:
        """The ENTRY that describes the member in a GRANT."""
        made = self._filled(ENTRY)
        made["rank"] = self.rank
        return made.tobytes()

    def _filled(self, dtype: np.dtype) -> NDArray[np.void]:
        made = np.zeros(1, dtype)
        made["step"], made["read"], made["norm"] = self.step, self.read, self.norm
        made["chunks"] = bitmap_of(self.chunks)
        return made


@dataclass(frozen=True)
class Grant:
    """A group as the scheduler has announced it in a GRANT. base: the model's version before the
    group is committed."""

    group: int
    base: int
    target: int
    members: tuple[Member, ...]

    @classmethod
    def of(cls, body: bytes, workers: int, chunks: int) -> Grant | None:
        """Returns the group that the body of a GRANT describes. Returns None if no scheduler of
        this job can have sent it."""
        head = np.frombuffer(body, GRANT, 1)[0]
        entries = np.frombuffer(body, ENTRY, offset=GRANT.itemsize)
        members = tuple(Member._of(int(one["rank"]), one) for one in entries)
        ranks = [one.rank for one in members]
        fits = all(one.chunks and one.chunks[-1] < chunks for one in members)
        if int(head["count"]) != len(members) or len(set(ranks)) != len(ranks):
            return None
        if max(ranks) >= workers or not fits:
            return None
        return cls(int(head["group"]), int(head["base"]), int(head["target"]), members)

    @property
    def body(self) -> bytes:
        """The body of the GRANT that announces the group."""
        head = np.zeros(1, GRANT)
        head["group"], head["base"], head["target"] = self.group, self.base, self.target
        head["count"] = len(self.members)
        return bytes(head.tobytes() + b"".join(one.entry for one in self.members))

    @property
    def version(self) -> int:
        """The model's version after the group is committed."""
        return self.base + len(self.members)

    def contributors(self, chunk: int) -> int:
        """Returns the members that have values in a chunk, as a number with a bit for each rank."""
        return sum(1 << one.rank for one in self.members if chunk in one.chunks)


class GroupSum:
    """The sum of a group's values at the server. A chunk is complete when the values of all members
    that have values in it have come. The values may come one by one, or summed by a switch. No
    member's values are added twice."""

    def __init__(self, grant: Grant, lanes: int) -> None:
        self.grant = grant
        chunks = sorted({chunk for one in grant.members for chunk in one.chunks})
        self._wanted = {chunk: grant.contributors(chunk) for chunk in chunks}
        self._present = dict.fromkeys(chunks, 0)
        self.sums: dict[int, Values] = {chunk: np.zeros(lanes, np.int32) for chunk in chunks}
        self._incomplete = len(chunks)

    @property
    def is_complete(self) -> bool:
        return self._incomplete == 0

    def wants(self, chunk: int, members: int, present: int) -> bool | None:
        """Returns whether a packet has values that the sum of its chunk lacks. Returns None if no
        member of the group can have sent the packet. members, present: the members that are to
        contribute to the packet, and those that have, as numbers with a bit for each rank."""
        wanted = self._wanted.get(chunk)
        if wanted is None or members & ~wanted or not present or present & ~members:
            return None
        return not self._present[chunk] & present or (
            present == wanted and self._present[chunk] != wanted
        )

    def take(self, chunk: int, present: int, values: Values) -> None:
        """Adds the values of a packet that `wants` accepted. If the packet has the values of all
        members, it replaces the values that came before."""
        wanted = self._wanted[chunk]
        if present == wanted:
            self.sums[chunk], self._present[chunk] = values, wanted
        else:
            self.sums[chunk] = self.sums[chunk] + values
            self._present[chunk] |= present
        self._incomplete -= self._present[chunk] == wanted

    def missing_of(self, member: Member) -> list[int]:
        """Returns the chunks in which a member's values have not arrived."""
        bit = 1 << member.rank
        return [chunk for chunk in member.chunks if not self._present[chunk] & bit]
