"""What a network may do to endpoints, by chance, and what any endpoint has to say to it: shared by
the tests of each system's workers and servers."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

from flow_network import MS, NEVER, deliver
from hypothesis import strategies as st
from switch_model import Faults

SLOW_NS = 600_000 * MS
"""One packet in flight and a third of all lost is slow: a chunk takes half a second."""


@dataclass(frozen=True)
class Mishaps:
    """Chances for each packet, by how much at most a packet comes later, what comes in one batch,
    and how much later than the one before each worker begins."""

    loss: float
    duplicate: float
    reorder: float
    extra_ms: int
    gather_ms: int
    skew_ms: int

    @property
    def none(self):
        return not (self.loss or self.duplicate or self.reorder or self.skew_ms)

    @property
    def faults(self):
        jitter_ns = MS // 3 if self.reorder else 0
        return Faults(self.loss, self.duplicate, self.reorder, MS, jitter_ns, self.extra_ms * MS)

    @property
    def gather_ns(self):
        return self.gather_ms * MS

    def stagger(self, workers):
        for rank, worker in enumerate(workers):
            worker.starts_ns = worker.deadline_ns = rank * self.skew_ms * MS


any_mishaps = st.builds(
    Mishaps,
    loss=st.sampled_from([0, 0.01, 0.1, 0.3]),
    duplicate=st.sampled_from([0, 0.3]),
    reorder=st.sampled_from([0, 0.3]),
    extra_ms=st.sampled_from([5, 300]),
    gather_ms=st.sampled_from([0, 1]),
    skew_ms=st.sampled_from([0, 40]),
)


def count_losses(network, kind_of):
    """A counter, filled while the network runs, of what is lost by kind; kind_of(payload)."""
    lost, send = Counter(), network.send

    def counted(source, target, payload):
        before = network.counts["lost"]
        send(source, target, payload)
        lost[kind_of(payload)] += network.counts["lost"] - before

    network.send = counted
    return lost


def forge_start(chance, data, kind, known, more_cuts=()):
    """Change a field of what headers between hosts begin with (hosts/shared.py), in place.
    known: all versions and kinds; more_cuts: lengths that no packet of the system has. Returns
    False for a kind of forgery that is not one of these."""
    if kind in ("version", "kind"):
        at = ("version", "kind").index(kind)
        data[at] = chance.choice([value for value in range(256) if value not in known])
    elif kind in ("job", "session"):
        data[2 if kind == "job" else chance.randrange(4, 8)] ^= chance.randrange(1, 256)
    elif kind == "round":
        data[12] ^= chance.randrange(1, 256)
    elif kind == "length":
        cut = chance.choice([0, 1, 11, 23, 25, 27, len(data) - 1, len(data) + 4, *more_cuts])
        data[:] = (data + bytes(8))[:cut]
    else:
        return False
    return True


def refuse_all(network, nodes, forged, frozen, seed, count=100):
    """Each of the nodes gets so many datagrams that nobody can have sent, which forged(chance,
    payload) makes of what somebody has: frozen(endpoint) stays, and one counter says so."""
    chance = random.Random(seed)
    seen = [payload for node in nodes for payload in node.sent]
    for endpoint in [node.endpoint for node in nodes]:
        for _ in range(count):
            before, counted = frozen(endpoint), endpoint.counters
            fake = forged(chance, chance.choice(seen))
            source = chance.choice(endpoint.peers)
            assert deliver(endpoint, network.now_ns, [(source, fake)]) == 0
            assert frozen(endpoint) == before
            after = endpoint.counters
            refused = sum(after[name] - counted[name] for name in ("malformed", "late"))
            assert refused == 1 == after["received"] - counted["received"]


def fall_silent(network):
    """Nobody sends anything any more."""
    network.settle(1000 * MS)
    assert network.next_ns() == NEVER, "they fall silent"
