"""Where the files of the laboratory are: beside the packages in a checkout, in share/agglab where
it is installed from a wheel."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
"""The folder of the packages, for PYTHONPATH: the checkout, or site-packages."""
PROGRAM = "p4/switchml.p4"


def _shared() -> Path:
    """The folder that has p4/ and scenarios/."""
    for folder in (REPOSITORY, REPOSITORY / "share/agglab"):  # the second: pip install --target
        if (folder / PROGRAM).is_file():
            return folder
    for file in metadata.files("agglab") or ():
        if file.as_posix().endswith(f"share/agglab/{PROGRAM}"):
            return Path(str(file.locate())).resolve().parents[1]
    return REPOSITORY


SHARED = _shared()
P4_FOLDER = SHARED / "p4"
SCENARIO_FOLDER = SHARED / "scenarios"
IS_CHECKOUT = SHARED == REPOSITORY
