"""A small network for the check: workers, lossy links, and the switch of lab 05 in Python."""

from random import Random

WORKERS, CHUNKS, SLOTS, TIMEOUT = 3, 12, 2, 20
TRIP, END = 2, 20_000


class Switch:
    """What lab 05 does: for each slot and set, who has come; a repeated packet of a complete chunk
    is answered to its sender."""

    def __init__(self):
        self.tags, self.seen = {}, {}

    def take(self, worker, chunk):
        """Returns the workers that get the result of this chunk now."""
        tag, slot = divmod(chunk, SLOTS)
        cell = slot, tag % 2
        if self.tags.get(cell) != tag:
            self.tags[cell], self.seen[cell] = tag, set()
        if worker in self.seen[cell]:
            return [worker] if len(self.seen[cell]) == WORKERS else []
        self.seen[cell].add(worker)
        return list(range(WORKERS)) if len(self.seen[cell]) == WORKERS else []


def run(recovery, seed, loss):
    """Runs workers until all have every result. Returns how many packets they sent. recovery: the
    class of a worker."""
    chance, switch = Random(seed), Switch()
    workers = [recovery(CHUNKS, SLOTS, TIMEOUT) for _ in range(WORKERS)]
    arrivals, sent, waiting = {}, 0, set(range(WORKERS))
    for now in range(END):
        woken = {worker for worker, _ in arrivals.get(now, ())} | (
            waiting if now % 10 == 0 else set()
        )
        for worker, chunk in arrivals.pop(now, ()):
            workers[worker].received(chunk)
        for worker in sorted(woken):
            for chunk in workers[worker].due(now):
                sent += 1
                if chance.random() >= loss:
                    for receiver in switch.take(worker, chunk):
                        if chance.random() >= loss:
                            arrivals.setdefault(now + TRIP, []).append((receiver, chunk))
            if workers[worker].done():
                waiting.discard(worker)
        if not waiting:
            return sent
    missing = ", ".join(f"h{worker + 1}" for worker in sorted(waiting))
    raise AssertionError(
        f"seed {seed}: after {END} ms, {missing} still had no result of some chunk"
    )
