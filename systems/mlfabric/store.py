"""A model with its version and its log of updates, and the packets by which the changed chunks are
transferred."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from agglab.systems.mlfabric import wire
from agglab.systems.mlfabric.wire import PART, RECORD, Kind

Part = tuple[Kind, bytes]


class Store:
    """A model as servers and workers hold it: int32, in chunks of `lanes` weights. The last chunk
    is filled up with zeros. In version 0 all weights are zero."""

    def __init__(self, elements: int, lanes: int) -> None:
        self.lanes, self.elements = lanes, elements
        self.chunks = -(-elements // lanes)
        self.clear()

    def clear(self) -> None:
        """Resets the store to version 0."""
        self.version = 0
        self.values: NDArray[np.int32] = np.zeros((self.chunks, self.lanes), np.int32)
        self.log: list[NDArray[np.void]] = []
        """The RECORD of each update, in order."""
        self._changed: NDArray[np.int64] = np.zeros(self.chunks, np.int64)

    @property
    def model(self) -> NDArray[np.int32]:
        """The model without its padding."""
        return self.values.reshape(-1)[: self.elements]

    def add(
        self, sums: Mapping[int, NDArray[np.int32]], records: Sequence[NDArray[np.void]]
    ) -> None:
        """Commits as many updates as there are records, and adds the records to the log. sums: the
        sums of the updates' values, by chunk. They are added modulo 2^32."""
        self.version += len(records)
        for chunk, values in sums.items():
            self.values[chunk] += values
            self._changed[chunk] = self.version
        self.log += records

    def parts(self, transfer: int, since: int, log_from: int | None) -> list[Part]:
        """Returns the packets by which a store with version `since` of the model gets the version
        of this store. log_from: the number of the first log record to be transferred, or None for
        no records."""
        found: list[tuple[Kind, int, bytes]] = [
            (Kind.STATE, int(chunk), self.values[chunk].astype(">i4").tobytes())
            for chunk in np.flatnonzero(self._changed > since)
        ]
        if log_from is not None:
            most = wire.records_max(self.lanes)
            for first in range(log_from, len(self.log), most):
                records = b"".join(one.tobytes() for one in self.log[first : first + most])
                found.append((Kind.LOG, first, records))
        found = found or [(Kind.LOG, 0, b"")]
        head = np.zeros(1, PART)
        head["transfer"], head["version"], head["since"] = transfer, self.version, since
        head["parts"] = len(found)
        whole = []
        for number, (kind, place, content) in enumerate(found):
            head["part"], head["place"] = number, place
            whole.append((kind, head.tobytes() + content))
        return whole

    def fits(self, assembly: Assembly) -> bool:
        """Returns whether a transfer begins at this store's version, ends at the same or a later
        one, and has the log records in between."""
        if assembly.since != self.version or assembly.version < self.version:
            return False
        at = len(self.log)
        for place, records in assembly.records():
            if place != at and records:
                return False
            at += len(records)
        return at == assembly.version

    def adopt(self, assembly: Assembly) -> None:
        """Replaces the model by one that has arrived completely and that `fits`, and adds its log
        records to the log."""
        self.bring(assembly)
        for _, records in assembly.records():
            self.log += records

    def bring(self, assembly: Assembly) -> None:
        """Replaces the model by one that has arrived completely. The log is not changed."""
        for chunk, values in assembly.chunks():
            self.values[chunk] = values
            self._changed[chunk] = assembly.version
        self.version = assembly.version


@dataclass
class Assembly:
    """The parts of one transfer of a model that have come so far."""

    transfer: int
    version: int
    since: int
    parts: int
    _found: dict[int, tuple[Kind, int, bytes]] = field(default_factory=dict)

    @classmethod
    def of(cls, body: bytes) -> Assembly:
        """Returns an empty assembly for the transfer to which a packet belongs. body: the body of
        the packet."""
        head = np.frombuffer(body, PART, 1)[0]
        transfer, version, since = (int(head[name]) for name in ("transfer", "version", "since"))
        return cls(transfer, version, since, int(head["parts"]))

    def take(self, kind: Kind, body: bytes, chunks: int) -> bool:
        """Adds a packet to the assembly if it has not come before. Returns whether it belongs to
        the transfer."""
        head = np.frombuffer(body, PART, 1)[0]
        own = (self.transfer, self.version, self.since, self.parts)
        if own != tuple(int(head[name]) for name in ("transfer", "version", "since", "parts")):
            return False
        part, place = int(head["part"]), int(head["place"])
        if part >= self.parts or (kind == Kind.STATE and place >= chunks):
            return False
        self._found.setdefault(part, (kind, place, body[PART.itemsize :]))
        return True

    @property
    def is_whole(self) -> bool:
        return len(self._found) == self.parts

    def chunks(self) -> Iterator[tuple[int, NDArray[np.int32]]]:
        """Yields each chunk that has come, as (number of the chunk, its weights)."""
        for kind, place, content in self._found.values():
            if kind == Kind.STATE:
                yield place, np.frombuffer(content, ">i4").astype(np.int32)

    def records(self) -> Iterator[tuple[int, list[NDArray[np.void]]]]:
        """Yields (number of the first record, records) for each packet of log records, in the order
        of the log."""
        for kind, place, content in sorted(self._found.values(), key=lambda each: each[1]):
            if kind == Kind.LOG:
                yield place, list(np.frombuffer(content, RECORD))
