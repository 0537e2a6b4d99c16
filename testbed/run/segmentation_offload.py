"""Decides which links of a run carry several datagrams together as one buffer of the kernel, and
why the other links do not.

The decision is made before the run, from the scenario alone, because a buffer must not change what
a scenario asks for. A link carries single frames if each frame has its own fate, its own delay or
its own place in a queue (docs/network.md).
"""

from __future__ import annotations

from agglab.testbed.base.token_bucket import burst_bytes
from agglab.testbed.scenario import ResolvedScenario, workloads
from agglab.topologies import Direction, Link

SEGMENTS, HEADER_BYTES = 64, 42
BUFFER_BYTES = 14 + 65535 + (SEGMENTS - 1) * HEADER_BYTES
"""The size of the longest buffer on the wire, where each of its frames has the headers of Ethernet,
IPv4 and UDP."""


def carrying(resolved: ResolvedScenario) -> frozenset[str]:
    """Returns the names of the links whose frames may cross the kernel many at a time."""
    return frozenset(link.name for link in resolved.graph.links if not single(resolved, link))


def choice(resolved: ResolvedScenario) -> dict[str, list[str]]:
    """Returns the names of links for manifest.json: under each reason for single frames, the links
    to which it applies, and under `carried` the links that carry buffers."""
    found: dict[str, list[str]] = {}
    for link in resolved.graph.links:
        found.setdefault(single(resolved, link) or "carried", []).append(link.name)
    return found


def single(resolved: ResolvedScenario, link: Link) -> str:
    """Returns the reason why the link carries single frames; empty if it may carry buffers."""
    if why := _of_the_run(resolved):
        return why
    frames = _waiting_at_most(resolved)
    ways = (link.a_to_b, link.b_to_a)
    return next((why for way in ways if (why := _of_a_way(way, link.frame_bytes, frames))), "")


def _of_the_run(resolved: ResolvedScenario) -> str:
    if resolved.virtual:
        return "virtual links have no kernel"
    if resolved.target != "native":
        return f"switches of target {resolved.target} take single frames"
    if not resolved.system.sends_datagrams:
        return f"agents of {resolved.system.name} have a transport of their own"
    if any(workloads.KINDS[job.work.kind].unpredictable for job in resolved.jobs):
        return "scripts may open connections of their own"
    if resolved.faults:
        return "faults take effect at a frame"
    if any(not job.window for job in resolved.jobs):
        return "no window bounds what waits in a queue"
    return ""


def _of_a_way(way: Direction, frame_bytes: int, frames: int) -> str:
    if way.impairments:
        return "impairments decide on each frame"
    if way.delay_us:
        return "a delay holds each frame"
    if way.rate_bps is None or burst_bytes(way.rate_bps, frame_bytes) < BUFFER_BYTES:
        return "the token bucket holds less than a buffer"
    if way.queue_bytes is not None and way.queue_bytes < frames * frame_bytes:
        return f"{frames} frames in flight can overflow the queue"
    if way.queue_packets is not None and way.queue_packets < frames:
        return f"{frames} frames in flight can overflow the queue"
    return ""


def _waiting_at_most(resolved: ResolvedScenario) -> int:
    """Returns how many frames can wait in front of one link. This is twice the windows of all
    agents whose packets cross the link: each packet may have been sent again, or be answered by a
    frame in the same direction."""
    many = resolved.system.abilities.has_servers
    return 2 * sum(job.window * (len(job.hosts) if many else 1) for job in resolved.jobs)
