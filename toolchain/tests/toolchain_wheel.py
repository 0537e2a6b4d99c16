"""The files that the toolchain's wheel is built of."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

TOOLCHAIN = Path(__file__).resolve().parents[1]
FILES = ("pyproject.toml", "README.md", "LICENSE")


def copy_toolchain(target: Path) -> None:
    """Copies them into the folder target."""
    copy(TOOLCHAIN, ("p4native",), FILES, target)


def copy(root: Path, folders: Iterable[str], files: Iterable[str], target: Path) -> None:
    """Copies folders, without what Python has compiled, and files of root into target."""
    for folder in folders:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(root / folder, target / folder, ignore=ignored, symlinks=True)
    for file in files:
        shutil.copy(root / file, target)
