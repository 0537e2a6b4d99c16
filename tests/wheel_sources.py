"""The files that Agglab's wheel is built of."""

from __future__ import annotations

from pathlib import Path

from toolchain_wheel import copy

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("hosts", "systems", "topologies", "testbed", "verification")
DATA = ("p4", "scenarios", "figures", "labs")
FILES = ("pyproject.toml", "setup.py", "README.md", "LICENSE")


def copy_sources(target: Path) -> None:
    """Copies them into the folder target."""
    copy(ROOT, ("src", *PACKAGES, *DATA), FILES, target)
