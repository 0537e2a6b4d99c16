"""`agglab dissector`: writes a Wireshark dissector or scapy layers of compiled P4 programs."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from agglab.testbed.base import terminal
from agglab.testbed.base.errors import CompileError
from agglab.testbed.base.problems import problem_of
from agglab.testbed.cli import arguments
from agglab.testbed.results.captures.dissectors import of_programs, protocol_name
from agglab.testbed.results.captures.scapy_layers import layers
from agglab.testbed.run.programs.prepare import compile_points
from agglab.testbed.run.programs.program import Program
from agglab.testbed.scenario import find, load
from p4native.switch import PipelineError
from p4native.switch import Program as Described
from p4native.switch.wireshark import dissector


def main(words: list[str]) -> int:
    """Writes the dissector of a program's JSON, or of all programs of a scenario. With --scapy,
    writes the scapy layers of one program."""
    options = arguments.parse("dissector", arguments.dissector, words)
    try:
        return terminal.put(_scapy(options) if options.scapy else _lua(options), options.out)
    except PipelineError as error:
        raise CompileError(str(error)) from None


def _lua(options: Namespace) -> str:
    if options.program.endswith(".json"):
        path = Path(options.program)
        return dissector(Described.read(path), options.name or protocol_name(path.stem))
    return of_programs(_compiled(options))


def _scapy(options: Namespace) -> str:
    path = Path(options.program)
    if path.suffix != ".json":
        jsons = {program.json: program.source.stem for program in _compiled(options)}
        if len(jsons) != 1:
            what = f"has {len(jsons)} programs, and a module of scapy layers is for one"
            raise problem_of(path, what, "a scenario with one program, or a program's .json")
        ((path, stem),) = jsons.items()
    else:
        stem = path.stem
        Described.read(path)  # checks it
    return layers(json.loads(path.read_text(encoding="utf-8")), options.name or stem)


def _compiled(options: Namespace) -> Iterator[Program]:
    """Yields the program of each switch of a scenario."""
    for prepared in compile_points(load(find(options.program), options.set).points):
        yield from prepared.programs.values()
