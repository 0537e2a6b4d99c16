"""The packet tests hold for the interpreter, too; it names what it does not know in the others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from p4native.compiler.backend import emit
from p4native.compiler.diagnostics import Diagnostics, render
from p4native.compiler.frontend import compile_file
from p4native.compiler.preprocess import Options
from p4native.stf import Binder, Run, StfError, parse
from p4native.verification.interpreter import Machine, UnknownConstruct
from p4native.verification.interpreter.engine import Specification

SCRIPTS = sorted((Path(__file__).resolve().parents[2] / "packets").glob("*.stf"))
UNKNOWN = {
    "action_profile": "a member of an action profile",
    "action_selector": "a member of an action profile",
    "digest": "calls of digest",
    "direct_counter": "calls of direct_counter.count",
    "direct_meter": "a meter's rates",
    "log_and_assert": "calls of assert",
    "meters": "a meter's rates",
    "random_range": "calls of random",
    "registers": "the command register_write",
}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_packet_tests(script: Path) -> None:
    diagnostics = Diagnostics()
    program = compile_file(str(script.with_suffix(".p4")), Options(), diagnostics)
    emitted = None if program is None else emit(program, diagnostics)
    assert program is not None and emitted is not None, render(diagnostics.entries)
    binder = Binder(json.loads(json.dumps(emitted[0])))  # a script's names are the JSON's
    run = Run(binder, Specification(Machine(program)))
    commands = parse(script.read_text())
    if script.stem in UNKNOWN:
        with pytest.raises((UnknownConstruct, StfError), match=UNKNOWN[script.stem]):
            run.execute(commands)
    else:
        assert run.execute(commands) == []
