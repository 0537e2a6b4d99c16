"""`agglab fill`: gives a running switch its program over P4Runtime, and fills its tables.

The file with the entries is one that `agglab export` wrote, or one of p4lang's tutorials.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agglab.testbed.base.exit_codes import INVALID, PASSED
from agglab.testbed.base.problems import Problem, ScenarioError, Where
from agglab.testbed.cli import arguments
from agglab.testbed.run.programs.user_entries import load, read
from agglab.testbed.systems.plan import Entries
from p4native.bmv2.errors import ControlError
from p4native.common.files import read_bytes
from p4native.switch import PipelineError, Program

ANSWER_S = 10.0
"""How long to wait for a switch to answer."""


def main(words: Sequence[str]) -> int:
    """Runs `agglab fill ADDRESS DEVICE_ID RUNTIME.json`. Returns the exit code."""
    options = arguments.parse("fill", arguments.fill, words)
    try:
        content = load(options.runtime)
        p4info, program = (_file(options.runtime, content, k) for k in ("p4info", "bmv2_json"))
        entries = read(options.runtime, Program.read(program))
        _fill(options, p4info, program, entries)
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return INVALID
    except (ControlError, PipelineError, ScenarioError) as error:
        print(error, file=sys.stderr)
        return INVALID
    return PASSED


def _file(runtime: Path, content: Mapping[str, Any], key: str) -> Path:
    """Returns the path of a file that the runtime file names. A relative path starts from the
    runtime file's folder or, as in the tutorials, from the current one. Raises ScenarioError."""
    given = content.get(key)
    if not isinstance(given, str) or not given:
        problem = f"{given!r} is not a path" if key in content else "is missing"
        raise ScenarioError([Problem(Where(str(runtime)), key, problem, "the path of a file")])
    folders = dict.fromkeys((runtime.parent, Path()))
    paths = [folder / given for folder in folders]
    for path in paths:
        if path.is_file():
            return path
    tried = " or ".join(map(str, paths))
    problem = f"there is no file {tried}; compile the program first"
    raise ScenarioError([Problem(Where(str(runtime)), key, problem)])


def _fill(options: argparse.Namespace, p4info: Path, program: Path, entries: Entries) -> None:
    from agglab.testbed.real.p4runtime import P4RuntimeClient

    try:
        client = P4RuntimeClient(options.address, options.device_id, p4info)
    except ValueError as error:
        raise ControlError(f"{p4info}: {error}") from None
    try:
        if not client.answers(ANSWER_S):
            raise ControlError(f"no switch answers P4Runtime at {options.address}")
        client.become_primary()
        client.set_pipeline(read_bytes(program))
        client.insert(entries)
    except ValueError as error:  # the P4Info is of another program than the JSON
        raise ControlError(f"{p4info}: {error}") from None
    finally:
        client.close()
