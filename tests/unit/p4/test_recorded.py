"""What switches said in a run in virtual time, our switch says again, whatever the time."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded import recorded
from small_runs import RUNS

from agglab.testbed.run.programs.program import compile_program
from p4native.stf import run_stf


@pytest.mark.long(but=["ps"])
@pytest.mark.parametrize("system", RUNS)
def test_a_run_is_said_again(system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = recorded(RUNS[system], 400, tmp_path, monkeypatch)
    assert len(said) == 3
    for switch, each in said.items():
        assert sum(bool(step.out) for step in each.conversation.steps) > 20, switch
        script = tmp_path / f"{switch}.stf"
        script.write_text("\n".join(each.conversation.script()))
        product = compile_program(each.program, "agglab", each.defines).json
        assert run_stf(product, script).failures == [], switch
