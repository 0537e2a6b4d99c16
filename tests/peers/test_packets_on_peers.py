"""The packet tests on the field's own tools, so that "drop-in" is a measured sentence.

p4c + BMv2 makes the scripts ground truth; the mixed pairs show that our compiler's JSON runs on
BMv2 and that our switch runs p4c's JSON.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pairs import compile_with, need_pair, run_on

pytestmark = pytest.mark.peers
ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "toolchain/tests/packets").glob("*.stf"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
@pytest.mark.parametrize(
    ("compiler", "target"), [("p4c", "bmv2"), ("p4c", "agglab"), ("agglab", "bmv2")]
)
def test_pair(compiler: str, target: str, script: Path, tmp_path: Path) -> None:
    need_pair(compiler, target)
    json_path = tmp_path / f"{script.stem}.json"
    compile_with(compiler, script.with_suffix(".p4"), json_path)
    failures = run_on(target, json_path, script)
    assert not failures, "\n" + "\n".join(f"{script.name}:{f}" for f in failures)
