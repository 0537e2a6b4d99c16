"""Every program here, compiled by our compiler, treats its packets as its .stf script says.

One program and one script per language feature; the scripts hold on BMv2 too (tests/peers).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from p4native.compiler.command import main as compile_p4
from p4native.stf import run_stf

HERE = Path(__file__).parent
SCRIPTS = sorted(HERE.glob("*.stf"))
of_every_script = pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)


def check(script: Path, folder: Path, quick: bool) -> None:
    """The script holds. quick: whether the program's C text is compiled without optimization."""
    json_path = folder / f"{script.stem}.json"
    assert compile_p4([str(script.with_suffix(".p4")), "-o", str(json_path)]) == 0
    run = run_stf(json_path, script, quick=quick)
    assert run.packets, f"{script.name} sends no packet"
    assert not run.failures, "\n" + "\n".join(f"{script.name}:{f}" for f in run.failures)


@of_every_script
def test_packets(script: Path, tmp_path: Path) -> None:
    check(script, tmp_path, quick=True)


@pytest.mark.long
@of_every_script
def test_packets_of_optimized_programs(script: Path, tmp_path: Path) -> None:
    check(script, tmp_path, quick=False)


def test_every_program_has_a_script() -> None:
    """A program without a script would never be run."""
    assert {p.stem for p in HERE.glob("*.p4")} == {p.stem for p in SCRIPTS}
