"""Lets the tests of the exercises import exercises.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
