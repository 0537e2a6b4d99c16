"""The accuracy of the figure accuracy-factor is that of another machine, too: numpy and its linear
algebra take other code on an older processor, and add up in another order."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import needs
import numpy as np
import pytest

FIGURE = "accuracy-factor"
OLDER = {"x86_64": "Prescott", "aarch64": "ARMV8"}
"""The oldest processor for which OpenBLAS has code, by the name of the machine."""
ACCURACY_INTERVAL = 0.01
"""The interval that docs/figures.md states."""


def older_processor() -> dict[str, str]:
    """The environment in which numpy and OpenBLAS use nothing that only newer processors have."""
    newer = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    core = OLDER.get(platform.machine())
    if core is None or not newer:
        needs.skip_lacking("a processor with more than numpy's baseline", "use a newer one")
    return {"OPENBLAS_CORETYPE": core, "NPY_DISABLE_CPU_FEATURES": ",".join(newer)}


def trained(folder: Path, environment: Mapping[str, str]) -> dict[str, Mapping[str, Any]]:
    """The training metrics of every point and contender of the figure."""
    command = [sys.executable, "-m", "agglab.testbed", "figures", FIGURE, "--clock", "virtual"]
    subprocess.run(
        [*command, "--results", str(folder)],
        env={**os.environ, **environment},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    runs = next(iter((folder / "virtual" / FIGURE).glob("2*")))
    found = {}
    for path in sorted(runs.glob("point-*/*/metrics.json")):
        (job,) = json.loads(path.read_text())["jobs"].values()
        found[f"{path.parent.relative_to(runs)}"] = job["training"]
    return found


@pytest.mark.long
def test_an_older_processor_gives_the_same_accuracy(tmp_path: Path) -> None:
    here = trained(tmp_path / "here", {})
    there = trained(tmp_path / "there", older_processor())
    assert here.keys() == there.keys()
    assert len(here) == 24
    for name, found in here.items():
        other = there[name]
        assert other["accuracy"] == pytest.approx(found["accuracy"], abs=ACCURACY_INTERVAL), name
        assert other["loss"]["last"] == pytest.approx(found["loss"]["last"], rel=1e-6), name
    assert any(here[name]["loss"] != there[name]["loss"] for name in here), "the same code ran"
