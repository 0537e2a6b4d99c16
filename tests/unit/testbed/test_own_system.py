"""A system of the user's own over plain forwarding, by path in a scenario and as an entry point."""

import io
import json
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from agglab.testbed import systems
from agglab.testbed.cli import main
from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.scenario import ScenarioError, load, to_yaml
from agglab.testbed.schema import system_names
from agglab.testbed.systems import forwarding as plain
from agglab.testbed.systems.base import ALL_REDUCES, RightResults, integer_sum

GATHER = Path(__file__).parent / "own_system/gather.py"
TEXT = f"""
name: own
system: {GATHER}:Gather
backend: virtual
topology: {{kind: two_tier, racks: 2, workers: 2}}
links: {{rate: 10mbit, queue: 1MB}}
switch: {{lanes: 64}}
workload: {{elements: 1000, dtype: int32, rounds: 2}}
gather: {{host: 1}}
expect: {{exact: true, links_as_predicted: true}}
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "own.yaml"
    path.write_text(text)
    return path


def complaints(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        load(written(tmp_path, text))
    return [f"{problem.path}: {problem.what}" for problem in caught.value.problems]


def conducted(tmp_path: Path, text: str) -> tuple[int, dict[str, Any]]:
    code = run(load(written(tmp_path, text)), tmp_path / "results", [], io.StringIO())
    return code, json.loads((tmp_path / "results/own/latest/metrics.json").read_text())


def test_it_runs_and_everything_is_judged(tmp_path: Path) -> None:
    code, metrics = conducted(tmp_path, TEXT)
    assert (code, metrics["reason"]) == (0, "")
    assert metrics["links_as_predicted"] is True and metrics["accounts"]["balanced"] is True
    assert metrics["servers"]["0"]["rounds_served"] == 2
    assert metrics["servers"]["0"]["sent"] == 2 * 4 * 16
    assert metrics["workers"]["3"]["sent"] == 2 * 16
    tensors = 2 * (16 * 46 + 4000)
    ways = {name: way for link in metrics["links"].values() for name, way in link.items()}
    assert ways["s1->h2"]["bytes"] == ways["s1->h2"]["predicted_bytes"] == 3 * tensors
    assert ways["s3->s1"]["bytes"] == ways["s1->s3"]["predicted_bytes"] == 2 * tensors


def test_its_server_can_be_killed_and_is_named(tmp_path: Path) -> None:
    killed = "faults: [{kind: server_crash, server: h2, at_chunk: {round: 1, chunk: 3}}]\n"
    code, metrics = conducted(tmp_path, TEXT + killed)
    assert (code, metrics["failure"]["worker"]) == (1, "h2")
    assert metrics["reason"].startswith("h2: server 0 exited early with status -9")
    elsewhere = killed.replace("h2", "h1")
    assert complaints(tmp_path, TEXT + elsewhere) == ["faults[0].server: 'h1' matches no server"]


@pytest.mark.parametrize(
    "text",
    [
        TEXT + "compare: {mine: {}, ring: {system: ring}, sum: {system: switchml}}\n",
        TEXT.replace(f"system: {GATHER}:Gather", "").replace("gather: {host: 1}", "")
        + f"compare: {{mine: {{system: '{GATHER}:Gather', gather: {{host: 1}}}}, sum: {{}}}}\n",
    ],
)
def test_it_is_compared_with_others(tmp_path: Path, text: str) -> None:
    code, metrics = conducted(tmp_path, text)
    assert (code, metrics["reason"]) == (0, "")
    assert metrics["contenders"]["mine"]["servers"]["0"]["rounds_served"] == 2
    assert metrics["ratio"]["mine"]["sum"]["link_bound_s"] > 1


def test_a_wrong_sum_of_it_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = systems.find(f"{GATHER}:Gather")

    def wrong(self: Any, *asked: Any) -> RightResults:
        def off_by_one(start: int, inputs: Any) -> Any:
            expected = integer_sum(start, inputs)
            expected.values[5] += 1
            return expected

        return RightResults(off_by_one)

    monkeypatch.setattr(type(system), "right_results", wrong)
    code, metrics = conducted(tmp_path, TEXT)
    assert (code, metrics["exact"], metrics["wrong_sums"]) == (1, False, 2 * 4)


def test_bytes_that_it_did_not_predict_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = plain.bytes_by_direction

    def one_less(*asked: Any) -> dict[str, int]:
        return {name: size - (name == "s3->s1") for name, size in right(*asked).items()}

    monkeypatch.setattr(plain, "bytes_by_direction", one_less)
    code, metrics = conducted(tmp_path, TEXT)
    assert (code, metrics["links_as_predicted"]) == (1, False)


def test_a_server_that_nobody_reaches_ends_the_round(tmp_path: Path) -> None:
    text = TEXT.replace("expect: {exact: true, links_as_predicted: true}", "")
    text += "faults: [{kind: link_down, link: h2-*}]\ntimeouts: {round: 2s}\n"
    code, metrics = conducted(tmp_path, text)
    assert code == 1
    assert metrics["failure"]["reason"].startswith("round 0 was not complete after 2 s")


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("dtype: int32", "dtype: float32", "workload.dtype: gather does not support float32"),
        ("lanes: 64", "lanes: 64, slots: 5", "switch.slots: has no meaning for gather"),
        ("host: 1", "host: 99", "gather.host: '99' is too large"),
        ("host: 1", "hots: 1", "gather.hots: unknown key, did you mean 'host'?"),
        ("exact: true", "switches.s1.packets.new: 1", "expect.switches.s1.packets.new: unknown"),
        ("gather.py:Gather", "gather.py:Gatherer", f"system: {GATHER} has no Gatherer"),
        ("own_system/gather.py", "gather.py", "system: "),
        (f"{GATHER}:Gather", "ringg", "system: unknown system 'ringg'"),
    ],
)
def test_mistakes(tmp_path: Path, old: str, new: str, found: str) -> None:
    assert old in TEXT
    lines = complaints(tmp_path, TEXT.replace(old, new))
    assert any(line.startswith(found) for line in lines), lines


def test_as_resolved_it_loads_to_the_same_again(tmp_path: Path) -> None:
    point = load(written(tmp_path, TEXT.replace("gather: {host: 1}", ""))).points[0]
    text = to_yaml(point.resolved)
    assert "gather:\n  host: 0\n" in text and "slots" not in text
    assert load(written(tmp_path, text)).points[0] == point


def test_an_attack_needs_a_system_that_can_be_attacked(tmp_path: Path) -> None:
    text = TEXT + "jobs: [{workers: 'h[12]'}]\nfaults: [{kind: attack, host: h4, frames: 5}]\n"
    assert "faults[0].kind: gather defines no frames for an attack" in complaints(tmp_path, text)


def test_an_entry_point_is_a_name(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.syspath_prepend(str(GATHER.parent))
    points = [
        metadata.EntryPoint("gather", "gather:Gather", system_names.GROUP),
        metadata.EntryPoint("broken", "no_such_module:Gather", system_names.GROUP),
    ]
    monkeypatch.setattr(metadata, "entry_points", lambda group: points)
    systems.find.cache_clear()
    assert main.main(["systems"]) == 0
    out = capsys.readouterr().out
    reduces = ", ".join(ALL_REDUCES)
    assert f"gather: a server adds\n  workloads: {reduces}\n  dtypes: int32\n" in out
    assert "  keys: gather.host, switch.lanes\n" in out
    assert "broken: this system cannot be used: broken: ModuleNotFoundError" in out
    systems.find.cache_clear()
