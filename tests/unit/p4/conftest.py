"""The aggregation program through our compiler and switch, with two jobs programmed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "toolchain/tests/switch")]

from aggregation_model import Model  # noqa: E402
from schedules import SLOTS, jobs_model, two_jobs  # noqa: E402
from tables import write_entries  # noqa: E402

from p4native.switch import Pipeline  # noqa: E402


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """compiled(lanes) is the JSON of p4/switchml.p4 with SLOTS slots."""
    folder = tmp_path_factory.mktemp("switchml")

    def compile_for(lanes: int) -> Path:
        json = folder / f"{lanes}.json"
        if not json.exists():
            command = [sys.executable, "-m", "p4native.compiler", "p4/switchml.p4", "-o", str(json)]
            subprocess.run([*command, f"-DLANES={lanes}", f"-DSLOTS={SLOTS}"], cwd=ROOT, check=True)
        return json

    return compile_for


@pytest.fixture
def programmed(compiled: Callable[[int], Path]) -> Callable[[int], Pipeline]:
    """programmed(lanes) is a pipeline with JOBS in its tables."""

    def program(lanes: int) -> Pipeline:
        pipeline = Pipeline.load(compiled(lanes))
        write_entries(pipeline, two_jobs())
        return pipeline

    return program


@pytest.fixture
def model() -> Model:
    return jobs_model()
