"""`agglab check`: says whether a scenario is valid, and what of it has no effect."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from agglab.testbed.base.errors import CompileError
from agglab.testbed.base.exit_codes import INVALID, PASSED
from agglab.testbed.base.problems import ScenarioError
from agglab.testbed.cli.calibration.capacity import kept, too_much
from agglab.testbed.run.programs.prepare import compile_points
from agglab.testbed.run.programs.unused_keys import notes as without_effect
from agglab.testbed.scenario import Suite, find, load
from p4native.common.printable import plain


def run(options: argparse.Namespace) -> int:
    """Reads and compiles the user's files without running them. Returns the exit code."""
    try:
        suite = load(find(options.scenario), options.set, options.folder)
        prepared = compile_points(suite.points)
    except (ScenarioError, CompileError) as error:
        if not options.json:
            raise
        print(json.dumps({"valid": False, "problems": _problems(error)}, indent=2))
        return INVALID
    notes = [*_notes(suite), *without_effect(suite.points, prepared)]
    if options.json:
        about = {"valid": True, "runs": len(suite.points), "problems": [], "notes": notes}
        print(json.dumps(about, indent=2))
        return PASSED
    runs = f"{len(suite.points)} runs" if len(suite.points) > 1 else "one run"
    print(plain("\n".join([f"{suite.source}: valid, {runs}", *_groups(suite), *notes])))
    return PASSED


def _notes(suite: Suite) -> Iterator[str]:
    """Yields the lines that say which runs need more than this machine can carry. Equal lines are
    yielded once."""
    rows = kept()
    found = {too_much(point.resolved, rows): point for point in suite.points if rows}
    for text, point in found.items():
        if text:
            yield f"{point.label}: {text}" if suite.axes else text


def _groups(suite: Suite) -> Iterator[str]:
    """Yields for each point of a comparison a line with the contenders whose runs take turns."""
    for group in suite.groups if suite.contenders else ():
        names = ", ".join(suite.contenders)
        yield f"  {group[0].label}: {names}" if suite.axes else f"  {names}"


def _problems(error: ScenarioError | CompileError) -> list[dict[str, Any]]:
    """Returns the problems of an error as objects for JSON. The whole output of a compiler is one
    problem."""
    if isinstance(error, CompileError):
        return [{"file": None, "line": None, "path": "switch.program", "what": str(error)}]
    return [
        {
            "file": problem.where.source,
            "line": problem.where.line,
            "path": problem.path,
            "what": problem.what,
            "allowed": problem.allowed,
        }
        for problem in error.problems
    ]
