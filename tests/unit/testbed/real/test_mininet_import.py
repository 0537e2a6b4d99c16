"""Mininet imports where Python has no distutils, and changes nothing of the machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import needs

needs.require("mininet")

ROOT = Path(__file__).resolve().parents[4]
WITHOUT_DISTUTILS = """
import importlib.util, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "distutils" else find(name, *rest)
class Refuse:
    def find_spec(self, name, *rest):
        if name.startswith("distutils"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Refuse())
import agglab.testbed.real.mininet_nodes as nodes
assert nodes.Mininet.inited
"""


def test_mininet_imports_without_distutils() -> None:
    command = [sys.executable, "-c", WITHOUT_DISTUTILS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
