"""Tests of systems: the hooks of all tests, and importable by name what several of them share."""

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHARED = (
    "tests",
    "toolchain/tests",
    *(f"tests/unit/{part}" for part in ("hosts", "testbed", "p4")),
)
sys.path[:0] = [str(ROOT), *(str(ROOT / folder) for folder in SHARED)]

from hooks import *  # noqa: E402, F403


@pytest.fixture
def tried(tmp_path: Path) -> Any:
    """Runs a scenario in virtual time: a system_runs.Run."""
    from system_runs import run_in

    return run_in(tmp_path)
