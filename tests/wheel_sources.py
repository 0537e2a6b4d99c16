"""The files that a wheel is built of."""

from __future__ import annotations

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("common", "compiler", "switch", "hosts", "topologies", "testbed", "verification")
DATA = ("p4", "scenarios", "figures", "labs")
FILES = ("pyproject.toml", "setup.py", "README.md", "LICENSE")


def copy_sources(target: Path) -> None:
    """Copy them into the folder target, without what Python has compiled."""
    for part in (*PACKAGES, *DATA):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / part, target / part, ignore=ignored)
    for file in FILES:
        shutil.copy(ROOT / file, target)
