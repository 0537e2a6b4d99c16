"""docs/own-systems.md, word for word in virtual time; and its system broken, which is found."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from own_walk import PAGE, Walk

from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.scenario import load

TITLES = re.findall(r"^## (\d+)\. ", PAGE, re.MULTILINE)


def in_virtual_time(commands: list[str]) -> list[str]:
    """tests/root/test_own_programs.py has the others."""
    return [command for command in commands if "scenario" not in command or "virtual" in command]


@pytest.mark.long
def test_the_walk_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    """The first step's scenario fails, as the page says it will; the others pass."""
    walk, said = Walk(tmp_path), {}
    for number in map(int, TITLES):
        said[number] = [walk.run(command) for command in in_virtual_time(walk.follow(number))]
    assert [number for number, of_step in said.items() if of_step] == [1, 2, 5]
    (failed,), (compiled, passed), (exchange,) = said[1], said[2], said[5]
    assert "FAILED  maximum" in failed
    first, _ = sorted(tmp_path.glob("results/maximum/2*/metrics.json"))
    assert 1_500_000 < json.loads(first.read_text())["wrong_sums"] <= 4 * 2 * 200_000
    assert compiled == "build/maximum.json\n" and "PASSED  maximum" in passed
    assert "PASSED  exchange" in exchange
    assert sorted(path.name for path in walk.mine.iterdir() if path.is_file()) == [
        *("exchange.py", "exchange.yaml", "exchange_endpoint.py"),
        *("maximum.p4", "maximum.py", "maximum.yaml"),
    ]


def conducted(folder: Path, *settings: str) -> tuple[int, dict[str, Any]]:
    suite = load(folder / "exchange.yaml", ["backend=virtual", *settings])
    code = run(suite, folder / "results", [], io.StringIO())
    return code, json.loads((folder / "results/exchange/latest/metrics.json").read_text())


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """The folder, with the files of the system that begins in step 3."""
    walk = Walk(tmp_path)
    for number in (1, 3, 4, 5):
        walk.follow(number)
    return walk.mine


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_it_is_exact_under_loss(mine: Path, dtype: str) -> None:
    code, metrics = conducted(mine, f"workload.dtype={dtype}")
    assert (code, metrics["reason"]) == (0, "")
    assert metrics["totals"]["injected_drops"] > 0 and metrics["totals"]["retransmitted"] > 0


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_it_carries_what_it_predicts(mine: Path, workers: int) -> None:
    words = ["links.loss=0%", f"topology.workers={workers}"]
    code, metrics = conducted(mine, *words, "expect={exact: true, links_as_predicted: true}")
    assert (code, metrics["reason"]) == (0, "")
    assert metrics["totals"]["retransmitted"] == 0


@pytest.mark.long(but=["exchange.py-size = 4 *-size = -1 + 4 *-links_as_predicted"])
@pytest.mark.parametrize(
    ("file", "old", "new", "found"),
    [
        (
            *("exchange_endpoint.py", "self.out[begin:end] = total"),
            *("self.out[begin : end - 1] = total[:-1]", "result["),
        ),
        ("exchange_endpoint.py", "in everybody[1:]", "in everybody[2:]", "result["),
        ("exchange.py", "size = 4 *", "size = 1 + 4 *", "links_as_predicted"),
        ("exchange.py", "size = 4 *", "size = -1 + 4 *", "links_as_predicted"),
    ],
)
def test_what_is_broken_is_found(mine: Path, file: str, old: str, new: str, found: str) -> None:
    text = (mine / file).read_text()
    assert text.count(old) == 1
    (mine / file).write_text(text.replace(old, new))
    expected = "expect={exact: true, links_as_predicted: true}"
    code, metrics = conducted(mine, "links.loss=0%", expected)
    assert code == 1 and found in metrics["reason"]


def test_a_peer_that_is_gone_ends_the_round(mine: Path) -> None:
    fault = "faults=[{kind: link_down, link: h1-*, at: 5ms}]"
    code, metrics = conducted(mine, fault, "workload.give_up=2s")
    assert code == 1
    assert re.search(r"no answer for \d+ chunks", metrics["reason"]), metrics["reason"]
