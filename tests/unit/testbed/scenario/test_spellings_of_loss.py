"""`links.loss` and a fault of kind `loss` without times are two spellings of one impairment."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.scenario import ResolvedScenario, ScenarioError, load
from agglab.topologies import Drop, Duplicate

RUN = """
name: spelt
seed: 3
backend: virtual
topology: {workers: 3}
switch: {lanes: 16, slots: 8}
workload: {elements: 4000, dtype: int32, rounds: 2, give_up: 60s}
"""
DUPLICATE = "{kind: duplicate, link: 's1->*', probability: 3%}"
SPELLINGS = {
    "every link": (
        f"links: {{rate: 10mbit, loss: 2%}}\nfaults: [{DUPLICATE}]",
        "links: {rate: 10mbit}\n"
        f"faults: [{DUPLICATE}, {{kind: loss, link: '*', probability: 2%}}]",
    ),
    "one direction": (
        "links: {rate: 10mbit, overrides: [{match: h2->s1, loss: 5%}]}",
        "links: {rate: 10mbit}\nfaults: [{kind: loss, link: h2->s1, probability: 5%, at: 0s}]",
    ),
    "some and others": (
        f"links: {{rate: 10mbit, loss: 1%, overrides: [{{match: h2-s1, loss: 4%}}]}}\n"
        f"faults: [{DUPLICATE}]",
        "links: {rate: 10mbit, loss: 1%, overrides: [{match: h2-s1, loss: 0%}]}\n"
        f"faults: [{DUPLICATE}, {{kind: loss, link: h2-s1, probability: 4%}}]",
    ),
}


def loaded(folder: Path, text: str) -> ResolvedScenario:
    file = folder / "spelt.yaml"
    file.write_text(text)
    return load(file).points[0].resolved


@pytest.mark.long(but=["every link"])
@pytest.mark.parametrize("name", SPELLINGS)
def test_either_spelling_drops_the_same_packets(name: str, tmp_path: Path) -> None:
    outcomes: list[tuple[Any, Any]] = []
    for i, spelling in enumerate(SPELLINGS[name]):
        folder = tmp_path / str(i)
        folder.mkdir()
        (folder / "spelt.yaml").write_text(RUN + spelling)
        assert run(load(folder / "spelt.yaml"), folder, [], io.StringIO()) == 0
        latest = folder / "spelt/latest"
        manifest = json.loads((latest / "manifest.json").read_text())
        drops = json.loads((latest / "drops.json").read_text())
        outcomes.append((manifest["events_sha256"], drops))
    assert outcomes[0] == outcomes[1]
    assert sum(way["count"] for way in outcomes[0][1].values()) > 10


def test_losses_come_first_wherever_they_stand(tmp_path: Path) -> None:
    """A direction's n-th impairment has a seed of its own, so places are part of the meaning."""
    text = f"faults: [{DUPLICATE}, {{kind: loss, link: h1-s1, probability: 1%}}]"
    link = loaded(tmp_path, text).graph.link("h1-s1")
    assert link.a_to_b.impairments == (Drop(0.01),)
    assert link.b_to_a.impairments == (Drop(0.01), Duplicate(0.03))


def test_no_loss_is_no_impairment(tmp_path: Path) -> None:
    graph = loaded(tmp_path, "faults: [{kind: loss, link: '*', probability: 0%}]").graph
    assert graph == loaded(tmp_path, "links: {loss: 0%}").graph


def test_a_loss_for_a_time_comes_beside_the_lasting_one(tmp_path: Path) -> None:
    text = "links: {loss: 1%}\nfaults: [{kind: loss, link: h1-s1, probability: 9%, for: 1s}]"
    resolved = loaded(tmp_path, text)
    assert resolved.graph.link("h1-s1").a_to_b.impairments == (Drop(0.01),)
    assert len(resolved.faults) == 1


LOSSY = "faults: [{kind: loss, link: h1-s1, probability: 1%}]\nlinks: "


@pytest.mark.parametrize(
    ("links", "wrong"),
    [
        ("{loss: 2%, overrides: [{match: h1-s1, loss: 0%}]}", []),
        ("{loss: 0%}", []),
        ("{overrides: [{match: h2-s1, loss: 2%}]}", []),
        ("{loss: 2%, overrides: [{match: h2-s1, loss: 0%}]}", ["faults[0]"]),
        ("{loss: 2%, overrides: [{match: h1->s1, loss: 0%}]}", ["faults[0]"]),
        ("{overrides: [{match: s1->h1, loss: 2%}]}", ["faults[0]"]),
        ("{loss: 2}", ["links.loss", "faults[0]"]),
        ("{overrides: [{match: h1-s1, loss: 2}]}", ["links.overrides[0].loss", "faults[0]"]),
        ("{loss: 2%, overrides: [{match: 7}]}", ["links.overrides[0].match", "faults[0]"]),
    ],
)
def test_a_direction_has_one_loss(tmp_path: Path, links: str, wrong: list[str]) -> None:
    """A `links` value of 0 states none, and so leaves room for a fault's."""
    if not wrong:
        assert loaded(tmp_path, LOSSY + links).graph.link("h1-s1").a_to_b.impairments
        return
    with pytest.raises(ScenarioError) as caught:
        loaded(tmp_path, LOSSY + links)
    assert [problem.path for problem in caught.value.problems] == wrong


@pytest.mark.parametrize("value", ["100%", "5", "-1%", "much", "''"])
def test_every_spelling_refuses_the_same_values(tmp_path: Path, value: str) -> None:
    told = []
    for text in (
        f"links: {{loss: {value}}}",
        f"links: {{overrides: [{{match: h1-s1, loss: {value}}}]}}",
        f"faults: [{{kind: loss, link: h1-s1, probability: {value}}}]",
    ):
        with pytest.raises(ScenarioError) as caught:
            loaded(tmp_path, text)
        told.append([(problem.what, problem.allowed) for problem in caught.value.problems])
    assert told[0] == told[1] == told[2]
