"""The command `agglab shell`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agglab.testbed.base.errors import NodeFailed
from agglab.testbed.base.exit_codes import FAILED, INTERRUPTED
from agglab.testbed.base.problems import problem_of
from agglab.testbed.cli import arguments
from agglab.testbed.cli.shell.foreground import give_terminal
from agglab.testbed.cli.shell.prompt import Prompt, lines_of
from agglab.testbed.cli.shell.refused import Refused
from agglab.testbed.cli.shell.session import Session
from agglab.testbed.experiment.scenario_run import check_machine, contained
from agglab.testbed.run.programs.prepare import Prepared, compile_points, load_workers
from agglab.testbed.scenario import Point, Suite, find, load
from p4native.common.printable import plain


def main(words: Sequence[str]) -> int:
    """Returns 0 if the user has left, and 1 if a command of a file was refused or the network could
    not be built. Raises ScenarioError, CompileError or MachineLacks before anything has started."""
    options = arguments.parse("shell", arguments.shell, words)
    suite = load(find(options.scenario), options.set, options.folder)
    point = only(suite)
    check_machine(suite)
    (prepared,) = compile_points([point])
    load_workers([point])

    def interact(scratch: Path) -> int:
        return _interact(point, prepared, scratch, options.commands)

    try:
        return contained(suite, interact, is_elsewhere=False)
    finally:
        if sys.stdin.isatty():
            give_terminal(os.getpgrp())  # in the network's namespaces nobody can


def only(suite: Suite) -> Point:
    """Returns the only run of a suite. In virtual time it has captures, which take no virtual time.
    Raises ScenarioError if there are several runs."""
    if len(suite.points) > 1:
        what = f"has {len(suite.points)} runs, and a shell opens one"
        raise problem_of(suite.source, what, "a scenario without `sweep` and `compare`")
    (point,) = suite.points
    if not point.resolved.virtual:
        return point
    scenario = point.resolved.scenario
    recorded = replace(scenario, switch=replace(scenario.switch, pcap=True))
    return replace(point, resolved=replace(point.resolved, scenario=recorded))


def _interact(point: Point, prepared: Prepared, scratch: Path, commands: Path | None) -> int:
    """Builds the network, and removes it when the user leaves."""
    try:
        lines = lines_of(commands)
        with Session(point, prepared, scratch, _say) as session:
            session.tell_news()
            prompt = Prompt(session)
            return prompt.interact() if lines is None else prompt.read(lines)
    except (Refused, NodeFailed) as error:
        print(plain(str(error)), file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print()
        return INTERRUPTED


def _say(text: str) -> None:
    print(plain(text), flush=True)
