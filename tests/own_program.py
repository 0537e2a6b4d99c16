"""A user's own copy of p4/switchml.p4 and of what it includes, with changes."""

from __future__ import annotations

import shutil
from pathlib import Path

P4_FOLDER = Path(__file__).resolve().parents[1] / "p4"
AGGREGATION, EGRESS, SENDER = (
    f"include/{name}.p4" for name in ("aggregation", "switchml_egress", "sender")
)

Change = tuple[str, str, str]
"""A file, a text that occurs once in it, and what takes its place."""


def own_program(folder: Path, *changes: Change) -> Path:
    """Writes own.p4 and the files that it includes into the folder, and returns its path."""
    program = folder / "own.p4"
    shutil.copy(P4_FOLDER / "switchml.p4", program)
    shutil.copytree(P4_FOLDER / "include", folder / "include", dirs_exist_ok=True)
    for name, old, new in changes:
        text = (folder / name).read_text()
        assert text.count(old) == 1, (name, old)
        (folder / name).write_text(text.replace(old, new))
    return program
