"""Writes series.csv: the samples of a Record as a tidy table, with one number in each row.

    time_ns,kind,name,metric,value

time_ns is counted from the moment at which all agents were ready. From this moment the scenario's
times count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.part import WORKER
from agglab.hosts.recording import COUNTED
from agglab.testbed.base.worker_id import WorkerId
from agglab.testbed.results.files import read_rows
from agglab.testbed.run.samples import AGENT, COUNTER, LINK, SWITCH, Record
from agglab.testbed.schema.series_metrics import PROGRAM
from agglab.topologies import Topology

NAME = "series.csv"
COLUMNS = ("time_ns", "kind", "name", "metric", "value")
BITS, NS_PER_S = 8, 1e9

Numbers = NDArray[np.float64]
Ints = NDArray[np.int64]
NO_ROWS: Ints = np.zeros(0, np.int64)
Thing = TypeVar("Thing")
Compute = Callable[[Mapping[str, Ints]], Mapping[str, Numbers]]
"""Computes metrics from columns. The last axis of each array are the moments."""


class Series(NamedTuple):
    """The values of one metric over time, for one worker, link, switch or job. times_ns: ascending.
    values: one for each time; NaN if there is none."""

    kind: str
    name: str
    metric: str
    times_ns: Ints
    values: Numbers


def table(record: Record, graph: Topology, jobs: Mapping[int, str], start_ns: int) -> list[Series]:
    """Returns all series of a run. jobs: the names of jobs by number. start_ns: the moment from
    which the scenario's times count; earlier samples are left out."""
    agents = {worker: _joined(runs) for worker, runs in record.workers.items()}
    found = [*_workers(agents, jobs, start_ns), *_links(record, start_ns)]
    found += _switches(record, graph, start_ns)
    found += _jobs(agents, jobs, start_ns, record.every_ns)
    return found


class Sample(NamedTuple):
    """One number of a series.csv: a row."""

    time_ns: int
    kind: str
    name: str
    metric: str
    value: float


def recorded(folder: Path) -> Iterator[Sample]:
    """Yields the numbers of a result folder's series.csv; none if there is no such file."""
    for time_ns, kind, name, metric, value in read_rows(folder / NAME, COLUMNS):
        try:
            sample = Sample(int(time_ns), kind, name, metric, float(value))
        except ValueError:
            continue
        if isfinite(sample.value):
            yield sample


def lines(series: Iterable[Series]) -> Iterator[str]:
    """Yields the lines of series.csv."""
    yield ",".join(COLUMNS)
    for one in series:
        head = f"{one.kind},{one.name},{one.metric}"
        for time_ns, value in zip(one.times_ns.tolist(), one.values.tolist(), strict=True):
            if value == value:
                yield f"{time_ns},{head},{value:.9g}"


def _since(
    start_ns: int, kind: str, name: str, times_ns: Ints, metrics: Mapping[str, Numbers]
) -> Iterator[Series]:
    """Yields the series of one thing, from `start_ns` on."""
    first = int(np.searchsorted(times_ns, start_ns))
    since_ns = times_ns[first:] - start_ns
    if len(since_ns):
        for metric, values in metrics.items():
            yield Series(kind, name, metric, since_ns, values[first:])


def _metrics(
    rows: Mapping[Thing, Ints], columns: Sequence[str], compute: Compute
) -> dict[Thing, dict[str, Numbers]]:
    """Returns the metrics of each thing. Things that have equally many rows are computed together:
    there may be thousands with a few rows each."""
    alike: defaultdict[int, list[Thing]] = defaultdict(list)
    for thing, own in rows.items():
        alike[len(own)].append(thing)
    found = {}
    for things in alike.values():
        together = compute(_columns(np.stack([rows[thing] for thing in things]), columns))
        for place, thing in enumerate(things):
            found[thing] = {metric: values[place] for metric, values in together.items()}
    return found


