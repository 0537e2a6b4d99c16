"""On real links, a program that answers late, only when asked, too often or at a wrong port has
never passed, however busy the machine is. `python -m agglab.verification faulty-programs` runs them
all, as often as one likes."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from own_program import AGGREGATION, own_program

from agglab.testbed.base.exit_codes import UNDECIDED
from agglab.testbed.experiment import virtual_rerun
from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.judge import fidelity
from agglab.testbed.scenario import load
from agglab.verification.faulty_programs.catalogue import FaultyProgram, read
from agglab.verification.faulty_programs.trials import busy, verdicts

pytestmark = pytest.mark.root

PROGRAMS = {program.id: program for program in read()}
SOME = ["switchml-asked", "switchml-late-slot", "switchml-left-out-brief", "omnireduce-late-slot"]


def tried(program: FaultyProgram) -> list[str]:
    return list(verdicts(program, runs=1, jobs=1))


@pytest.mark.long
@pytest.mark.parametrize("name", SOME)
def test_a_faulty_program_fails(name: str) -> None:
    assert tried(PROGRAMS[name]) == ["failed"]


@pytest.mark.alone
@pytest.mark.long
def test_a_faulty_program_fails_beside_busy_loops() -> None:
    with busy(8):
        assert tried(PROGRAMS["switchml-asked-brief"]) == ["failed"]


@pytest.mark.alone
@pytest.mark.long
def test_a_right_program_passes_beside_busy_loops() -> None:
    with busy(8):
        assert tried(PROGRAMS["switchml-brief"]) == ["passed"]


NEVER_AT_ONCE = (AGGREGATION, "if (meta.after != meta.all_workers) {", "if (true) {")
ASKED = """
name: asked
topology: {workers: 2}
links: {rate: 100mbit}
switch: {lanes: 64, slots: 16}
workload: {elements: 20_000, dtype: int32, rounds: 2}
"""


@pytest.mark.long
def test_what_neither_counts_nor_virtual_time_can_judge_is_undecided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that was late by any measure, and a run that is too large by any measure."""
    monkeypatch.setattr(fidelity, "LATE", 0.0)
    monkeypatch.setattr(virtual_rerun, "FRAMES_MAX", 0)
    own = own_program(tmp_path, NEVER_AT_ONCE)
    path = tmp_path / "asked.yaml"
    path.write_text(ASKED)
    settings, out = [f"switch.program={own}"], io.StringIO()
    assert run(load(path, settings), tmp_path / "results", settings, out) == UNDECIDED
    folder = (tmp_path / "results/asked/latest").resolve()
    metrics = json.loads((folder / "metrics.json").read_text())
    assert (metrics["ok"], metrics["verdict"], metrics["exact"]) == (False, "undecided", True)
    assert f"agglab run {folder}/scenario.yaml --set backend=virtual" in metrics["reason"]
    assert "UNDECIDED  asked" in out.getvalue()
    assert (
        "<span class='verdict undecided'>undecided</span>" in (folder / "report.html").read_text()
    )
