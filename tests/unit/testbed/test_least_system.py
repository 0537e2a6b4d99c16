"""A system that answers only what every system must answer, in a folder of its own: it runs, its
sums are judged, and of all else its results say that it is unknown."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, TextIO

import pytest
from own_walk import NEW, step

from agglab.testbed.cli import main
from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.scenario import load
from agglab.testbed.systems.base import System

LEAST = """
from agglab.hosts.part import WORKER
from agglab.testbed.systems.base import FIRST_SESSION, Abilities, Agent, RightResults
from agglab.testbed.systems.base import System, integer_sum
from agglab.testbed.systems.common import agent_configuration

LANES, PORT = 64, 50_000


class Least(System):
    name = "least"
    summary = "every worker sends everything to every other"
    abilities = Abilities(dtypes=("int32",))

    def chunks(self, scenario, job):
        return -(-job.elements // LANES)

    def agents(self, resolved, job):
        peers = [[resolved.graph.host(name).ip, PORT] for name in job.hosts]
        settings = {"lanes": LANES, "session": FIRST_SESSION, "peers": peers}
        agents = []
        for rank, host in zip(job.members, job.hosts):
            place = (resolved, job.job, self.endpoints, host, PORT, rank)
            shared = agent_configuration(*place)
            agents.append(Agent(WORKER, host, rank, {**shared, "settings": settings}))
        return agents

    def right_results(self, resolved, job, combine):
        return RightResults(integer_sum)
"""
TEXT = """
name: least
system: system.py:Least
backend: virtual
topology: {workers: 3}
links: {queue: 1MB}
workload: {elements: 1000, dtype: int32, rounds: 2}
expect: {exact: true}
"""
UNKNOWN = "the system does not predict how many bytes links carry"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The system's folder, with the endpoint of step 3 of docs/own-systems.md."""
    ((_, _, endpoint),) = (block for block in step(3) if NEW.search(block[0]))
    (tmp_path / "endpoint.py").write_text(endpoint)
    (tmp_path / "system.py").write_text(LEAST)
    return tmp_path


def conducted(folder: Path, text: str, said: TextIO | None = None) -> tuple[int, dict[str, Any]]:
    (folder / "least.yaml").write_text(text)
    code = run(load(folder / "least.yaml"), folder / "results", [], said or io.StringIO())
    return code, json.loads((folder / "results/least/latest/metrics.json").read_text())


def test_three_questions_have_to_be_answered() -> None:
    assert System.__abstractmethods__ == {"chunks", "agents", "right_results"}


def test_what_it_does_not_say_is_unknown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, metrics = conducted(folder, TEXT, said := io.StringIO())
    assert (code, metrics["exact"], metrics["findings"], metrics["doubts"]) == (0, True, [], [])
    assert (metrics["links_as_predicted"], metrics["links_unclear"]) == (None, UNKNOWN)
    ways = [way for link in metrics["links"].values() for way in link.values()]
    assert all(way["bytes"] and way["predicted_bytes"] is None for way in ways)
    for name in ("payload_bound_s", "link_bound_s", "lossy_bound_s", "window_share"):
        assert metrics[name] is None, name
    assert metrics["link_bound_ratio"] is metrics["lossy_bound_ratio"] is None
    latest = folder / "results/least/latest"
    assert "the system states no bound" in said.getvalue()
    assert (latest / "report.html").stat().st_size
    assert main.main(["results", str(latest)]) == 0
    assert "allreduce.time_s" in capsys.readouterr().out
    assert main.main(["compare", str(latest), str(latest)]) == 0


def test_an_expectation_about_the_unknown_fails_and_says_why(folder: Path) -> None:
    expected = "{links_as_predicted: true, link_bound_ratio: {max: 2}}"
    code, metrics = conducted(folder, TEXT.replace("{exact: true}", expected))
    assert code == 1
    assert f"expected links_as_predicted = true, got nothing: {UNKNOWN}" in metrics["reason"]
    assert "expected link_bound_ratio <= 2, got nothing" in metrics["reason"]


def test_its_wrong_sums_are_found(folder: Path) -> None:
    wrong = LEAST.replace("RightResults(integer_sum)", "RightResults(self.off_by_one)")
    wrong += """
    def off_by_one(self, start, inputs):
        expected = integer_sum(start, inputs)
        expected.values[5] += 1
        return expected
"""
    (folder / "system.py").write_text(wrong)
    code, metrics = conducted(folder, TEXT)
    assert (code, metrics["exact"], metrics["wrong_sums"]) == (1, False, 2 * 3)


def test_it_runs_beside_a_system_that_predicts(folder: Path) -> None:
    code, metrics = conducted(folder, TEXT + "compare: {least: {}, ring: {system: ring}}\n")
    assert (code, metrics["reason"]) == (0, "")
    assert metrics["contenders"]["least"]["link_bound_ratio"] is None
    assert metrics["contenders"]["ring"]["links_as_predicted"] is True
