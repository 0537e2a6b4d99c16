"""Makes what several of these tests share importable by them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
