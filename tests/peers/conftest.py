"""Makes `pairs` importable by these tests, and the frames and the model of tests/unit/p4."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "p4"))
