"""Floats of 16 bits: runs that are judged by NumPy, jobs beside each other, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from system_runs import DISORDER, Run, scenario_text

from agglab.hosts.bfloat16 import BFLOAT16, narrowed, widened
from agglab.systems.switchml import halves
from agglab.systems.switchml.system import SwitchML
from agglab.testbed.base.paths import P4_FOLDER
from agglab.testbed.run.programs.program import compile_program, register_bits
from agglab.testbed.scenario import ScenarioError, load

RACK = "kind: rack, workers: 3"
MIXED = "kind: ring_of_racks, racks: 3, workers: 2"
"""Switches with children of both kinds: workers and switches, each of which rounds its sum."""


FEW = "switch.lanes=6", "switch.slots=64"


@pytest.mark.long(but=["kind: ring_of_racks, racks: 3, workers: 2-float16"])
@pytest.mark.parametrize("dtype", halves.PROGRAMS)
@pytest.mark.parametrize("topology", [RACK, MIXED])
def test_sums_are_right_to_the_bit_under_loss_and_disorder(
    tried: Run, dtype: str, topology: str
) -> None:
    text = scenario_text("switchml", topology, dtype=dtype, loss="1%", more=[DISORDER])
    code, metrics = tried(text, *FEW)
    assert (code, metrics["exact"], metrics["wrong_results"]) == (0, True, 0)
    assert metrics["links_as_predicted"] is True


def test_a_truth_that_rounds_otherwise_is_seen(tried: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(wide: halves.Array) -> halves.Array:
        bits: halves.Array = wide.astype(np.float32).view(np.uint32) >> 16
        return bits.astype(np.uint16).view(BFLOAT16)

    monkeypatch.setattr(halves, "_nearest", cut)
    code, metrics = tried(scenario_text("switchml", RACK, dtype="bfloat16"), *FEW)
    assert (code, metrics["exact"]) == (1, False)


def test_each_switch_rounds() -> None:
    """1 + 2^-8 + 2^-8 in two steps: the tie goes to the even 1 each time, unlike the exact sum."""
    one, little = (narrowed(np.float32([value])) for value in (1.0, 2.0**-8))
    inner = halves.rounded_sum([one, little])
    assert widened(halves.rounded_sum([inner, little])).tolist() == [1.0]
    assert widened(halves.rounded_sum([one, little, little])).tolist() == [1.0 + 2.0**-7]


LARGEST = "switch.lanes=auto", "switch.slots=16", "links.mtu=9000"
"""Programs of 2240 lanes: each block of words occurs in the list for the checksum."""


@pytest.mark.long
@pytest.mark.parametrize("dtype", halves.PROGRAMS)
def test_the_largest_packets_have_the_right_sums(tried: Run, dtype: str) -> None:
    code, metrics = tried(scenario_text("switchml", RACK, dtype=dtype), *LARGEST)
    assert (code, metrics["exact"]) == (0, True)


def test_memory_is_that_of_the_registers(tmp_path: Path) -> None:
    """The registers that are not for sums have less than 64 bytes a cell."""
    (tmp_path / "s.yaml").write_text("name: s" + jobs("bfloat16", "float32"))
    resolved = load(tmp_path / "s.yaml").points[0].resolved
    source = SwitchML().sources(resolved.scenario)["switch"]
    program = compile_program(P4_FOLDER / f"{source.name}.p4", "agglab", source.parameters)
    cells = 2 * resolved.slots
    bits = register_bits(program)
    assert 0 < bits / 8 - SwitchML().memory_bytes(resolved) < 64 * cells


def jobs(first: str, second: str) -> str:
    return f"""
topology: {{kind: rack, workers: 4}}
switch: {{lanes: 2, slots: 16}}
workload: {{elements: 1000}}
jobs:
- {{name: a, workers: "h[12]", workload: {{dtype: {first}}}}}
- {{name: b, workers: "h[34]", workload: {{dtype: {second}}}}}
"""


def test_a_program_for_one_type_serves_a_job_of_float32(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("name: s" + jobs("bfloat16", "float32"))
    scenario = load(tmp_path / "s.yaml").points[0].resolved.scenario
    assert SwitchML().sources(scenario)["switch"].name == "switchml_bfloat16"


def test_two_types_of_16_bits_are_refused(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("name: s" + jobs("float16", "bfloat16"))
    with pytest.raises(ScenarioError) as found:
        load(tmp_path / "s.yaml")
    assert "jobs[1].workload.dtype: a switch sums either float16 or bfloat16" in str(found.value)
