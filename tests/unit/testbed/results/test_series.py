"""Metrics over time: what a run leaves in series.csv and latency.csv, against what it counted."""

import csv
import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from series_file import read

from agglab.testbed.base.worker_id import WorkerId
from agglab.testbed.cli.main import main
from agglab.testbed.results import series_table
from agglab.testbed.run.samples import AGENT, ROWS_MAX, ROWS_MIN, Record, Tracks
from agglab.testbed.schema.series_metrics import KINDS, SERIES
from agglab.topologies.rack import rack

TEXT = """
name: short
backend: virtual
topology: {workers: 2}
workload: {elements: 20000, rounds: 2, window: 16}
links: {loss: 1%, rate: 10mbit}
series: {every: 1ms}
"""
MS = 1_000_000


def ran(folder: Path, text: str = TEXT) -> Path:
    path = folder / "short.yaml"
    path.write_text(text)
    assert main(["run", str(path), "--results", str(folder / "results")]) == 0
    return (folder / "results/short/latest").resolve()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ran(tmp_path_factory.mktemp("series"))


def carried(series: list[tuple[int, float]], begin_ns: int) -> float:
    """Bytes, of rates in bit/s."""
    total, before = 0.0, begin_ns
    for time_ns, rate in series:
        total += rate * (time_ns - before) / 8e9
        before = time_ns
    return total


def test_what_is_written_is_declared_and_the_other_way_round(run: Path) -> None:
    written = {(kind, metric) for kind, _, metric in read(run)}
    assert written == {(each.kind, each.name) for each in SERIES}
    assert {each.kind for each in SERIES} == set(KINDS)
    assert (run / "series.csv").read_text().startswith(",".join(series_table.COLUMNS) + "\n")


def test_rates_come_to_the_bytes_that_links_and_workers_counted(run: Path) -> None:
    metrics, series = json.loads((run / "metrics.json").read_text()), read(run)
    for link in metrics["links"].values():
        for direction, counts in link.items():
            assert carried(series["link", direction, "rate"], 0) == pytest.approx(counts["bytes"])
    for rank, counts in metrics["workers"].items():
        name = f"job1 h{int(rank) + 1}"
        sent = series["worker", name, "sent_rate"]
        again = series["worker", name, "retransmitted"]
        # What is sent in the very moment in which the run begins is no rate.
        assert 0 < counts["bytes_sent"] - carried(sent, 0) <= 17 * 1500
        assert sum(value for _, value in again) == counts["retransmitted"] > 0


def test_looks_are_a_millisecond_apart_and_no_rate_is_above_the_links(run: Path) -> None:
    series = read(run)
    times = np.array([time_ns for time_ns, _ in series["link", "h1->s1", "queue"]])
    assert set(np.diff(times)[:-1].tolist()) == {MS}
    assert max(rate for _, rate in series["link", "h1->s1", "rate"]) <= 10e6 * 1.5
    assert 0 < max(value for _, value in series["worker", "job1 h1", "in_flight"]) <= 16
    assert 0 < max(value for _, value in series["switch", "s1", "slots_in_use"]) <= 32


LATE = """
name: short
backend: virtual
system: {system}
topology: {{workers: 2, servers: 1}}
links: {{rate: 10mbit, overrides: [{{match: h2-s1, delay: 20ms}}]}}
switch: {{lanes: 32{slots}}}
workload: {{{workload}, window: 8, dtype: int32}}
series: {{every: 1ms}}
expect: {{findings: {{may: [sent-again, slow, small-window]}}}}
"""


@pytest.mark.long
@pytest.mark.parametrize("system", ["switchml", "omnireduce", "atp", "esa", "netrpc", "libra"])
def test_slots_hold_what_waits_for_the_worker_that_is_far_away(tmp_path: Path, system: str) -> None:
    """All that the other one may have under way, and nothing when the run is over."""
    keys = system == "libra"
    workload = "elements: 2000" if not keys else "kind: push_pull, vocabulary: 500, elements: 5000"
    text = LATE.format(system=system, slots="" if keys else ", slots: 64", workload=workload)
    series = read(ran(tmp_path, text + ("libra: {hot: 256}\n" if keys else "")))
    in_use = [value for _, value in series["switch", "s1", "slots_in_use"]]
    assert (max(in_use), in_use[-1]) == (8, 0)


def test_times_count_from_the_start_and_what_was_before_is_left_out() -> None:
    times_ns, values = np.array([10, 20, 35]), np.array([1.0, 2.0, 3.0])
    (found,) = series_table._since(20, "link", "h1-s1", times_ns, {"rate": values})
    assert found.times_ns.tolist() == [0, 15] and found.values.tolist() == [2.0, 3.0]
    assert found[:3] == ("link", "h1-s1", "rate")
    assert not list(series_table._since(36, "link", "h1-s1", times_ns, {"rate": values}))


def test_every_answer_is_in_the_histogram(run: Path) -> None:
    with (run / "latency.csv").open() as file:
        latencies = list(csv.DictReader(file))
    metrics = json.loads((run / "metrics.json").read_text())
    counted: dict[str, int] = defaultdict(int)
    for row in latencies:
        counted[row["agent"]] += int(row["count"])
    for rank, counts in metrics["workers"].items():
        first_sent = counts["sent"] - counts["retransmitted"]
        assert counted[f"h{int(rank) + 1}"] == first_sent
    longest = max(int(row["to_ns"]) for row in latencies)
    assert metrics["latency_s"]["max"] == pytest.approx(longest / 1e9, rel=1 / 32)
    shares = list(metrics["latency_s"].values())
    assert shares == sorted(shares)


