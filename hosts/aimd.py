"""A window that follows marks of congestion: additive increase, multiplicative decrease.

It is for an endpoint that has a window for each flow. A switch marks packets when a link is busy
(p4/include/phantom_queue.p4). The receiver repeats the mark in its answer, and the endpoint tells
the window of every answer. This module imports nothing of `hosts`.
"""

from __future__ import annotations


class AimdWindow:
    """The number of packets that may be in flight, adapted to marks.

    A round trip is over when as many answers have come as were in flight at its beginning. If none
    was marked, the window grows by one packet. If at least one was marked, the window is halved,
    once. The packets then in flight met the same queue, so their marks say nothing new: the
    following round trip changes nothing. A loss counts as a mark.

    least, most: limits in packets, 1 <= least <= most. start: the first window, within the limits.
    """

    def __init__(self, start: int, least: int, most: int) -> None:
        if not 1 <= least <= start <= most:
            raise ValueError(
                f"the first window is {start} packets, the least {least} and the most {most}; it "
                "must hold that 1 <= least <= first <= most"
            )
        self.window = start
        self.halved = 0
        """How often the window was halved."""
        self._least, self._most = least, most
        self._left = start
        self._marked = False
        self._knows = False

    def answered(self, marked: bool) -> None:
        """Notes that an awaited answer has come. marked: whether a switch on the way said that a
        link is busy."""
        self._marked = self._marked or marked
        self._left -= 1
        if self._left > 0:
            return
        in_flight, shrinks = self.window, self._marked and not self._knows
        if shrinks:
            self.window, self.halved = max(self._least, self.window // 2), self.halved + 1
        elif not self._knows:
            self.window = min(self._most, self.window + 1)
        self._left = in_flight if shrinks else self.window
        self._knows, self._marked = shrinks, False

    def lost(self) -> None:
        """Notes that a packet was taken for lost."""
        self._marked = True
