"""Endpoints that speak to each other, over a network in virtual time that loses, repeats, reorders
and delays by chance, as a driver moves their datagrams; tensors for them, and what came of them."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from switch_model import Faults

from agglab.hosts.endpoint import Inbox
from agglab.hosts.recovery import Timing

MS = 1_000_000
NEVER = 2**63 - 1
HEADERS_BYTES = 42
TIMING = Timing(initial_rto_ns=20 * MS, min_rto_ns=5 * MS, max_rto_ns=200 * MS, slack_ns=2 * MS)


@dataclass
class Node:
    """An endpoint at an address. A worker has the tensors that it reduces, one after the other."""

    address: tuple[str, int]
    endpoint: object
    tensors: list = field(default_factory=list)
    starts_ns: int = 0
    in_place: bool = False

    def __post_init__(self):
        self.results, self.error, self.dead = [], None, False
        self.deadline_ns = self.starts_ns
        self.sent, self.free_ns = [], 0
        self.ended_ns = []

    @property
    def finished(self):
        began = len(self.results) == len(self.tensors)
        return self.error is not None or self.dead or (began and self.endpoint.done)

    def begin_next(self, now_ns):
        while self.endpoint.done and len(self.results) < len(self.tensors):
            if now_ns < self.starts_ns:
                return
            tensor = self.tensors[len(self.results)]
            out = tensor.copy() if self.in_place else np.full_like(tensor, 77)
            values = out if self.in_place else tensor
            self.results.append(out)
            self.endpoint.begin(now_ns, values, out, None)

    def poll(self, now_ns):
        """(address, payload) of what to send now, and it never was told to send a row twice."""
        before = self.endpoint.done
        rows = self.endpoint.poll(now_ns).tolist()
        assert len(set(rows)) == len(rows)
        if self.endpoint.done and not before:
            self.ended_ns.append(now_ns)
        self.deadline_ns = self.endpoint.deadline_ns
        outbox = self.endpoint.outbox
        return [(self.endpoint.peers[outbox.peer(row)], outbox.datagram(row)) for row in rows]


class FlowNetwork:
    """`rate_bps`: of the link from each node, where packets queue; none: links of no length."""

    def __init__(self, nodes, faults=Faults(), seed=0, rate_bps=None, gather_ns=0):
        self.nodes = {node.address: node for node in nodes}
        self.faults, self.random, self.rate_bps = faults, random.Random(seed), rate_bps
        self.gather_ns = gather_ns
        self.now_ns, self.counts = 0, Counter()
        self._events, self._number = [], 0
        self.tap = lambda source, target, payload: payload
        """May change what is sent, or return None."""

    def send(self, source, target, payload):
        node, faults, chance = self.nodes[source], self.faults, self.random.random
        size, payload = len(payload), self.tap(source, target, payload)
        leaves_ns = self.now_ns
        if self.rate_bps:
            node.free_ns = max(node.free_ns, self.now_ns)
            node.free_ns += round((size + HEADERS_BYTES) * 8e9 / self.rate_bps)
            leaves_ns = node.free_ns
        if payload is None or chance() < faults.loss:
            self.counts["lost"] += 1
            return
        for _ in range(2 if chance() < faults.duplicate else 1):
            delay_ns = faults.delay_ns + self.random.randrange(faults.jitter_ns + 1)
            if chance() < faults.reorder:
                delay_ns += self.random.randrange(faults.extra_ns + 1)
            self.put(leaves_ns + delay_ns, source, target, payload)

    def put(self, at_ns, source, target, payload):
        self._number += 1
        heapq.heappush(self._events, (at_ns, self._number, source, target, payload))

    def next_ns(self):
        return self._events[0][0] if self._events else NEVER

    def run(self, limit_ns=60_000 * MS):
        """Until every worker has every result, or an error."""
        while not all(node.finished for node in self.nodes.values()):
            self.step(limit_ns)

    def settle(self, for_ns):
        """Let time pass."""
        end_ns = self.now_ns + for_ns
        while min(self.next_ns(), self._due_ns()) <= end_ns:
            self.step(end_ns)

    def _due_ns(self):
        return min(node.deadline_ns for node in self.nodes.values() if not node.dead)

    def step(self, limit_ns):
        due_ns, arrived = self._due_ns(), {}
        self.now_ns = max(self.now_ns, min(due_ns, self.next_ns()))
        assert self.now_ns <= limit_ns, "not finished in time"
        while self.next_ns() <= self.now_ns + self.gather_ns:
            at_ns, _, source, target, payload = heapq.heappop(self._events)
            self.now_ns = max(self.now_ns, at_ns)
            arrived.setdefault(target, []).append((source, payload))
        for address, node in self.nodes.items():
            if address in arrived or node.deadline_ns <= self.now_ns:
                self.serve(node, arrived.get(address, []))

    def serve(self, node, datagrams):
        """What a driver does when datagrams came or time is up."""
        node.deadline_ns = NEVER
        if node.dead or (node.error is not None and not node.endpoint.listens):
            return
        deliver(node.endpoint, self.now_ns, datagrams)
        try:
            self._poll(node)
            if node.endpoint.done and len(node.results) < len(node.tensors):
                node.begin_next(self.now_ns)
                if self.now_ns < node.starts_ns:
                    node.deadline_ns = min(node.deadline_ns, node.starts_ns)
                else:
                    self._poll(node)
        except Exception as error:
            node.error, node.failed_ns = error, self.now_ns
            node.deadline_ns = self.now_ns if node.endpoint.listens else NEVER

    def _poll(self, node):
        for target, payload in node.poll(self.now_ns):
            node.sent.append(payload)
            self.send(node.address, target, payload)


def deliver(endpoint, now_ns, datagrams):
    """(address, payload) of each; anybody else's is thrown away, as drivers do."""
    peers = list(endpoint.peers)
    known = [(peers.index(source), payload) for source, payload in datagrams if source in peers]
    if not known:
        return 0
    inbox = Inbox(len(known), endpoint.longest_bytes)
    inbox.fill([payload for _, payload in known], [peer for peer, _ in known])
    return endpoint.on_datagrams(now_ns, inbox)


def tensors_of(seed, workers, sizes, dtype):
    """For each rank a tensor of each size, with all the bits that a dtype can have."""
    generator = np.random.default_rng(seed)
    if dtype == "int32":
        make = lambda size: generator.integers(-(2**31), 2**31, size, np.int32)  # noqa: E731
    else:
        make = lambda size: (  # noqa: E731
            generator.standard_normal(size) * np.exp2(generator.integers(-140, 100, size))
        ).astype(np.float32)
    return [[make(size) for size in sizes] for _ in range(workers)]


def check_sums(workers, expected):
    """Every round of every worker, bit for bit. expected: the sum of one array from each rank."""
    for node in workers:
        assert node.error is None, node.error
        node.endpoint.finish()
    for round in range(len(workers[0].tensors)):
        wanted = expected([node.tensors[round] for node in workers])
        for node in workers:
            assert node.results[round].tobytes() == wanted.tobytes()
