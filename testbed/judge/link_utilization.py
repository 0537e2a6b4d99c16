"""Computes which share of its rate the busiest link used in the rounds. The share says how much of
the rounds' time is due to the network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agglab.testbed.base.token_bucket import burst_bytes
from agglab.testbed.run.outcome import Outcome
from agglab.testbed.schema.faults import Fault, RateChange
from agglab.topologies import Topology

NS_PER_S = 1e9
Spans = Sequence[tuple[int, int]]


def busiest_share(graph: Topology, outcome: Outcome, token_bucket: bool) -> float:
    """Returns the highest share among all directions that have a rate, from 0 to 1.

    token_bucket: whether links have a token bucket. A full bucket lets as many bytes through at
    once as it holds. On a link without one, a frame may be in transmission when a period begins.
    """
    carried = _carried(outcome)
    own, heard = _rounds(outcome), [(span.begin_ns, span.end_ns) for span in outcome.spans]
    shares = [
        _share(carried[name], _rate_bps(name, way.rate_bps, outcome.begun), burst, (own, heard))
        for link in graph.links
        for name, _, _, way in link.directions()
        if way.rate_bps
        for depth in [burst_bytes(way.rate_bps, link.frame_bytes)]
        for burst in [depth if token_bucket else link.frame_bytes]
    ]
    return max(shares, default=0.0)


def _share(carried: int, rate_bps: int, burst: int, rounds: Sequence[Spans]) -> float:
    """Returns the carried bytes as a share of the bytes that could cross in the rounds. rounds: the
    rounds' periods by the workers' own times, and those until the testbed learned of the ends.

    If more bytes crossed than could by the workers' times, some of them waited in the queue when
    the rounds ended, and crossed before the testbed learned of the end. In that case, the time
    until the testbed learned of the end counts as well."""
    for spans in rounds:
        capacity = _capacity_bytes(rate_bps, burst, spans)
        if capacity and carried <= capacity:
            return carried / capacity
    assert not carried, "a link carried more than its rate"
    return 0.0


def _carried(outcome: Outcome) -> Counter[str]:
    """Returns the bytes that each direction carried in all rounds."""
    carried: Counter[str] = Counter()
    for span in outcome.spans:
        carried.update(span.carried)
    return carried


def _rate_bps(direction: str, own_bps: int, begun: Sequence[Fault]) -> int:
    """Returns the highest rate that the direction had during the run. own_bps: its rate without
    faults. begun: the faults that began."""
    changes = [f.action for f in begun if isinstance(f.action, RateChange)]
    return max([own_bps, *(c.rate_bps for c in changes if direction in c.directions)])


def _capacity_bytes(rate_bps: int, burst: int, spans: Spans) -> float:
    """Returns how many bytes a link can carry in these periods. Each period may begin with a full
    token bucket."""
    seconds = sum(end - start for start, end in spans) / NS_PER_S
    return rate_bps * seconds / 8 + len(spans) * burst


def _rounds(outcome: Outcome) -> Spans:
    """Returns the periods in which at least one job was in a round, by the workers' own times.
    Returns no periods if rounds were aborted, because workers do not report when such rounds
    end."""
    if any(result.restarts or result.failure for result in outcome.jobs):
        return []
    spans = sorted(
        (min(e["start_ns"] for e in ended), max(e["end_ns"] for e in ended))
        for result in outcome.jobs
        for done in result.rounds
        if (ended := list(done.ended.values()))
    )
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and start <= joined[-1][1]:
            before = joined.pop()
            start, end = before[0], max(end, before[1])
        joined.append((start, end))
    return joined
