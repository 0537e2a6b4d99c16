"""Makes this folder's modules importable, and its fixtures known."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from fixtures import lab, stub_path  # noqa: F401
