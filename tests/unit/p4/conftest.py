"""The aggregation program through our compiler and switch, with two jobs programmed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from aggregation_model import Model
from frames import worker_address, worker_mac
from schedules import FLOOD_PORTS, JOBS, SLOTS, jobs_model

from agglab.switch import Exact, Pipeline

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """compiled(lanes) is the JSON of p4/switchml.p4 with SLOTS slots."""
    folder = tmp_path_factory.mktemp("switchml")

    def compile_for(lanes: int) -> Path:
        json = folder / f"{lanes}.json"
        if not json.exists():
            command = [sys.executable, "-m", "agglab.compiler", "p4/switchml.p4", "-o", str(json)]
            subprocess.run([*command, f"-DLANES={lanes}", f"-DSLOTS={SLOTS}"], cwd=ROOT, check=True)
        return json

    return compile_for


@pytest.fixture
def programmed(compiled: Callable[[int], Path]) -> Callable[[int], Pipeline]:
    """programmed(lanes) is a pipeline with JOBS in its tables."""

    def program(lanes: int) -> Pipeline:
        pipeline = Pipeline.load(compiled(lanes))
        for job, index, ports, first_slot, slots in JOBS:
            everybody = (1 << len(ports)) - 1
            group = 10 + index
            pipeline.set_multicast_group(group, [(port, 0) for port in ports])
            for rank, port in enumerate(ports):
                key = [Exact(port), Exact(job)]
                pipeline.table_add(
                    "SwitchmlIngress.aggregation.members",
                    key,
                    "SwitchmlIngress.aggregation.contribute",
                    [index, 1 << rank, everybody, first_slot, slots, group, 511],
                )
                receiver = [worker_mac(port), worker_address(port)]
                args = [*(int.from_bytes(part, "big") for part in receiver), 48865 + job]
                pipeline.table_add("SwitchmlEgress.results", key, "SwitchmlEgress.to_worker", args)
        pipeline.set_multicast_group(1, [(port, 0) for port in FLOOD_PORTS])
        return pipeline

    return program


@pytest.fixture
def model() -> Model:
    return jobs_model()
