"""Locates Agglab's files: in a checkout they are beside the packages, and after installation from a
wheel in share/agglab."""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
"""The folder that holds the packages. This is the checkout, or site-packages/agglab."""
PROGRAM = "p4/forwarding.p4"


def _shared() -> Path:
    """Returns the folder that has p4/, scenarios/, figures/ and labs/."""
    for folder in (REPOSITORY, REPOSITORY.parent / "share/agglab"):  # pip install --target
        if (folder / PROGRAM).is_file():
            return folder
    from importlib import metadata  # a checkout does without it, and it takes 30 ms

    for file in metadata.files("agglab") or ():
        if file.as_posix().endswith(f"share/agglab/{PROGRAM}"):
            return Path(str(file.locate())).resolve().parents[1]
    return REPOSITORY


SHARED = _shared()
P4_FOLDER = SHARED / "p4"
SCENARIO_FOLDER = SHARED / "scenarios"
FIGURE_FOLDER = SHARED / "figures"
LAB_FOLDER = SHARED / "labs"
IS_CHECKOUT = SHARED == REPOSITORY
