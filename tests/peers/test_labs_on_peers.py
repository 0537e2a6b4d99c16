"""The solutions of the exercises on the field's own tools: they pass their packet cases there."""

from __future__ import annotations

from pathlib import Path

import pytest
from pairs import compile_with, need_pair, run_on

pytestmark = pytest.mark.peers
LABS = Path(__file__).parents[2] / "labs"
SCRIPTS = sorted(LABS.glob("*/packets/*.stf"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parents[1].name}-{path.stem}")
@pytest.mark.parametrize(("compiler", "target"), [("p4c", "bmv2"), ("agglab", "bmv2")])
def test_a_solution(compiler: str, target: str, script: Path, tmp_path: Path) -> None:
    need_pair(compiler, target)
    json_path = tmp_path / "solution.json"
    compile_with(compiler, script.parents[1] / "solution.p4", json_path)
    failures = run_on(target, json_path, script)
    assert not failures, "\n" + "\n".join(f"{script.name}:{f}" for f in failures)
