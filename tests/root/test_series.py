"""Metrics over time on real links, against what the kernel and the agents counted."""

import pytest
from series_file import read

pytestmark = pytest.mark.root

TEXT = """
name: short
topology: {kind: rack, workers: 2, servers: 1}
system: ps
ps: {servers: "p*"}
links: {rate: 20mbit}
workload: {elements: 60000, rounds: 2, on_failure: restart, give_up: 1s}
faults:
- {kind: worker_restart, worker: h1, at_chunk: {round: 1, chunk: 20}, for: 200ms}
expect: {fidelity.verdict: [network-bound, waiting, starved, cpu-bound]}
"""


@pytest.mark.long
def test_links_workers_and_servers_are_recorded_through_a_restart(scenario) -> None:
    ended = scenario.run(scenario.write(TEXT))
    assert ended.code == 0, ended.err
    assert ended.folder
    metrics, series = ended.metrics, read(ended.folder)
    for link in metrics["links"].values():
        for direction, counts in link.items():
            rates = series["link", direction, "rate"]
            ends = [0, *(time_ns for time_ns, _ in rates)]
            carried = sum(
                rate * (time_ns - before) / 8e9
                for before, (time_ns, rate) in zip(ends, rates, strict=False)
            )
            assert carried == pytest.approx(counts["bytes"], rel=0.02, abs=3000)
            assert max(value for _, value in series["link", direction, "queue"]) < 1000
    for name in ("job1 h1", "job1 h2", "job1 p1 server 2"):
        times = [time_ns for time_ns, _ in series["worker", name, "sent_rate"]]
        assert len(times) > 10
        assert times == sorted(times)
    assert metrics["restarts"] == 1
    assert 0 < metrics["latency_s"]["p50"] < metrics["latency_s"]["max"]
