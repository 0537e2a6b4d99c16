"""p4/switchml.p4 in trees of switches: partial sums up, final sums down, whatever goes wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aggregation_model import INT32, OPENING, RESULT, Contribution
from frames import contribution, result, worker_address, worker_mac
from tables import NO_PARENT, Slots, install, summing

from agglab.switch import Pipeline

LANES, SLOTS, JOB, UPLINK = 5, 4, 3, 100
GROUP = 9


@dataclass
class Node:
    """A switch: children by port, each a Node or a worker's number."""

    children: dict[int, Node | int]
    pipeline: Pipeline
    parent: tuple[Node, int] | None = None


def program(node: Node) -> None:
    below = frozenset(port for port, child in node.children.items() if isinstance(child, Node))
    parent = UPLINK if node.parent else NO_PARENT
    install(
        node.pipeline, summing(Slots(JOB, 0, (*node.children,), 0, SLOTS, GROUP, parent, below))
    )


@dataclass
class Tree:
    """A tree of switches and its workers, each at (switch, port)."""

    load: Callable[[], Pipeline]
    workers: list[tuple[Node, int]] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)

    def grow(self, shape: list) -> Node:
        """[2, [1, 3]]: a switch with two workers and a switch below it that has four in two."""
        node = Node({}, self.load())
        self.nodes.append(node)
        for part in shape:
            if isinstance(part, list):
                child = self.grow(part)
                port = len(node.children) + 1
                node.children[port] = child
                child.parent = (node, port)
            else:
                for _ in range(part):
                    port = len(node.children) + 1
                    node.children[port] = len(self.workers)
                    self.workers.append((node, port))
        return node


@pytest.fixture
def tree(compiled: Callable[[int], Path]) -> Callable[[list], Tree]:
    def build(shape: list) -> Tree:
        tree = Tree(lambda: Pipeline.load(compiled(LANES)))
        tree.grow(shape)
        for node in tree.nodes:
            program(node)
        return tree

    return build


def value(worker: int, slot: int, tag: int) -> tuple[int, ...]:
    return tuple((0x9E3779B9 * (worker + 2) + slot * 977 + tag * 31 + i) % 2**32 for i in range(5))


def packet(worker: int, slot: int, tag: int) -> Contribution:
    """Every third chunk is an opening; largest exponent and both shapes are other workers' each
    time."""
    exponent = (worker * 53 + tag * 29) % 256
    if tag % 3 == 0:
        shape = (worker * 53 + tag * 29 + slot) % 256 << 120 | worker
        return Contribution(JOB, slot, tag, OPENING, exponent, shapes=(shape, shape))
    return Contribution(JOB, slot, tag, INT32, exponent, value(worker, slot, tag))


def expected(workers: int, slot: int, tag: int) -> Contribution:
    parts = [packet(worker, slot, tag) for worker in range(workers)]
    sums = tuple(sum(v) % 2**32 for v in zip(*(p.values for p in parts), strict=True))
    exponent = max(p.exponent for p in parts)
    shapes = [shape for p in parts for shape in p.shapes]
    ends = (min(shapes), max(shapes)) if shapes else ()
    return Contribution(JOB, slot, tag, parts[0].kind | RESULT, exponent, sums, ends)


@dataclass
class Run:
    """Workers with one chunk in flight a slot; frames in flight are delivered in any order."""

    tree: Tree
    rng: random.Random
    chunks: int
    mishap: float
    flying: list[tuple[Node, int, bytes]] = field(default_factory=list)
    up: int = 0

    def __post_init__(self) -> None:
        self.tags = [[1] * SLOTS for _ in self.tree.workers]
        for worker in range(len(self.tags)):
            for slot in range(SLOTS):
                self.send(worker, slot)

    def send(self, worker: int, slot: int) -> None:
        node, port = self.tree.workers[worker]
        frame = contribution(port, packet(worker, slot, self.tags[worker][slot]))
        self.flying.append((node, port, frame))

    def unfinished(self) -> list[tuple[int, int]]:
        return [
            (worker, slot)
            for worker, tags in enumerate(self.tags)
            for slot, tag in enumerate(tags)
            if tag <= self.chunks
        ]

    def step(self) -> None:
        if not self.flying or self.rng.random() < self.mishap / 2:
            self.send(*self.rng.choice(self.unfinished()))  # a timer
        index = self.rng.randrange(len(self.flying)) if self.mishap else 0
        node, port, frame = self.flying[index]
        if self.rng.random() >= self.mishap:  # otherwise it is delivered twice
            self.flying.pop(index)
        if self.rng.random() < self.mishap:
            return  # lost
        for egress, out in node.pipeline.process(port, frame):
            self.arrive(node, egress, out)

    def arrive(self, node: Node, egress: int, out: bytes) -> None:
        if egress == UPLINK:
            assert node.parent
            self.up += 1
            self.flying.append((*node.parent, out))
            return
        child = node.children[egress]
        if isinstance(child, Node):
            self.flying.append((child, UPLINK, out))
            return
        got = result(out)
        assert (got.mac, got.address) == (worker_mac(egress), worker_address(egress))
        slot, tag = got.packet.slot, got.packet.tag
        assert got.packet == expected(len(self.tags), slot, tag)
        if self.tags[child][slot] == tag:
            self.tags[child][slot] += 1
            if tag < self.chunks:
                self.send(child, slot)