def _rate(times_ns: Ints, counts: Ints, start_ns: int) -> Numbers:
    """Returns for each row the bits per second since the previous row; NaN for the first row. If
    `start_ns` is later than the previous row, the time is counted from `start_ns`, because nothing
    is sent before it."""
    spans_ns = _between(np.maximum(times_ns, start_ns))
    return BITS * _between(counts) / np.maximum(spans_ns, 1) * NS_PER_S


def _between(counts: Ints) -> Numbers:
    """Returns for each row what was counted since the previous row; NaN for the first row."""
    between = np.full(counts.shape, np.nan)
    np.subtract(counts[..., 1:], counts[..., :-1], out=between[..., 1:])
    return between


def _workers(
    agents: Mapping[WorkerId, Ints], jobs: Mapping[int, str], start_ns: int
) -> Iterator[Series]:
    metrics = _metrics(agents, AGENT, lambda columns: _of_agent(columns, start_ns))
    for worker, rows in agents.items():
        name = f"{jobs[worker.job]} {agent_name(worker)}"
        yield from _since(start_ns, "worker", name, rows[:, 0], metrics[worker])


def agent_name(worker: WorkerId) -> str:
    """Returns an agent's name in a job: `h2`, or `p1 server 4`."""
    role = "" if worker.role == WORKER else f" {worker.role} {worker.rank}"
    return f"{worker.host}{role}"


def _of_agent(rows: Mapping[str, Ints], start_ns: int) -> dict[str, Numbers]:
    trips = rows["round_trip_ns"] / NS_PER_S
    return {
        "sent_rate": _rate(rows["time_ns"], rows["bytes_sent"], start_ns),
        "received_rate": _rate(rows["time_ns"], rows["bytes_received"], start_ns),
        "retransmitted": _between(rows["retransmitted"]),
        "in_flight": rows["in_flight"].astype(np.float64),
        "round_trip": np.where(trips > 0, trips, np.nan),
        "chunks_done": rows["chunks_done"].astype(np.float64),
    }


def _joined(runs: Sequence[Ints]) -> Ints:
    """Returns the rows of all runs of an agent's program, one after the other. A restarted program
    continues the counts of the run before."""
    if len(runs) == 1:
        return runs[0]
    counted = [name in COUNTED for name in AGENT]
    before = np.zeros(len(AGENT), np.int64)
    parts = [np.zeros((0, len(AGENT)), np.int64)]
    for rows in runs:
        parts.append(rows + before)
        if len(rows):
            before = np.where(counted, parts[-1][-1], 0)
    return np.concatenate(parts)


def _columns(rows: Ints, names: Sequence[str]) -> dict[str, Ints]:
    return {name: rows[..., place] for place, name in enumerate(names)}


def _links(record: Record, start_ns: int) -> Iterator[Series]:
    metrics = _metrics(record.links, LINK, lambda columns: _of_link(columns, start_ns))
    for direction, rows in record.links.items():
        yield from _since(start_ns, "link", direction, rows[:, 0], metrics[direction])


def _of_link(rows: Mapping[str, Ints], start_ns: int) -> dict[str, Numbers]:
    return {
        "rate": _rate(rows["time_ns"], rows["bytes"], start_ns),
        "queue": rows["queue"].astype(np.float64),
        "queue_bytes": rows["queue_bytes"].astype(np.float64),
        "queue_drops": _between(rows["queue_drops"]),
    }


def _switches(record: Record, graph: Topology, start_ns: int) -> Iterator[Series]:
    """Yields the switches' series. Rates and queues are sums over a switch's links, which are all
    sampled at the same moments."""
    leaving: defaultdict[str, list[Ints]] = defaultdict(list)
    for link in graph.links:
        for name, sender, _, _ in link.directions():
            if name in record.links:
                leaving[sender.node].append(record.links[name])
    for switch in graph.switches:
        out = leaving[switch.name]
        if out:
            together = _columns(np.sum(out, axis=0), LINK)
            times_ns = out[0][:, 0]
            metrics = {
                "sent_rate": _rate(times_ns, together["bytes"], start_ns),
                "queue": together["queue"].astype(np.float64),
            }
            yield from _since(start_ns, "switch", switch.name, times_ns, metrics)
        rows = record.switches.get(switch.name)
        if rows is not None and len(rows):
            slots = {"slots_in_use": _columns(rows, SWITCH)["slots_in_use"].astype(np.float64)}
            yield from _since(start_ns, "switch", switch.name, rows[:, 0], slots)
        yield from _program_counters(record, switch.name, start_ns)


