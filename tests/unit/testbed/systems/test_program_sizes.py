"""What `agglab check` accepts is not too large for the compiler: programs of every system and type
with as many lanes as fit into usual and the largest packets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agglab.testbed.base.paths import P4_FOLDER
from agglab.testbed.scenario import load
from agglab.testbed.schema.system_names import built_in
from agglab.testbed.systems import find
from p4native.compiler.diagnostics import Diagnostics
from p4native.compiler.preprocess import Options, preprocess
from p4native.compiler.syntax.lexer import MAX_TOKENS, tokenize

TEXT = """
name: tried
system: {system}
topology: {{kind: rack, workers: 4}}
links: {{mtu: {mtu}}}
workload: {{{workload}}}
{more}
"""
OF_ONE_TYPE = ("async_sgd",)
NARROW = [("switchml", "float32", f"switchml: {{wire_bits: {bits}}}") for bits in (16, 8, 4)]


def cases() -> Iterator[tuple[str, str, str]]:
    """Yields (system, dtype, further keys)."""
    for system in built_in():
        for dtype in find(system).abilities.dtypes:
            yield system, dtype, ""
    yield from NARROW


def tokens(program: Path, parameters: dict[str, int]) -> int:
    diagnostics = Diagnostics()
    defines = tuple(f"{name}={value}" for name, value in parameters.items())
    options = Options((str(P4_FOLDER),), defines)
    text = preprocess(str(program), options, diagnostics)
    assert text is not None
    found = tokenize(text, str(program), diagnostics)
    assert not diagnostics.failed
    return len(found)


@pytest.mark.parametrize("mtu", [1500, 9000])
@pytest.mark.parametrize(("system", "dtype", "more"), list(cases()))
def test_the_compiler_takes_as_many_lanes_as_fit(
    tmp_path: Path, system: str, dtype: str, more: str, mtu: int
) -> None:
    path = tmp_path / "tried.yaml"
    kind = find(system).abilities.workloads[0]
    workload = f"kind: {kind}" + (f", dtype: {dtype}" if kind not in OF_ONE_TYPE else "")
    path.write_text(TEXT.format(system=system, workload=workload, more=more, mtu=mtu))
    scenario = load(path).points[0].resolved.scenario
    sources = find(system).sources(scenario).values()
    for source in {str(source): source for source in sources}.values():
        program = P4_FOLDER / f"{source.name}.p4"
        assert tokens(program, dict(source.parameters)) < MAX_TOKENS / 2