def test_recording_changes_nothing_and_can_be_switched_off(tmp_path: Path, run: Path) -> None:
    off = ran(tmp_path, TEXT.replace("every: 1ms", "record: false"))
    assert not (off / "series.csv").exists()
    assert not (off / "latency.csv").exists()
    assert (off / "events.jsonl").read_bytes() == (run / "events.jsonl").read_bytes()
    on, without = (json.loads((f / "metrics.json").read_text()) for f in (run, off))
    for metrics in (on, without, on["jobs"]["job1"], without["jobs"]["job1"]):
        for recorded in ("latency_s", "send_rate_bps"):
            metrics.pop(recorded)
    assert on == without


def test_a_long_run_keeps_no_more_and_every_kept_moment_is_one_that_was() -> None:
    looked = []

    def look(now_ns: int) -> dict[str, tuple[int, ...]]:
        looked.append(now_ns)
        late = ["late"] if now_ns > 777 * MS else []
        return dict.fromkeys(["a", "b", *late], (now_ns, 7 * now_ns))

    tracks, now_ns = Tracks(MS, look), 0
    while now_ns < 3600_000 * MS:
        now_ns = tracks.due_ns
        tracks.look(now_ns)
    kept = tracks.kept()
    times = kept["a"][:, 0]
    assert ROWS_MIN <= len(times) <= ROWS_MAX
    assert set(times.tolist()) <= set(looked)
    assert times[0] == 0
    assert len(looked) < 12 * ROWS_MAX
    assert set(np.diff(times).tolist()) == {tracks.every_ns}
    assert (kept["b"][:, 1] == 7 * times).all()
    assert kept["late"][:, 0].tolist() == times[times > 777 * MS].tolist()


def test_counts_go_on_where_a_program_was_started_anew() -> None:
    graph = rack(2)
    before = np.array([(0, 0, 0, 0, 0, 0, 0), (MS, 1000, 0, 1, 2, 5000, 3)], np.int64)
    after = np.array([(4 * MS, 0, 0, 0, 0, 0, 0), (5 * MS, 500, 0, 2, 1, 0, 1)], np.int64)
    record = Record({WorkerId(1, "h1"): [before, after]}, every_ns=MS)
    found = {
        (each.kind, each.metric): each for each in series_table.table(record, graph, {1: "job1"}, 0)
    }
    rate = found["worker", "sent_rate"]
    assert rate.values[1:].tolist() == [8e6, 0, 4e6]
    assert found["worker", "retransmitted"].values[1:].tolist() == [1, 0, 2]
    assert np.isnan(found["worker", "round_trip"].values).tolist() == [True, False, True, True]
    job = found["job", "retransmitted"]
    assert np.nansum(job.values) == 3
    assert found["job", "in_flight"].values.tolist() == [0, 2, 2, 2, 0, 1]


def test_counts_go_on_through_every_restart_of_a_program() -> None:
    """The third program continues the sum of both before it, not only that of the second; a program
    that ended before its first sample changes nothing."""
    sent = (1000, 500, 250)
    programs = [
        np.array([(n * 10 * MS, 0, 0, 0, 0, 0, 0), (n * 10 * MS + MS, count, 0, 1, 0, 0, 0)])
        for n, count in enumerate(sent)
    ]
    programs.insert(2, programs[0][:0])
    joined = series_table._joined(programs)
    assert joined[:, AGENT.index("bytes_sent")].tolist() == [0, 1000, 1000, 1500, 1500, 1750]
    assert joined[:, AGENT.index("retransmitted")].tolist() == [0, 1, 1, 2, 2, 3]


def test_a_round_trip_is_the_mean_of_the_agents_that_have_one() -> None:
    """Of three agents, one has measured none yet."""
    trips_ns = (3 * MS, 0, 6 * MS)
    agents = [{"time_ns": np.array([0, MS]), "round_trip_ns": np.array([0, t])} for t in trips_ns]
    means_s = series_table._mean_trip(agents, np.array([0, MS]))
    assert np.isnan(means_s[0]) and means_s[1] == pytest.approx(0.0045)


def test_a_sample_counts_from_its_own_moment_on() -> None:
    samples = {"time_ns": np.array([10, 20]), "in_flight": np.array([3, 5])}
    moments = np.array([9, 10, 11, 19, 20, 21])
    assert series_table._latest(samples, "in_flight", moments).tolist() == [0, 3, 3, 3, 5, 5]


def test_the_first_rate_is_that_since_the_start() -> None:
    """The run starts 3 ms after a sample: the bytes of the next one took 1 ms, not 4 ms."""
    times_ns, counted = np.array([0, 4 * MS, 6 * MS]), np.array([0, 500, 1500])
    assert series_table._rate(times_ns, counted, 3 * MS)[1:].tolist() == [4e6, 4e6]


def test_things_with_unequally_many_samples_have_the_series_that_each_has_alone() -> None:
    graph = rack(3)
    grown = np.arange(7 * 4, dtype=np.int64).reshape(4, 7) ** 2 * MS
    agents = {WorkerId(1, f"h{n}"): [grown[:n] * n] for n in (1, 2, 3, 4)}
    agents[WorkerId(1, "h5")] = [grown[:2], grown[:0], grown[2:]]
    links = {f"h{n}->s1": grown[:n, :5] * n for n in (1, 2, 3)}
    together = series_table.table(Record(agents, links, every_ns=MS), graph, {1: "job1"}, 0)
    for kind, every in (("worker", agents), ("link", links)):
        alone = []
        for name, own in every.items():
            record = Record(**{f"{kind}s": {name: own}}, every_ns=MS)
            alone += series_table.table(record, graph, {1: "job1"}, 0)
        own_lines = list(series_table.lines(each for each in alone if each.kind == kind))
        assert list(series_table.lines(each for each in together if each.kind == kind)) == own_lines
