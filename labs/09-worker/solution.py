"""Lab 09: which packets a worker sends, and when it sends them again."""


class Recovery:
    """chunks: how many chunks the worker has. slots: how many slots the switch has; chunk c uses
    slot c % slots. timeout: how long, in milliseconds, the worker waits for a result before it
    sends the chunk again."""

    def __init__(self, chunks, slots, timeout):
        self.chunks, self.slots, self.timeout = chunks, slots, timeout
        self.next_chunk = 0
        self.last_sent = {}  # chunk that waits for its result -> when it was last sent
        self.results = set()

    def may_begin(self, chunk):
        """Whether the slot of this chunk is free: the chunk before it there has its result."""
        before = chunk - self.slots
        return chunk < self.chunks and (before < 0 or before in self.results)

    def due(self, now):
        """Returns the chunks that are to be sent now, each once, and notes when they were sent."""
        again = [c for c, sent in self.last_sent.items() if now >= sent + self.timeout]
        fresh = []
        while self.may_begin(self.next_chunk):
            fresh.append(self.next_chunk)
            self.next_chunk += 1
        for chunk in again + fresh:
            self.last_sent[chunk] = now
        return again + fresh

    def received(self, chunk):
        """Takes the result of a chunk. Returns whether the worker was waiting for it."""
        if chunk not in self.last_sent:
            return False
        del self.last_sent[chunk]
        self.results.add(chunk)
        return True

    def next_time(self):
        """Returns when `due` has to be called again although no result comes; None for never."""
        return min(self.last_sent.values()) + self.timeout if self.last_sent else None

    def done(self):
        """Whether every chunk has its result."""
        return len(self.results) == self.chunks
