"""What our switches said to a system's own agents, in a run whose results were all right, the
field's compiler and switch say too."""

from __future__ import annotations

from pathlib import Path

import pytest
from pairs import compile_with, need_pair, run_on
from recorded import recorded
from small_runs import RUNS

pytestmark = pytest.mark.peers
PAIRS = [("p4c", "bmv2"), ("p4c", "agglab"), ("agglab", "bmv2")]


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@pytest.mark.parametrize("system", RUNS)
def test_a_run_is_said_again(
    system: str, pair: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler, target = pair
    need_pair(compiler, target)
    for switch, each in recorded(RUNS[system], 60, tmp_path, monkeypatch).items():
        script, product = tmp_path / f"{switch}.stf", tmp_path / f"{switch}.json"
        script.write_text("\n".join(each.conversation.script()))
        compile_with(compiler, each.program, product, each.flags())
        assert run_on(target, product, script) == [], switch
