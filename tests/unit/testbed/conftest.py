"""Makes what several of these tests share importable by them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from system_runs import Run, run_in


@pytest.fixture
def tried(tmp_path: Path) -> Run:
    """Runs a scenario in virtual time."""
    return run_in(tmp_path)