SHAPES = [[3], [[2], [2]], [1, [2]], [[1, [2]], [[1], [1]]], [[1]]]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_without_mishap_each_uplink_carries_a_chunk_once(
    tree: Callable[[list], Tree], shape: list
) -> None:
    run = Run(tree(shape), random.Random(1), chunks=9, mishap=0.0)
    for _ in range(10**6):
        if not run.unfinished():
            break
        run.step()
    assert not run.unfinished()
    uplinks = len(run.tree.nodes) - 1
    assert run.up == uplinks * 9 * SLOTS


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_loss_duplication_and_any_order_leave_sums_exact(
    tree: Callable[[list], Tree], shape: list, seed: int
) -> None:
    run = Run(tree(shape), random.Random(seed), chunks=20, mishap=0.15)
    for _ in range(10**6):
        if not run.unfinished():
            break
        run.step()
    assert not run.unfinished()


def test_a_final_sum_nobody_asked_for_is_dropped(tree: Callable[[list], Tree]) -> None:
    """From the parent's port, but before this switch's own part is complete, or of another kind."""
    rack = tree([[2]]).nodes[1]
    forged = Contribution(JOB, 0, 1, INT32 | RESULT, 0, value(0, 0, 1))
    assert rack.pipeline.process(UPLINK, contribution(9, forged)) == []
    rack.pipeline.process(1, contribution(1, packet(0, 0, 1)))
    assert rack.pipeline.process(UPLINK, contribution(9, forged)) == []
    [(port, _)] = rack.pipeline.process(2, contribution(2, packet(1, 0, 1)))
    assert port == UPLINK
    other = Contribution(JOB, 0, 1, OPENING | RESULT, 0, shapes=(1, 1))
    assert rack.pipeline.process(UPLINK, contribution(9, other)) == []
    upward = Contribution(JOB, 0, 1, INT32, 0, value(0, 0, 1))
    assert rack.pipeline.process(UPLINK, contribution(9, upward)) == []
    counters = "SwitchmlIngress.aggregation."
    assert rack.pipeline.counter_read(counters + "final_unneeded", 0)[0] == 3
    assert rack.pipeline.counter_read(counters + "contribution_refused", 0)[0] == 1
    assert len(rack.pipeline.process(UPLINK, contribution(9, forged))) == 2


def test_a_child_cannot_conclude(tree: Callable[[list], Tree]) -> None:
    rack = tree([[2]]).nodes[1]
    for rank in (0, 1):
        rack.pipeline.process(rank + 1, contribution(rank + 1, packet(rank, 0, 1)))
    forged = Contribution(JOB, 0, 1, INT32 | RESULT, 0, value(0, 0, 1))
    assert rack.pipeline.process(1, contribution(1, forged)) == []
    assert rack.pipeline.counter_read("SwitchmlIngress.aggregation.contribution_refused", 0)[0] == 1


def test_the_first_child_alone_makes_a_switch_ask_again(tree: Callable[[list], Tree]) -> None:
    rack = tree([[3]]).nodes[1]
    frames = [contribution(rank + 1, packet(rank, 0, 1)) for rank in range(3)]
    [partial] = [out for port in (1, 2, 3) for out in rack.pipeline.process(port, frames[port - 1])]
    assert partial[0] == UPLINK
    assert rack.pipeline.process(2, frames[1]) == rack.pipeline.process(3, frames[2]) == []
    assert rack.pipeline.process(1, frames[0]) == [partial]
    counters = "SwitchmlIngress.aggregation."
    assert rack.pipeline.counter_read(counters + "partial_repeated", 0)[0] == 1
    assert rack.pipeline.counter_read(counters + "contribution_duplicate", 0)[0] == 3
    final = Contribution(JOB, 0, 1, INT32 | RESULT, 0, value(0, 0, 1))
    assert len(rack.pipeline.process(UPLINK, contribution(9, final))) == 3
    assert [port for port, _ in rack.pipeline.process(3, frames[2])] == [3]


def test_a_final_sum_is_handed_down_once(tree: Callable[[list], Tree]) -> None:
    rack = tree([[2]]).nodes[1]
    for rank in (0, 1):
        rack.pipeline.process(rank + 1, contribution(rank + 1, packet(rank, 0, 1)))
    final = contribution(9, Contribution(JOB, 0, 1, INT32 | RESULT, 0, value(0, 0, 1)))
    assert len(rack.pipeline.process(UPLINK, final)) == 2
    assert rack.pipeline.process(UPLINK, final) == []
    counters = "SwitchmlIngress.aggregation."
    assert rack.pipeline.counter_read(counters + "final_new", 0)[0] == 1
    assert rack.pipeline.counter_read(counters + "final_unneeded", 0)[0] == 1
