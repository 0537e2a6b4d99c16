"""The packet tests on the field's own tools, so that "drop-in" is a measured sentence.

p4c + BMv2 makes the scripts ground truth; the mixed pairs show that our compiler's JSON runs on
BMv2 and that our switch runs p4c's JSON. A pair whose tool is not on PATH is skipped by name.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from simple_switch import SimpleSwitch

from testbed.stf import Binder, Run, parse, run_stf

pytestmark = pytest.mark.peers
SCRIPTS = sorted((Path(__file__).parents[1] / "packets").glob("*.stf"))
COMPILERS = {
    "p4c": ["p4c-bm2-ss", "--p4v", "16"],
    "agglab": [sys.executable, "-m", "compiler"],
}


def on_bmv2(json_path: Path, script: Path) -> list[str]:
    commands = parse(script.read_text())
    binder = Binder(json.loads(json_path.read_text()))
    with SimpleSwitch(json_path, json_path.parent, commands) as engine:
        return Run(binder, engine).execute(commands)


def on_library(json_path: Path, script: Path) -> list[str]:
    return run_stf(json_path, script).failures


SWITCHES = {"bmv2": on_bmv2, "agglab": on_library}
NEEDS = {"p4c": ["p4c-bm2-ss"], "bmv2": ["simple_switch", "simple_switch_CLI"], "agglab": []}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
@pytest.mark.parametrize(
    ("compiler", "target"), [("p4c", "bmv2"), ("p4c", "agglab"), ("agglab", "bmv2")]
)
def test_pair(compiler: str, target: str, script: Path, tmp_path: Path) -> None:
    missing = [t for t in NEEDS[compiler] + NEEDS[target] if not shutil.which(t)]
    if missing:
        pytest.skip(f"not on PATH: {', '.join(missing)}")
    json_path = tmp_path / f"{script.stem}.json"
    command = [*COMPILERS[compiler], str(script.with_suffix(".p4")), "-o", str(json_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"does not compile\n{done.stderr}"
    run_on: Callable[[Path, Path], list[str]] = SWITCHES[target]
    failures = run_on(json_path, script)
    assert not failures, "\n" + "\n".join(f"{script.name}:{f}" for f in failures)
