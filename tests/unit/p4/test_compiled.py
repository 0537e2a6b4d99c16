"""The compiler has nothing against the programs of any width."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4native.compiler.diagnostics import Diagnostics
from p4native.compiler.frontend import compile_file
from p4native.compiler.preprocess import Options

P4 = Path(__file__).resolve().parents[3] / "p4"
LANES = (1, 32, 256, 365, 2240)


def messages(path: Path, *defines: str) -> list[str]:
    diagnostics = Diagnostics()
    program = compile_file(str(path), Options((str(P4 / "include"),), defines), diagnostics)
    assert program is None or program.main is not None
    return [f"{d.position}: {d.message}" for d in diagnostics.entries if d.level == "error"]


@pytest.mark.parametrize("path", sorted(P4.glob("*.p4")), ids=lambda p: p.stem)
def test_our_programs_have_no_errors(path: Path) -> None:
    assert messages(path, "LANES=32") == []


@pytest.mark.parametrize("lanes", LANES)
def test_aggregation_program_of_any_width(lanes: int) -> None:
    assert messages(P4 / "switchml.p4", f"LANES={lanes}", "SLOTS=128") == []
