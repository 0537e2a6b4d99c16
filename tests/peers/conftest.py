"""Makes `pairs` and `simple_switch`, the engine over BMv2, importable by these tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
