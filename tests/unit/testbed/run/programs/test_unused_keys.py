"""No key of a scenario is without effect without a word: a run reads it, the scenario is refused,
or a note says that it has no effect."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from unittest.mock import patch

import pytest

from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.run.programs.prepare import compile_points
from agglab.testbed.run.programs.unused_keys import notes, unused_keys
from agglab.testbed.scenario import load
from agglab.testbed.schema import scenario
from agglab.testbed.schema.key import key_of

SECTIONS = (scenario.Scenario, scenario.Switch, scenario.Links, scenario.Timeouts, scenario.Series)
READ_ELSEWHERE = {
    ("Scenario", "description"),  # `agglab list`, the report
    ("Scenario", "conformance"),  # `make conformance`
    ("Switch", "program"),  # while the scenario is loaded: it decides what is compiled
}
READERS = ("load.py", "reader.py", "write.py", "key.py", "describe.py", "checks.py", "compare.py")
"""The modules of scenario/ that read every key in order to read, check or write scenarios."""
TEXT = """
name: keys
backend: virtual
topology: {workers: 2}
switch: {lanes: 64, slots: 8}
workload: {elements: 640, dtype: int32, rounds: 1}
"""


@contextmanager
def reads() -> Iterator[set[tuple[str, str]]]:
    """Collects (class, key) of what is read of scenarios, but not by the modules that read all."""
    found: set[tuple[str, str]] = set()

    def watched(cls: type) -> object:
        names = {item.name for item in fields(cls) if key_of(item)}

        def get(self: object, name: str) -> object:
            file = Path(sys._getframe(1).f_code.co_filename)
            ours = file.parent.name == "scenario" and file.name in READERS
            if name in names and not ours and file.suffix == ".py" and "dataclass" not in file.name:
                found.add((cls.__name__, name))
            return object.__getattribute__(self, name)

        return patch.object(cls, "__getattribute__", get, create=True)

    patches = [watched(cls) for cls in SECTIONS]
    for each in patches:
        each.start()  # type: ignore[attr-defined]
    try:
        yield found
    finally:
        for each in patches:
            each.stop()  # type: ignore[attr-defined]


def test_a_run_in_virtual_time_reads_every_key(tmp_path: Path) -> None:
    path = tmp_path / "keys.yaml"
    path.write_text(TEXT)
    with reads() as found:
        assert run(load(path), tmp_path / "results", [], io.StringIO()) == 0
    every = {(c.__name__, item.name) for c in SECTIONS for item in fields(c) if key_of(item)}
    assert every - found == READ_ELSEWHERE


@pytest.mark.parametrize(
    ("settings", "keys"),
    [
        ([], []),
        (["timeouts.start=60s"], ["timeouts.start"]),
        (["timeouts.start=60s", "backend=mininet"], []),
        (["switch.log=info"], ["switch.log"]),
        (["switch.log=debug"], []),
        (["switch.log=info", "backend=mininet"], []),
        (["switch.partition=dynamic"], ["switch.partition"]),
        (["series.record=false", "series.every=1ms"], ["series.every"]),
        (["series.every=1ms"], []),
        (["workload.restarts=3"], ["workload.restarts"]),
        (["workload.restarts=3", "workload.on_failure=restart"], []),
    ],
)
def test_keys_that_do_nothing_together_are_named(
    tmp_path: Path, settings: list[str], keys: list[str]
) -> None:
    path = tmp_path / "keys.yaml"
    path.write_text(TEXT)
    (point,) = load(path, settings).points
    assert [key for key, _ in unused_keys(point.resolved.scenario)] == keys


def test_a_bridge_has_no_log(tmp_path: Path) -> None:
    path = tmp_path / "keys.yaml"
    text = TEXT.replace("virtual", "mininet").replace("{lanes: 64, slots: 8}", "{target: bridge}")
    path.write_text(f"system: ring\n{text}")
    (point,) = load(path, ["switch.log=debug"]).points
    assert list(unused_keys(point.resolved.scenario)) == [
        ("switch.log", "a bridge runs no P4 program")
    ]


@pytest.mark.parametrize(
    ("settings", "keys"),
    [
        (["libra.sample_every=1"], ["libra.hot"]),
        (["libra.sample_every=2"], []),
        (["libra.sample_every=2", "workload.rounds=1"], ["libra.hot"]),
        (["libra.hot=0"], []),
        (["libra.hot=0", "libra.sample_every=1"], ["libra.sample_every"]),
    ],
)
def test_keys_of_a_system_that_do_nothing_together_are_named(
    tmp_path: Path, settings: list[str], keys: list[str]
) -> None:
    path = tmp_path / "keys.yaml"
    path.write_text(
        "name: keys\nbackend: virtual\nsystem: libra\n"
        "workload: {kind: push_pull, elements: 100, rounds: 4}\n"
    )
    points = load(path, settings).points
    lines = notes(points, compile_points(points))
    assert [line.partition(" has no effect: ")[0] for line in lines] == keys


def test_a_note_is_printed_once(tmp_path: Path) -> None:
    path = tmp_path / "keys.yaml"
    path.write_text(f"{TEXT}sweep: {{seed: [1, 2]}}\n")
    out = io.StringIO()
    run(load(path, ["timeouts.start=60s"]), tmp_path / "results", [], out)
    line = "note: timeouts.start has no effect: in virtual time switches and agents are ready"
    assert out.getvalue().count(line) == 1