def _program_counters(record: Record, switch: str, start_ns: int) -> Iterator[Series]:
    for (counting, name), rows in record.counters.items():
        if counting == switch:
            counts = _between(_columns(rows, COUNTER)["count"])
            metrics = {f"{PROGRAM}{name}": counts}
            yield from _since(start_ns, "switch", switch, rows[:, 0], metrics)


def sent_rates(record: Record, job: int) -> tuple[Ints, Numbers]:
    """Returns the moments at which a job is sampled, and for each the bits per second that all its
    agents sent in the interval before it. There is no rate for the first moment. Both are empty if
    nothing was recorded."""
    own = {who: _joined(runs) for who, runs in record.workers.items() if who.job == job}
    agents = _of_job(own, job)
    moments = _moments(agents, record.every_ns)
    return moments, _sent_rates(agents, moments, record.every_ns)


def _of_job(agents: Mapping[WorkerId, Ints], job: int) -> list[dict[str, Ints]]:
    """Returns the columns of a job's agents that have any rows."""
    return [_columns(rows, AGENT) for who, rows in agents.items() if who.job == job and len(rows)]


def _moments(agents: Sequence[Mapping[str, Ints]], every_ns: int) -> Ints:
    if not agents:
        return NO_ROWS
    first = min(int(rows["time_ns"][0]) for rows in agents)
    last = max(int(rows["time_ns"][-1]) for rows in agents)
    return np.arange(first, last + every_ns, every_ns, dtype=np.int64)


def _sent_rates(agents: Sequence[Mapping[str, Ints]], moments: Ints, every_ns: int) -> Numbers:
    if not len(moments):
        return np.zeros(0)
    sent = np.sum([_counted(rows, "bytes_sent", moments) for rows in agents], axis=0)
    return np.asarray(BITS * np.diff(sent, prepend=np.nan) / every_ns * NS_PER_S)


def _jobs(
    joined: Mapping[WorkerId, Ints], jobs: Mapping[int, str], start_ns: int, every_ns: int
) -> Iterator[Series]:
    """Yields the jobs' series, at moments that are chosen for each job. A count between two samples
    of an agent is interpolated linearly. A value that is not a count is that of the agent's last
    sample."""
    for number, name in jobs.items():
        agents = _of_job(joined, number)
        if not agents:
            continue
        moments = _moments(agents, every_ns)
        again = sum(_counted(rows, "retransmitted", moments) for rows in agents)
        under_way = sum(_latest(rows, "in_flight", moments) for rows in agents)
        metrics = {
            "sent_rate": _sent_rates(agents, moments, every_ns),
            "retransmitted": np.diff(again, prepend=np.nan),
            "in_flight": np.asarray(under_way),
            "round_trip": _mean_trip(agents, moments),
        }
        yield from _since(start_ns, "job", name, moments, metrics)


def _counted(rows: Mapping[str, Ints], name: str, moments: Ints) -> Numbers:
    return np.interp(moments, rows["time_ns"], rows[name])


def _latest(rows: Mapping[str, Ints], name: str, moments: Ints) -> Numbers:
    """Returns for each moment the value of the last sample that is not later; 0 before the first
    sample."""
    place = np.searchsorted(rows["time_ns"], moments, side="right") - 1
    return np.where(place < 0, 0, rows[name][np.maximum(place, 0)]).astype(np.float64)


def _mean_trip(agents: Sequence[Mapping[str, Ints]], moments: Ints) -> Numbers:
    trips = np.array([_latest(rows, "round_trip_ns", moments) for rows in agents])
    known = np.count_nonzero(trips, axis=0)
    return np.where(known > 0, trips.sum(axis=0) / np.maximum(known, 1) / NS_PER_S, np.nan)
