"""What systems/libra/README.md says a switch does with what workers send, in plain Python."""

from __future__ import annotations

from collections import Counter

import numpy as np

from agglab.systems.libra import wire


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
        self.counts: Counter[str] = Counter()
        """By the program's names."""

    def forget(self) -> None:
        """What a restart does."""
        self.cells = {}

    def take(self, rank: int, payload: bytes) -> tuple[int, bytes] | None:
        """(server, datagram) that goes on, if anything does."""
        header = np.frombuffer(payload, wire.HEADER, 1)[0]
        server = int(header["server"])
        if header["kind"] != wire.Kind.HOT:
            self.counts["passed"] += 1
            return server, payload
        cell = self.cells.setdefault((server, int(header["item"])), Cell())
        own = int(header["session"]), int(header["round"])
        bit = 1 << rank
        fresh = not cell.present or own > cell.round
        if not fresh and (own < cell.round or cell.digest != header["digest"]):
            self.counts["hot_passed"] += 1
            return server, payload
        if fresh:
            cell.round, cell.digest, cell.present = own, int(header["digest"]), 0
        first = not cell.present
        if cell.present & bit:
            return self._gone_on("hot_duplicate", "sum_repeated", server, payload, cell)
        cell.present |= bit
        at = wire.HEADER_BYTES + wire.KEY_BYTES * self.lanes
        values = np.frombuffer(payload, ">u4", self.lanes, at).astype(np.uint32)
        cell.values = values if first else cell.values + values
        return self._gone_on("hot_new", "group_complete", server, payload, cell)

    def _gone_on(
        self, came: str, went: str, server: int, payload: bytes, cell: Cell
    ) -> tuple[int, bytes] | None:
        """came, went: what counts the packet, and the sum that it becomes if all are in it."""
        self.counts[came] += 1
        if cell.present != self.everybody:
            return None
        self.counts[went] += 1
        return server, self._sum(payload, cell)

    def _sum(self, payload: bytes, cell: Cell) -> bytes:
        """The packet, which speaks for all."""
        header = np.frombuffer(payload, wire.HEADER, 1).copy()
        header["kind"], header["workers"] = wire.Kind.SUM, self.everybody
        at = wire.HEADER_BYTES + wire.KEY_BYTES * self.lanes
        keys = payload[wire.HEADER_BYTES : at]
        return header.tobytes() + keys + cell.values.astype(">u4").tobytes()
