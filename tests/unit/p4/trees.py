"""Trees of switches whose workers walk through their slots, while frames are lost, come twice and
in any order. What each switch took in and sent is kept, so that others can be asked the same."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from conversations import AT_ONCE, Conversation, Step
from frames import opened, worker
from tables import NO_PARENT, Setup, Slots, summing, write_entries

from p4native.switch import Pipeline

UPLINK = 100
"""The port of every switch that leads to its parent."""


class Worker(Protocol):
    """A worker with one packet in flight in each of its slots."""

    def waiting(self) -> Sequence[int]:
        """The slots that still have to be answered."""
        ...

    def frame(self, port: int, slot: int) -> bytes:
        """What it sends from a slot."""
        ...

    def take(self, payload: bytes) -> int | None:
        """The slot in which something new follows an answer."""
        ...


@dataclass
class Node:
    """A switch: children by port, each a Node or a worker's number."""

    pipeline: Pipeline
    children: dict[int, Node | int] = field(default_factory=dict)
    parent: tuple[Node, int] | None = None
    steps: list[Step] = field(default_factory=list)

    def process(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        out = self.pipeline.process(port, frame)
        self.steps.append(Step(port, frame, tuple(out)))
        return out


@dataclass
class Tree:
    """Switches, the root first, and the (switch, port) of each worker."""

    load: Callable[[], Pipeline]
    nodes: list[Node] = field(default_factory=list)
    places: list[tuple[Node, int]] = field(default_factory=list)
    up: int = 0
    """Frames that went to a parent."""

    def grow(self, shape: list) -> Node:
        """[2, [1, 3]]: a switch with two workers and a switch below it that has four in two."""
        node = Node(self.load())
        self.nodes.append(node)
        for part in shape:
            for _ in range(1 if isinstance(part, list) else part):
                port = len(node.children) + 1
                if isinstance(part, list):
                    child = self.grow(part)
                    child.parent = (node, port)
                    node.children[port] = child
                else:
                    node.children[port] = len(self.places)
                    self.places.append((node, port))
        return node

    def run(self, workers: Sequence[Worker], chance: random.Random, mishap: float) -> None:
        """Until no worker waits. mishap: how likely a frame is lost, and comes twice, and is
        overtaken; without any they come in order. Asserts that a million steps suffice."""
        flying = [
            (*place, who.frame(place[1], slot))
            for place, who in zip(self.places, workers, strict=True)
            for slot in who.waiting()
        ]
        for _ in range(10**6):
            waiting = [(n, slot) for n, who in enumerate(workers) for slot in who.waiting()]
            if not waiting:
                return
            if not flying or chance.random() < mishap / 2:  # a timer
                number, slot = chance.choice(waiting)
                place = self.places[number]
                flying.append((*place, workers[number].frame(place[1], slot)))
            index = chance.randrange(len(flying)) if mishap else 0
            node, port, frame = flying[index]
            if chance.random() >= mishap:  # otherwise it is delivered twice
                flying.pop(index)
            if chance.random() >= mishap:  # otherwise it is lost
                for egress, out in node.process(port, frame):
                    flying += self._arrive(node, egress, out, workers)
        raise AssertionError("a million steps did not suffice")

    def _arrive(
        self, node: Node, egress: int, out: bytes, workers: Sequence[Worker]
    ) -> list[tuple[Node, int, bytes]]:
        """What flies on when a switch has sent this."""
        if egress == UPLINK:
            assert node.parent
            self.up += 1
            return [(*node.parent, out)]
        child = node.children[egress]
        if isinstance(child, Node):
            return [(child, UPLINK, out)]
        to, payload = opened(out)
        assert to == worker(egress, to.udp_port - 48865)
        slot = workers[child].take(payload)
        place = self.places[child]
        return [] if slot is None else [(*place, workers[child].frame(place[1], slot))]


def place_of(node: Node, job: int, index: int, slots: int, group: int) -> Setup:
    """What a program that sums in slots is given at this switch."""
    below = frozenset(port for port, child in node.children.items() if isinstance(child, Node))
    parent = UPLINK if node.parent else NO_PARENT
    return summing(Slots(job, index, tuple(node.children), 0, slots, group, parent, below))


def planted(load: Callable[[], Pipeline], shape: list, setup: Callable[[Node], Setup]) -> Tree:
    """A tree of this shape, each of whose switches has what setup(node) says."""
    tree = Tree(load)
    tree.grow(shape)
    for node in tree.nodes:
        write_entries(node.pipeline, setup(node))
    return tree


def kept(
    tree: Tree,
    setup: Callable[[Node], Setup],
    workers: Sequence[Worker],
    chance: random.Random,
    at_once: int = AT_ONCE,
) -> list[Conversation]:
    """What was asked of each switch, and what it said, while some of all went wrong."""
    tree.run(workers, chance, mishap=0.15)
    return [Conversation(setup(node), node.steps, at_once=at_once) for node in tree.nodes]
