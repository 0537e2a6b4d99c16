"""A window that adapts to congestion marks: additive increase, multiplicative decrease.

It is for endpoints that have one window for each flow. A switch marks packets when a link is busy
(p4/include/phantom_queue.p4). The receiver copies the mark into its answer, and the endpoint passes
every answer's mark to the window. This module imports nothing of `hosts`.
"""

from __future__ import annotations


class AimdWindow:
    """The number of packets that may be in flight, adapted to congestion marks.

    A round trip ends when as many answers have come as packets were in flight at its beginning. If
    no answer was marked, the window grows by one packet. If at least one was marked, the window is
    halved once. The packets that are then in flight met the same queue, so the marks of the next
    round trip are ignored. A loss counts as a mark.

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
        """Adapts the window to an awaited answer that has come. marked: whether a switch on the way
        said that a link is busy."""
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
        """Notes that a packet was considered lost, which has the effect of a mark."""
        self._marked = True
