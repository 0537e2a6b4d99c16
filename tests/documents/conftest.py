"""Lets the tests of this folder import each other's modules."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

# The commands of all documents, as two users, take longer than the rest of the tests together.
collect_ignore = [] if os.environ.get("AGGLAB_DOCUMENTS") else ["test_commands.py"]
