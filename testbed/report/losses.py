"""Lists where packets were lost, and why: a row for each place that lost any."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Metrics = Mapping[str, Any]
DROPPING = ("loss", "gilbert_elliott", "periodic", "drop_list")
"""The kinds of impairments that drop a link's packets."""
IN_SWITCHES = {
    "ring_drops": "lost before the switch's program received it",
    "queue_drops": "lost in the switch's own queues",
    "port_errors": "truncated, too long for its port, or sent to a port that was down",
}


@dataclass(frozen=True)
class Loss:
    """The packets that were lost at one place for one reason. where: a direction (`h1->s1`), a
    switch or a worker. of: how many packets passed this place; None if that is not counted."""

    where: str
    packets: int
    of: int | None
    why: str


def losses(metrics: Metrics) -> list[Loss]:
    """Returns the losses, with the largest first."""
    found = [*_on_links(metrics), *_in_switches(metrics), *_at_hosts(metrics)]
    return sorted((loss for loss in found if loss.packets), key=lambda loss: -loss.packets)


def _on_links(metrics: Metrics) -> Iterator[Loss]:
    for ways in metrics["links"].values():
        for name, way in ways.items():
            seen = way["seen"]
            if way["dropped"]:
                purpose = f"dropped on purpose: {_asked_drops(way)}"
                yield Loss(name, way["dropped"], seen, purpose)
            yield Loss(
                name,
                way["queue_drops"],
                way.get("packets", seen) + way["queue_drops"],
                f"its queue ({_queue(way)}) was full",
            )
            yield Loss(name, way.get("lost_down", 0), seen, "a fault had taken the link down")
            yield Loss(
                name,
                way.get("corrupted", 0),
                seen,
                "a fault inverted a bit, so the checksum was wrong and the packet was refused",
            )


def _queue(way: Metrics) -> str:
    """Returns the size of the queue in front of a direction."""
    if way.get("queue_bytes"):
        return f"{way['queue_bytes']:,} bytes"
    return f"{way['queue_packets']} packets" if way.get("queue_packets") else "size not known"


def _asked_drops(way: Metrics) -> str:
    """Returns what the scenario does to drop packets of this direction."""
    drops = [each for each in way.get("impairments", ()) if each["kind"] in DROPPING]
    named = (f"{each['kind']} {each.get('probability', '')}".strip() for each in drops)
    return ", ".join(dict.fromkeys(named)) or "a fault"


def _in_switches(metrics: Metrics) -> Iterator[Loss]:
    for name, switch in metrics["switches"].items():
        for key, place in IN_SWITCHES.items():
            yield Loss(name, switch.get(key, 0), None, place)


def _at_hosts(metrics: Metrics) -> Iterator[Loss]:
    for job, own in metrics["jobs"].items():
        for role in ("workers", "servers"):
            for rank, agent in own.get(role, {}).items():
                name = f"{role[:-1]} {rank}" + (f" of {job}" if len(metrics["jobs"]) > 1 else "")
                why = "the socket's buffer was full, because the program was too slow"
                yield Loss(name, agent.get("kernel_drops", 0), agent.get("received"), why)
