"""Determines which impairments a direction has in a run. Each impairment has a key for its random
numbers, and a fault may switch it on and off.

The same list is used by both ways to apply impairments: eBPF (`impaired.py`) and the ports of
switches.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from agglab.testbed.real.links import DELAYS
from agglab.testbed.run.impairments import direction_key, threshold
from agglab.testbed.schema.faults import Fault, Impair, LinkDown
from agglab.topologies import Direction, Drop, Impairment, Link, LinkEnd


@dataclass(frozen=True)
class Rule:
    """One impairment of a direction. key: the key of its random numbers. fault: the number of the
    fault that switches it on and off; None if it is always on."""

    impairment: Impairment
    key: int
    fault: int | None = None


@dataclass(frozen=True)
class PortDrop:
    """A loss that the native switch makes at a port if there is no eBPF. It drops frames that
    arrive at the port. If `outgoing` is set, it drops frames to be sent from the port, before they
    are queued."""

    switch: str
    port: int
    outgoing: bool
    key: int
    threshold: int

    @property
    def words(self) -> tuple[str, str]:
        """The options for the switch's command line (toolchain/docs/p4runtime.md)."""
        way = "out" if self.outgoing else "in"
        return "--drop", f"{self.port}:{way}:{self.key:x}:{self.threshold:x}"

    @property
    def statistics(self) -> str:
        """The key under which the switch's statistics count this loss."""
        return "drop_out" if self.outgoing else "drop_in"


@dataclass(frozen=True)
class DirectionRules:
    """Everything that can happen to the frames of a direction where they arrive. downs: the numbers
    of the faults that take the direction's link down."""

    link: str
    direction: str
    rules: tuple[Rule, ...]
    downs: tuple[int, ...]

    @property
    def only_loss(self) -> bool:
        """Whether all rules are constant Bernoulli loss, which a switch can make at its ports."""
        return not self.faults and all(isinstance(rule.impairment, Drop) for rule in self.rules)

    def at_port(self, sender: LinkEnd, receiver: LinkEnd, switches: Container[str]) -> PortDrop:
        """Returns the direction's only rule as a drop at a port of a switch. This is the switch
        where the frames arrive or, if they arrive at a host, the one that sends them."""
        (rule,) = self.rules
        assert isinstance(rule.impairment, Drop)
        end = receiver if receiver.node in switches else sender
        limit = threshold(rule.impairment.probability)
        return PortDrop(end.node, end.port, end is sender, rule.key, limit)

    @property
    def faults(self) -> tuple[int, ...]:
        """The numbers of all faults that concern the direction, in the order of their bits."""
        own = (rule.fault for rule in self.rules if rule.fault is not None)
        return (*own, *self.downs)


def direction_rules(
    link: Link, direction: str, settings: Direction, seed: int, faults: Sequence[Fault]
) -> DirectionRules:
    """Returns a direction's constant impairments in their order, and then those of faults by
    number. Delays are left out, because netem makes them where frames are sent."""
    rules = (*_constant(link, direction, settings, seed), *_begun(link, direction, seed, faults))
    downs = (
        fault.number
        for fault in faults
        if isinstance(fault.action, LinkDown) and fault.action.link == link.name
    )
    return DirectionRules(link.name, direction, rules, tuple(downs))


def _constant(link: Link, direction: str, settings: Direction, seed: int) -> Iterator[Rule]:
    for n, impairment in enumerate(settings.impairments):
        part = str(n) if n else ""
        if not isinstance(impairment, DELAYS):
            yield Rule(impairment, direction_key(seed, link.name, direction, part))


def _begun(link: Link, direction: str, seed: int, faults: Sequence[Fault]) -> Iterator[Rule]:
    for fault in faults:
        action = fault.action
        if (
            isinstance(action, Impair)
            and not isinstance(action.impairment, DELAYS)
            and action.link == link.name
            and direction in action.directions
        ):
            key = direction_key(seed, link.name, direction, f"fault{fault.number}")
            yield Rule(action.impairment, key, fault.number)
