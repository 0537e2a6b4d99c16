"""A case of network_cases.py in a process of its own, as all tests of the network run them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

CASES = Path(__file__).with_name("network_cases.py")


def case(tmp_path: Path, name: str, **arguments: Any) -> Any:
    """Run a case of network_cases.py and return its result."""
    result = tmp_path / "result.json"
    command = [sys.executable, str(CASES), name, json.dumps(arguments), str(result)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == done.stderr == "", "the terminal stays quiet"
    return json.loads(result.read_text())
