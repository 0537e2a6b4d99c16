"""Whose sums conformance calls different, and how it ends; peers are not needed."""

from __future__ import annotations

import io
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.scenario import find, load
from agglab.verification import __main__ as verification
from agglab.verification import conformance
from agglab.verification.conformance import command, scenarios
from agglab.verification.conformance.scenarios import ScenarioResult
from p4native.verification.conformance import Pair

OURS, FIELDS = Pair("p4native", "native"), Pair("p4c", "bmv2")


def test_sums_are_compared_round_by_round() -> None:
    right = ScenarioResult({("job1", 0): "aa", ("job1", 1): "bb"}, True, 0.5)
    assert scenarios.compare({FIELDS: right, OURS: right}) == []
    other = ScenarioResult({("job1", 0): "aa", ("job1", 1): "cc"}, True, 0.1)
    assert scenarios.compare({FIELDS: right, OURS: other}) == [
        "on p4native + native: job1, round 1: other sums than on p4c + bmv2"
    ]
    missing = ScenarioResult({("job1", 0): "aa"}, False, None)
    assert scenarios.compare({FIELDS: right, OURS: missing}) == [
        "on p4native + native: not every sum or result is right",
        "on p4native + native: job1, round 1: other sums than on p4c + bmv2",
    ]


def test_a_run_without_sums_is_no_agreement() -> None:
    assert scenarios.compare({FIELDS: ScenarioResult({}, False, None)})


def test_sums_that_depend_on_time_only_have_to_be_right() -> None:
    right, wrong = ScenarioResult(None, True, 0.5), ScenarioResult(None, False, 0.5)
    assert scenarios.compare({FIELDS: right, OURS: right}) == []
    assert scenarios.compare({FIELDS: right, OURS: wrong}) == [
        "on p4native + native: not every sum or result is right"
    ]


def test_which_sums_depend_on_time() -> None:
    assert scenarios._timed(load(find("mlfabric-small"))) == [""]
    assert scenarios._timed(load(find("locks"))) == [""]
    assert scenarios._timed(load(find("partial-small"))) == [""]
    for name in ("libra-small", "systems-small", "word-count", "quickstart"):
        assert scenarios._timed(load(find(name))) == []


def test_a_run_that_broke_off_says_why() -> None:
    right = ScenarioResult({}, True, 0.5)
    broken = ScenarioResult({}, False, None, "exit code 2: it does not compile")
    said = scenarios.compare({FIELDS: right, OURS: broken})
    assert said == ["on p4native + native: exit code 2: it does not compile"]


@pytest.mark.long
def test_the_marked_scenarios() -> None:
    assert {"quickstart", "loss", "two-racks"} <= set(scenarios.marked())


SEVERAL = """
name: several
backend: virtual
topology: {kind: rack, workers: 2}
links: {rate: 50mbit}
switch: {lanes: 64}
workload: {elements: 1000, rounds: 2}
compare: {switchml: {}, ring: {system: ring}}
sweep: {workload.dtype: [int32, float32]}
"""


