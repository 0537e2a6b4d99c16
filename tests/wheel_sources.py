"""The files that the wheels are built of: Agglab's, and that of the toolchain, which it needs."""

from __future__ import annotations

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOOLCHAIN = ROOT / "toolchain"
PACKAGES = ("hosts", "topologies", "testbed", "verification")
DATA = ("p4", "scenarios", "figures", "labs")
FILES = ("pyproject.toml", "setup.py", "README.md", "LICENSE")
TOOLCHAIN_FILES = ("pyproject.toml", "README.md", "LICENSE")


def copy_sources(target: Path) -> None:
    """Copies what Agglab's wheel is built of into the folder target."""
    _copy(ROOT, (*PACKAGES, *DATA), FILES, target)


def copy_toolchain(target: Path) -> None:
    """Copies what the toolchain's wheel is built of into the folder target."""
    _copy(TOOLCHAIN, ("p4native",), TOOLCHAIN_FILES, target)


def _copy(root: Path, parts: tuple[str, ...], files: tuple[str, ...], target: Path) -> None:
    """Copies folders, without what Python has compiled, and files."""
    for part in parts:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(root / part, target / part, ignore=ignored, symlinks=True)
    for file in files:
        shutil.copy(root / file, target)
