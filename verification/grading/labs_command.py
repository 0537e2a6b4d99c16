"""The command `agglab labs`: lists the exercises, opens hints, copies skeletons, and writes the
bundle for students."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from agglab.testbed.base.command_lines import launcher
from agglab.testbed.base.exit_codes import PASSED
from agglab.testbed.base.paths import LAB_FOLDER
from agglab.testbed.base.problems import problem_of
from agglab.testbed.cli import arguments
from agglab.verification.grading import course, lab, progress
from p4native.common.printable import plain

OF_TEACHERS = ("solution*", "wrong*", "teacher*")
"""What students do not get, besides what teachers have made of the skeletons in their places."""
CACHED = shutil.ignore_patterns("__pycache__")


def main(words: Sequence[str]) -> int:
    """Returns 0. Raises ScenarioError for an exercise or a folder that is wrong."""
    options = arguments.parse("labs", arguments.labs, words)
    ACTIONS[options.action](options)
    return PASSED


def _list(options: argparse.Namespace) -> None:
    """Prints the exercises, each with a mark if it is done, and its idea."""
    done = progress.done()
    labs = [lab.read(folder) for folder in course.folders()]
    if not labs:
        print(f"there are no exercises in {LAB_FOLDER}")
    width = max((len(each.name) for each in labs), default=0)
    for each in labs:
        mark = "done" if each.name in done else "    "
        print(plain(f"{mark}  {each.name:<{width}}  {each.idea}"))


def _hint(options: argparse.Namespace) -> None:
    """Prints the hints of an exercise that are open; with --next, opens one more."""
    folder = course.find_folder(options.lab)
    hints = sorted((folder / "hints").glob("*.md"), key=_order)
    opened = min(len(hints), progress.hints_open(folder.name) + options.next)
    if options.next:
        progress.open_hint(folder.name, opened)
    for number, hint in enumerate(hints[:opened], 1):
        print(plain(f"Hint {number} of {len(hints)}\n{hint.read_text(encoding='utf-8').strip()}\n"))
    if opened < len(hints):
        more = f"{launcher()} labs hint {options.lab} --next"
        print(plain(f"{opened} of {len(hints)} hints are open; open the next with `{more}`"))
    elif not hints:
        print("this exercise has no hints")


def _order(path: Path) -> tuple[int, str]:
    return (int(path.stem) if path.stem.isdecimal() else 0, path.stem)


def _start(options: argparse.Namespace) -> None:
    """Copies the skeleton of an exercise, under the name of what is handed in. An existing file is
    left alone."""
    chosen = course.find(options.lab)
    skeleton, copy = chosen.find("skeleton.*"), options.folder / chosen.file
    if skeleton is None:
        raise problem_of(chosen.folder, "has no skeleton")
    if copy.exists() or copy.is_symlink():
        raise problem_of(copy, "exists already: choose another folder, or move it away")
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(skeleton, copy)
    except OSError as error:
        raise problem_of(copy, f"cannot be written: {error.strerror}") from None
    print(plain(f"{copy}: edit it, then `{launcher()} grade {chosen.name} {copy}`"))
    print(plain(f"what to do: {chosen.folder / 'README.md'}"))


def _export(options: argparse.Namespace) -> None:
    """Copies the course. Students get neither solutions nor wrong programs."""
    target: Path = options.folder
    if target.exists() or target.is_symlink():
        raise problem_of(target, "exists already: name a folder that does not exist yet")
    left_out = CACHED if options.teacher else _of_teachers()
    try:
        shutil.copytree(LAB_FOLDER, target, ignore=left_out)
    except (OSError, shutil.Error) as error:
        shutil.rmtree(target, ignore_errors=True)
        raise problem_of(target, f"cannot be written: {error}") from None
    count = len(list(target.glob(f"*/{lab.FILE}")))
    whom = "teachers" if options.teacher else "students"
    print(plain(f"{target}: {count} exercises for {whom}"))


def _of_teachers() -> Callable[[str, list[str]], set[str]]:
    """Returns a function that says which names in a folder students do not get."""
    named = shutil.ignore_patterns("__pycache__", *OF_TEACHERS)
    solved = {str(folder): [lab.read(folder).file] for folder in course.folders()}
    return lambda folder, names: {*named(folder, names), *solved.get(folder, ())}


ACTIONS: Mapping[str | None, Callable[[argparse.Namespace], None]] = {
    None: _list,
    "hint": _hint,
    "start": _start,
    "export": _export,
}
