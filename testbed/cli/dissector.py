"""`agglab dissector`: writes a Wireshark dissector of compiled P4 programs."""

from __future__ import annotations

from pathlib import Path

from agglab.testbed.base import terminal
from agglab.testbed.base.errors import CompileError
from agglab.testbed.cli import arguments
from agglab.testbed.results.captures.dissectors import of_programs, protocol_name
from agglab.testbed.run.programs.prepare import compile_points
from agglab.testbed.scenario import find, load
from p4native.switch import PipelineError
from p4native.switch import Program as Described
from p4native.switch.wireshark import dissector


def main(words: list[str]) -> int:
    """Writes the dissector of a program's JSON, or of all programs of a scenario."""
    options = arguments.parse("dissector", arguments.dissector, words)
    try:
        if options.program.endswith(".json"):
            path = Path(options.program)
            script = dissector(Described.read(path), options.name or protocol_name(path.stem))
        else:
            suite = load(find(options.program), options.set)
            compiled = compile_points(suite.points)
            script = of_programs(p for each in compiled for p in each.programs.values())
    except PipelineError as error:
        raise CompileError(str(error)) from None
    return terminal.put(script, options.out)
