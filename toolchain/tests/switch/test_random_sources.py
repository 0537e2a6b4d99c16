"""Random P4 programs through our compiler: native code under sanitizers against the interpreter.

`make random` compares thousands with p4c and BMv2, where those are.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from switch_interpreter import Interpreter
from switch_sanitized import Sanitized

from p4native.compiler.backend import emit
from p4native.compiler.diagnostics import Diagnostics, render
from p4native.compiler.frontend import compile_file
from p4native.compiler.preprocess import Options
from p4native.verification.random_programs import draw_case

GROUPS = {1: [(1, 5), (2, 5)]}
SESSIONS = {1: [(3, 0)], 2: [(0, 0)]}
SEEDS = (1, 4, 7, 10)


def compiled(program: str, folder: Path) -> dict[str, Any]:
    path = folder / "random.p4"
    path.write_text(program)
    diagnostics = Diagnostics()
    typed = compile_file(str(path), Options(), diagnostics)
    emitted = None if typed is None else emit(typed, diagnostics)
    assert emitted is not None, render(diagnostics.entries)
    return json.loads(json.dumps(emitted[0]))


@pytest.mark.long(but=["1"])
@pytest.mark.parametrize("seed", SEEDS)
def test_random_sources_equal_the_interpreter(seed: int, tmp_path: Path) -> None:
    case = draw_case(seed)
    document = compiled(case.program, tmp_path)
    native, model = Sanitized(json.dumps(document)), Interpreter(document)
    for number, replicas in GROUPS.items():
        native.set_multicast_group(number, replicas)
        model.groups[number] = replicas
    for number, replicas in SESSIONS.items():
        native.set_clone_session(number, replicas)
        model.sessions[number] = replicas
    settings = len(GROUPS) + len(SESSIONS)
    for now, (port, frame) in enumerate(case.packets):
        native.process(port, frame, now)
    answers = native.finish()[settings:]
    for now, (port, frame) in enumerate(case.packets):
        assert answers[now] == model.process(port, frame, now), (now, port, frame.hex())


def test_a_seed_is_a_program() -> None:
    """The same in every process, or a seed would say nothing."""
    case = draw_case(3)
    assert case == draw_case(3)
    assert case.program != draw_case(4).program
    assert len({frame for _, frame in case.packets}) == len(case.packets)
