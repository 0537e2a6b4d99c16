"""Compares predicted and measured bytes on every link.

The system predicts the bytes from the scenario, and from what agents decided in the run if it
depends on that who sends how much. Bytes of retransmissions, which the sending agent or switch
counts, are added to the prediction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agglab.testbed.run.measurements import Measurements
from agglab.testbed.run.outcome import JobResult
from agglab.testbed.scenario import ResolvedScenario, workloads
from agglab.testbed.scenario.workloads import reductions
from agglab.testbed.schema.faults import SwitchReprogram, SwitchRestart
from agglab.testbed.systems.base import ActiveJob, Traffic, Unpredictable

NAMED_MAX = 4
"""The largest number of directions that a text names."""


@dataclass
class Expected:
    """The expected bytes of one direction. predicted: what all rounds send. again_min, again_max:
    the least and the most retransmitted bytes that the direction can have carried."""

    predicted: int = 0
    again_min: int = 0
    again_max: int = 0

    def beyond(self, measured: int) -> int:
        """Returns by how many bytes the measured ones exceed what can be expected. The number is
        negative if bytes are missing, and 0 if they are as expected."""
        more = measured - self.predicted
        return min(0, more - self.again_min) or max(0, more - self.again_max)


def compare(
    resolved: ResolvedScenario,
    measured: Measurements,
    links: dict[str, dict[str, dict[str, Any]]],
) -> tuple[bool | None, str]:
    """Adds `predicted_bytes` to every direction of `links`. Returns whether every direction carried
    exactly the predicted bytes plus those counted as sent again, and a text that names those which
    did not. If that cannot be known, returns None and the reason. If links made copies of packets
    or changed some, or attackers sent some, it is not known why directions carried more, since
    these are forwarded and answered, too."""
    unclear, expected = _unclear(resolved, measured), {}
    if not unclear:
        try:
            expected, unclear = _expected(resolved, measured), _uncounted_end(measured)
        except Unpredictable as error:
            unclear = str(error)
    for ways in links.values():
        for name, way in ways.items():
            way["predicted_bytes"] = None if unclear else expected.get(name, Expected()).predicted
    ways = {name: way for link in links.values() for name, way in link.items()}
    full = next((name for name, way in ways.items() if way["queue_drops"]), None)
    if full and not unclear:
        unclear = f"the queue of {full} was full and dropped frames that were counted as sent"
    if unclear:
        return None, unclear
    beyond = {
        name: more
        for name, way in ways.items()
        if (more := expected.get(name, Expected()).beyond(way["bytes"]))
    }
    if beyond and min(beyond.values()) > 0 and (reason := _uncounted(beyond, ways, measured)):
        return None, reason
    return not beyond, _named(beyond, len(ways)) if beyond else ""


def _named(beyond: Mapping[str, int], ways: int) -> str:
    """Returns which directions carried other bytes than predicted, those that differ most first.
    beyond: by how many bytes each differs. ways: the number of all directions."""
    most_first = sorted(beyond.items(), key=lambda each: (-abs(each[1]), each[0]))
    named = [
        f"{name} {abs(more)} bytes {'more' if more > 0 else 'fewer'} than predicted"
        for name, more in most_first[:NAMED_MAX]
    ]
    others = len(beyond) - NAMED_MAX
    rest = f", and {others} others" if others > 0 else ""
    return f"{len(beyond)} of {ways} directions differ: {', '.join(named)}{rest}"


def _uncounted(
    beyond: Mapping[str, int], ways: Mapping[str, Mapping[str, Any]], measured: Measurements
) -> str:
    """Returns why these directions may have carried more than the agents' frames; empty if there is
    no reason."""
    copies = sum(way["duplicated"] for way in ways.values())
    changed = sum(way["corrupted"] for way in ways.values())
    attacks = sum(measured.outcome.attacked.values())
    found = [f"links made {copies} copies of packets"] if copies else []
    found += [f"links changed bits of {changed} packets"] if changed else []
    found += [f"attackers sent {attacks} frames"] if attacks else []
    if found:
        return f"{' and '.join(found)}, and nobody counts what became of them"
    actions = (fault.action for fault in measured.outcome.begun)
    emptied = {each.switch for each in actions if isinstance(each, SwitchRestart | SwitchReprogram)}
    senders = {name.partition("->")[0] for name in beyond}
    if senders <= emptied:
        named = " and ".join(sorted(senders))
        return f"{named} lost its memory, and does not know which sums it had sent before"
    return ""


def _unclear(resolved: ResolvedScenario, measured: Measurements) -> str:
    """Returns why the expected bytes of the links cannot be known; empty if they can be known."""
    for result in measured.outcome.jobs:
        if result.failure:
            return f"{result.job.name} failed, so its last round sent only part of its bytes"
        if result.restarts:
            return f"{result.job.name} repeated rounds, so part of their bytes was sent twice"
        if unpredictable := workloads.KINDS[result.job.work.kind].unpredictable:
            return unpredictable.format(result.job.name)
    return ""


def _uncounted_end(measured: Measurements) -> str:
    """Returns which agents did not count to the end what they sent: those whose program ended
    early, or that still had packets under way at the end. Empty if there are none."""
    for result in measured.outcome.jobs:
        if result.died_after_rounds:
            agent = result.died_after_rounds[0]
            return f"{agent} ended early, and its last counts are lost with it"
        if not result.settled:
            name = result.job.name
            return f"packets of {name} were still under way when its agents were stopped"
    return ""


def _expected(resolved: ResolvedScenario, measured: Measurements) -> dict[str, Expected]:
    directions: dict[str, Expected] = {}
    for result in measured.outcome.jobs:
        job = as_far_as_it_came(resolved, result)
        traffic, run_bytes = reductions.traffic(resolved, job), Counter[str]()
        for number in range(len(result.rounds)):
            run_bytes.update(traffic.of_round(number))
        histories = [verdict.history for verdict in result.verdicts]
        run_bytes.update(traffic.decided_bytes(histories, counts_of_servers(result)))
        for name, size in run_bytes.items():
            directions.setdefault(name, Expected()).predicted += size
        more = _more(traffic, result, run_bytes)
        for name, again in traffic.retransmitted_bytes(more, measured.counters).items():
            way = directions.setdefault(name, Expected())
            way.again_min += again.least
            way.again_max += again.most
    return directions


def counts_of_servers(result: JobResult) -> Counter[str]:
    """Returns the sums of the counts of all servers of a job over the whole run."""
    counts: Counter[str] = Counter()
    for event in result.served:
        counts.update(event["stats"])
    return counts


def as_far_as_it_came(resolved: ResolvedScenario, result: JobResult) -> ActiveJob:
    """Returns the job with only the rounds that were completed, because the scenario's `end` may
    stop it early."""
    job = resolved.whole(result.job)
    return replace(job, job=replace(job.job, rounds=len(result.rounds)))


def _more(traffic: Traffic, result: JobResult, run_bytes: Mapping[str, int]) -> dict[str, int]:
    """Returns for each host how many bytes more than predicted its agents of the job sent. Only
    bytes that the agents' own counts of retransmissions explain are included."""
    counts = _counts(result)
    more = {host: count["bytes_sent"] for host, count in counts.items()}
    for name, size in run_bytes.items():
        host = name.partition("->")[0]
        if host in more:
            more[host] -= size
    for host, count in counts.items():
        explained = traffic.extra_bytes(host, count)
        more[host] = min(max(more[host], explained.least), explained.most)
    return more


def _counts(result: JobResult) -> dict[str, Counter[str]]:
    """Returns for each host the sums of the counts of its agents of the job over the whole run."""
    hosts, servers = result.job.hosts, result.servers
    counts: dict[str, Counter[str]] = {name: Counter() for name in (*hosts, *servers.values())}
    for event in result.served:
        counts[servers[event["rank"]]].update(event["stats"])
    for event in result.reports:
        counts[hosts[event["rank"]]].update(event["stats"])
    return counts
