"""Tests are sorted by what the machine needs; a skipped one names what is missing."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "toolchain/tests")]

from hooks import *  # noqa: E402, F403
