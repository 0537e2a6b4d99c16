"""A system in a folder outside the repository, as its user begins one: the ring under another
name, with its C code."""

from __future__ import annotations

import shutil
from pathlib import Path

from agglab.testbed.paths import REPOSITORY

RING = REPOSITORY / "systems/ring"


def copied_ring(folder: Path, name: str) -> str:
    """Copies the ring into the package `name` in a folder, as docs/own-systems.md says. Returns
    what `system:` in a scenario calls it."""
    home = folder / name
    shutil.copytree(RING, home, ignore=shutil.ignore_patterns("__pycache__", "tests"))
    for path in home.rglob("*.py"):
        path.write_text(path.read_text().replace("agglab.systems.ring", name))
    system = home / "system.py"
    text = system.read_text()
    assert text.count('name = "ring"') == 1
    system.write_text(text.replace('name = "ring"', f'name = "{name}"'))
    return f"{system}:Ring"