@pytest.fixture
def several(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Runs the scenario in virtual time, in this process; commands that it was asked to run."""
    path, asked = tmp_path / "several.yaml", []
    path.write_text(SEVERAL)
    monkeypatch.setattr(scenarios, "find", lambda name: path)

    whatever = subprocess.run

    def run_here(command: list[str], **how: Any) -> subprocess.CompletedProcess[str]:
        if "agglab.testbed" not in command:
            return whatever(command, **how)
        asked.append(" ".join(command))
        folder = Path(command[command.index("--results") + 1])
        code = run(load(path), folder, [], io.StringIO())
        return subprocess.CompletedProcess(command, code, "", "")

    monkeypatch.setattr(scenarios.subprocess, "run", run_here)
    return asked


def test_each_run_of_a_sweep_and_a_comparison_is_compared(
    several: list[str], tmp_path: Path
) -> None:
    ran = {pair: scenarios.run_on("several", pair, tmp_path / str(pair)) for pair in (FIELDS, OURS)}
    assert all("--set backend=mininet --set switch.target=" in command for command in several)
    assert [words.rpartition("=")[2] for words in several] == ["p4c", "agglab"]
    each = scenarios.by_run(ran)
    assert [run.rpartition(" ")[2] for run in each] == ["switchml", "ring"] * 2
    for pairs_ in each.values():
        assert scenarios.compare(pairs_) == []
        assert all(len(one.sums) == 2 and one.time_s for one in pairs_.values())
    last = list(each)[-1]
    other = replace(ran[OURS][last], sums={**ran[OURS][last].sums, ("job1", 1): "cc"})
    each = scenarios.by_run({FIELDS: ran[FIELDS], OURS: {**ran[OURS], last: other}})
    assert [bool(scenarios.compare(each[run])) for run in each] == [False, False, False, True]


def test_a_comparison_that_cannot_run_is_trouble_in_each_of_its_runs(
    several: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said = subprocess.CompletedProcess([], 2, "", "it does not compile")
    monkeypatch.setattr(scenarios.subprocess, "run", lambda *_, **__: said)
    ran = scenarios.run_on("several", OURS, tmp_path)
    assert [one.trouble for one in ran.values()] == ["exit code 2: it does not compile"] * 4


@pytest.mark.long
def test_a_name_that_is_not_known_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance.main(["quikstart"]) == 2
    assert "'quikstart': no program with a packet test and no scenario" in capsys.readouterr().err


def test_the_programs_of_both_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[str] = []
    monkeypatch.setattr(command, "announced_pairs", lambda: ([OURS, FIELDS], True))
    monkeypatch.setattr(
        command, "run_cases", lambda cases, _: chosen.extend(c.program.stem for c in cases) or 0
    )
    assert conformance.main(["--packets"]) == 0
    assert {"switchml", "libra", "multicast"} <= set(chosen) and len(chosen) > 100
    chosen.clear()
    assert conformance.main(["--packets", "switchml", "drop"]) == 0
    assert sorted(chosen) == ["drop", "switchml"]


def test_without_the_packet_tests_it_is_lacking(monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.setattr(command, "TESTS", tmp_path / "toolchain/tests/packets")
    assert verification.main(["conformance"]) == 3
    assert capsys.readouterr().err.endswith("toolchain/tests/packets: run it in a checkout\n")


@pytest.mark.long
def test_endings(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(command, "announced_pairs", lambda: ([FIELDS, OURS], True))
    results = {
        FIELDS: ScenarioResult({("job1", 0): "aa"}, True, 0.5),
        OURS: ScenarioResult({("job1", 0): "aa"}, True, 1),
    }
    monkeypatch.setattr(scenarios, "run_on", lambda name, pair, results_: {"": results[pair]})
    monkeypatch.setattr(command, "run_cases", lambda cases, here: 0)
    assert conformance.main(["quickstart"]) == 0
    said = capsys.readouterr().out
    assert "quickstart: the same sums; a round: p4c + bmv2 0.500 s (1.00), p4native" in said
    results[OURS] = ScenarioResult({("job1", 0): "ab"}, True, 1)
    assert conformance.main(["--scenarios", "quickstart"]) == 1

    monkeypatch.setattr(scenarios, "run_on", lambda *_: {"a, ring": results[OURS]})
    assert conformance.main(["--scenarios", "quickstart"]) == 0
    assert "quickstart (a, ring): the same sums; a round" in capsys.readouterr().out

    def lacks(*_: object) -> ScenarioResult:
        raise scenarios.NotRun("this machine lacks root")

    monkeypatch.setattr(scenarios, "run_on", lacks)
    assert conformance.main(["quickstart"]) == 3
    assert "quickstart: not run: this machine lacks root" in capsys.readouterr().out


def test_a_scenario_whose_switch_does_not_start_is_not_compared(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The run ends with the code of a failure, and without anything to judge."""

    class Ended:
        returncode, stdout, stderr = (
            1,
            "",
            "s1: ended with exit code 1\n  No module named 'thrift'\n",
        )

    def run(command: list[str], **_: object) -> Ended:
        folder = tmp_path / "quickstart" / "latest"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "metrics.json").write_text('{"ok": false, "reason": "s1: ended"}')
        return Ended()

    monkeypatch.setattr(scenarios.subprocess, "run", run)
    with pytest.raises(scenarios.NotRun, match="could not run: s1: ended: No module named 'thrift"):
        scenarios.run_on("quickstart", Pair("p4native", "bmv2"), tmp_path)
    assert scenarios.run_on("quickstart", OURS, tmp_path)[""].trouble == "s1: ended"
