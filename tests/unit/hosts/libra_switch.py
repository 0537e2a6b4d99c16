"""What p4/libra.p4 does with what workers and servers send, for networks of endpoints alone."""

from __future__ import annotations

import numpy as np

from agglab.hosts.systems.libra import wire


class Cell:
    """A group of hot keys under way."""

    def __init__(self) -> None:
        self.round, self.digest, self.present = (0, 0), 0, 0
        self.values = np.zeros(0, np.uint32)


class LibraSwitch:
    """Sums the workers of these ranks, all at its own ports."""

    def __init__(self, lanes: int, ranks: tuple[int, ...]) -> None:
        self.lanes, self.ranks = lanes, ranks
        self.everybody = sum(1 << rank for rank in ranks)
        self.cells: dict[tuple[int, int], Cell] = {}

    def forget(self) -> None:
        """What a restart does."""
        self.cells = {}

    def take(self, rank: int, payload: bytes) -> tuple[int, bytes] | None:
        """(server, datagram) that goes on, if anything does."""
        header = np.frombuffer(payload, wire.HEADER, 1)[0]
        server = int(header["server"])
        if header["kind"] != wire.Kind.HOT:
            return server, payload
        cell = self.cells.setdefault((server, int(header["item"])), Cell())
        own = int(header["session"]), int(header["round"])
        bit = 1 << rank
        fresh = not cell.present or own > cell.round
        if not fresh and (own < cell.round or cell.digest != header["digest"]):
            return server, payload
        if fresh:
            cell.round, cell.digest, cell.present = own, int(header["digest"]), 0
        first = not cell.present
        if cell.present & bit:
            return (server, self._sum(payload, cell)) if cell.present == self.everybody else None
        cell.present |= bit
        at = wire.HEADER_BYTES + wire.KEY_BYTES * self.lanes
        values = np.frombuffer(payload, ">u4", self.lanes, at).astype(np.uint32)
        cell.values = values if first else cell.values + values
        return (server, self._sum(payload, cell)) if cell.present == self.everybody else None

    def _sum(self, payload: bytes, cell: Cell) -> bytes:
        """The packet, which speaks for all."""
        header = np.frombuffer(payload, wire.HEADER, 1).copy()
        header["kind"], header["workers"] = wire.Kind.SUM, self.everybody
        at = wire.HEADER_BYTES + wire.KEY_BYTES * self.lanes
        keys = payload[wire.HEADER_BYTES : at]
        return header.tobytes() + keys + cell.values.astype(">u4").tobytes()
