"""The exercises of the course, in their order: the folders of labs/ that have a lab.yaml."""

from __future__ import annotations

from pathlib import Path

from agglab.testbed.base.paths import LAB_FOLDER
from agglab.testbed.base.problems import nearest, problem_of
from agglab.verification.grading import lab
from agglab.verification.grading.lab import Lab


def folders() -> list[Path]:
    """Returns the folders of all exercises that come with Agglab, in their order."""
    return sorted(path.parent for path in LAB_FOLDER.glob(f"*/{lab.FILE}"))


def find(name: str) -> Lab:
    """Returns the exercise that a folder, a name such as 03-bitmap, or a number such as 3 stands
    for. Raises ScenarioError."""
    return lab.read(find_folder(name))


def find_folder(name: str) -> Path:
    """Returns the folder of an exercise (see `find`). Raises ScenarioError."""
    if (Path(name) / lab.FILE).is_file():
        return Path(name)
    known = {folder.name: folder for folder in folders()}
    for short, folder in known.items():
        if name in (short, short.partition("-")[0], short.partition("-")[0].lstrip("0")):
            return folder
    message = f"there is no exercise of this name{nearest(name, known)}"
    raise problem_of(name, message, ", ".join(known) or "a folder")
