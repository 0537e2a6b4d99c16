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
        again = []  # TODO 2: the chunks whose last packet is `timeout` old, or older.
        fresh = []
        # TODO 1: begin chunk after chunk, as long as their slots are free.
        for chunk in again + fresh:
            self.last_sent[chunk] = now
        return again + fresh

    def received(self, chunk):
        """Takes the result of a chunk. Returns whether the worker was waiting for it."""
        # TODO 3: is this a result for which the worker waits? Then it waits no longer.
        self.results.add(chunk)
        return True

    def next_time(self):
        """Returns when `due` has to be called again although no result comes; None for never."""
        return None  # TODO 4: the first time at which a chunk has to be sent again.

    def done(self):
        """Whether every chunk has its result."""
        return len(self.results) == self.chunks
