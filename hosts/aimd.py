"""A window that follows marks of congestion: additive increase, multiplicative decrease.

For an endpoint that keeps one for each flow. Whoever forwards marks packets where a link is busy
(p4/include/phantom_queue.p4), the receiver says so in its answer, and the endpoint tells this
window of every answer. Imports nothing of `hosts`.
"""

from __future__ import annotations


class AimdWindow:
    """How many packets may be in flight. A round trip is over when as many answers have come as
    were in flight when it began: without a mark among them the window grows by one packet, with one
    it shrinks to half, once, however many were marked. What was in flight then met the same queue,
    so its marks say nothing new: the round trip that follows changes nothing. A loss counts as a
    mark.

    least, most: packets, 1 <= least <= most; start: the first window, within them.
    """

    def __init__(self, start: int, least: int, most: int) -> None:
        if not 1 <= least <= start <= most:
            raise ValueError(
                f"the first window is {start} packets, the least {least} and the most {most}; it "
                "must hold that 1 <= least <= first <= most"
            )
        self.window = start
        self.halved = 0
        """How often it was."""
        self._least, self._most = least, most
        self._left = start
        self._marked = False
        self._knows = False

    def answered(self, marked: bool) -> None:
        """An awaited answer has come. marked: some switch on the way says that a link is busy."""
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
        """A packet was taken for lost."""
        self._marked = True
