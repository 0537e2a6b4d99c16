"""The entries a run installs are those p4/switchml.p4 has tables, actions and widths for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import text_format
from p4.config.v1 import p4info_pb2

from agglab.testbed.real.p4runtime import Names
from agglab.testbed.systems.plan import FLOOD_GROUP
from agglab.testbed.systems.summing import plan
from agglab.testbed.systems.summing.plan import PlacedJob, job_entries
from agglab.topologies import rack

ROOT = Path(__file__).resolve().parents[5]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Names:
    folder = tmp_path_factory.mktemp("program")
    p4info = folder / "p4info.txtpb"
    command = [sys.executable, "-m", "p4native.compiler", "p4/switchml.p4", "-D", "LANES=32"]
    command += ["-o", str(folder / "x.json"), "--p4runtime-files", str(p4info)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=60)
    return Names(text_format.Parse(p4info.read_text(), p4info_pb2.P4Info()))


def test_every_entry_fits_with_all_keys_and_parameters(names: Names) -> None:
    hosts = tuple(f"h{n}" for n in range(1, 65))
    entries = job_entries(
        rack(64), "s1", [PlacedJob(1, hosts, 0, 128), PlacedJob(2, ("h7",), 128, 1)]
    )
    kinds = set()
    for entry in entries.tables:
        message = names.table_entry(entry)
        kinds.add((entry.table, len(message.match), len(message.action.action.params)))
    assert kinds == {
        ("sources", 1, 1),
        ("macs", 1, 1),
        ("routes", 1, 2),
        ("members", 2, 7),
        ("results", 2, 3),
    }


def test_one_worker_more_than_the_program_has_bits_for() -> None:
    hosts = tuple(f"h{n}" for n in range(1, 66))
    with pytest.raises(
        ValueError, match="job 1: 65 children at switch s1, but the program has only 64"
    ):
        job_entries(rack(65), "s1", [PlacedJob(1, hosts, 0, 128)])


def test_constants_are_the_programs() -> None:
    include = ROOT / "p4/include"
    source = (include / "slots.p4").read_text() + (include / "forwarding.p4").read_text()
    jobs = re.search(r"#define JOBS (\d+)", source)
    flood = re.search(r"FLOOD_GROUP = (\d+);", source)
    assert jobs and int(jobs[1]) == plan.MAX_JOBS
    assert flood and int(flood[1]) == FLOOD_GROUP
