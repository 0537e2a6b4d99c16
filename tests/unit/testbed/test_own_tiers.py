"""A system of the user's own that uses all there is: programs by role, a controller, a scheduler,
several agents at one host."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from agglab.testbed import systems
from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.scenario import ScenarioError, load, to_yaml

HERE = Path(__file__).parent / "own_system/tiers"
TIERS = HERE / "tiers.py"
ROUNDS, WORKERS, HOT = 4, 5, 24
TEXT = f"""
name: tiers
system: {TIERS}:Tiers
backend: virtual
topology: {{kind: two_tier, racks: 3, workers: 2}}
links: {{rate: 10mbit, queue: 1MB}}
switch: {{lanes: 4}}
workload: {{elements: 401, dtype: int32, rounds: {ROUNDS}}}
expect: {{exact: true, links_as_predicted: true, control.missed: 0}}
"""


def conducted(tmp_path: Path, text: str = TEXT) -> tuple[int, dict[str, Any], list[dict[str, Any]]]:
    path = tmp_path / "tiers.yaml"
    path.write_text(text)
    code = run(load(path), tmp_path / "results", [], io.StringIO())
    folder = tmp_path / "results/tiers/latest"
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    return code, json.loads((folder / "metrics.json").read_text()), events


def test_it_is_short() -> None:
    files = [file for file in HERE.iterdir() if file.suffix in (".py", ".p4")]
    assert sum(len(file.read_text().splitlines()) for file in files) <= 400


def test_racks_sum_what_the_controller_says(tmp_path: Path) -> None:
    code, metrics, events = conducted(tmp_path)
    assert (code, metrics["reason"], metrics["findings"]) == (0, "", [])
    assert metrics["exact"] is metrics["accounts"]["balanced"] is True
    packets = {name: switch["packets"] for name, switch in metrics["switches"].items()}
    # Racks of two, two and one worker; the spine has no such counter.
    assert [packets[s].get("summed") for s in ("s1", "s2", "s3", "s4")] == [
        ROUNDS * HOT * workers for workers in (2, 2, 1)
    ] + [None]
    assert set(metrics["servers"]) == {"0", "1", "2"}
    chief = metrics["servers"]["2"]
    assert chief["received"] == chief["sent"] == ROUNDS * WORKERS * 7
    before_rounds = [e for e in events if e["event"] == "controlled" and "round" in e]
    assert [e["round"] for e in before_rounds] == list(range(ROUNDS))
    assert before_rounds[1]["entries"] == {"s1": 4 * HOT, "s2": 4 * HOT, "s3": 2 * HOT}
    control = metrics["control"]
    assert control["entries"] == (1 + 2 * (ROUNDS - 1)) * WORKERS * HOT
    assert control["deadlines"] > 10 and control["missed"] == 0
    assert control["steps"] == control["deadlines"] + ROUNDS


def test_each_switch_runs_and_lists_its_program(tmp_path: Path) -> None:
    _, _, _ = conducted(tmp_path)
    manifest = json.loads((tmp_path / "results/tiers/latest/manifest.json").read_text())
    assert [Path(p["source"]).name for p in manifest["programs"]] == ["leaf.p4", "forwarding.p4"]
    point = load(tmp_path / "tiers.yaml").points[0]
    text = to_yaml(point.resolved)
    assert "program:" not in text
    (tmp_path / "again.yaml").write_text(text)
    assert load(tmp_path / "again.yaml").points[0] == point


def test_a_program_of_the_users_cannot_take_the_place_of_two(tmp_path: Path) -> None:
    path = tmp_path / "tiers.yaml"
    path.write_text(TEXT.replace("lanes: 4", "lanes: 4, program: forwarding"))
    with pytest.raises(
        ScenarioError, match=r"switch.program: .* several programs \(leaf and spine\)"
    ):
        load(path)


def test_a_change_in_the_midst_of_a_round_would_be_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hot set that moves while its sums are half full leaves them behind: no round ends."""
    controller = type(systems.find(f"{TIERS}:Tiers").controller(None, None))
    begin, at = controller.begin_round, {}

    def late(self: Any, now_ns: int, number: int, job: Any, switches: Any) -> Any:
        at["job"] = job
        return begin(self, now_ns, 0, job, switches) if number == 0 else None

    def step(self: Any, now_ns: int, switches: Any) -> Any:
        self.deadline_ns = now_ns + 300_000 if now_ns < 20_000_000 else 2**63 - 1
        return begin(self, now_ns, now_ns // 300_000, at["job"], switches)

    monkeypatch.setattr(controller, "begin_round", late)
    monkeypatch.setattr(controller, "step", step)
    code, metrics, _ = conducted(tmp_path, TEXT + "timeouts: {round: 1s}\n")
    assert code == 1 and metrics["rounds"] < ROUNDS
