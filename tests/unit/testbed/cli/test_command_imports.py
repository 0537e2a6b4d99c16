"""Commands import and read only what they need. These tests run each command in a new process and
look at its modules and at the files that it opened; they do not measure time."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from agglab.testbed.cli.main import COMMANDS
from agglab.testbed.schema import shipped_scenarios
from agglab.testbed.schema.shipped_scenarios import description, names

ROOT = Path(__file__).resolve().parents[4]
PROGRAM = """
import contextlib, io, json, sys
from agglab.testbed.__main__ import run
opened = []
sys.addaudithook(lambda event, given: event == "open" and opened.append(str(given[0])))
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    run()
print(json.dumps([list(sys.modules), opened]))
"""
HEAVY = {"numpy", "mininet", "grpc", "google.protobuf", "p4", "torch"}
OURS = {f"agglab.{part}" for part in ("compiler", "hosts", "switch", "topologies")}
OF_A_RUN = {
    f"agglab.testbed.{part}"
    for part in ("control", "network", "report", "run", "scenario", "systems", "virtual")
}


@dataclass(frozen=True)
class Traced:
    """What a command did: the modules that it imported, and the files that it opened."""

    modules: set[str]
    opened: list[str]

    def scenarios(self) -> list[str]:
        """The names of the scenario files that were opened, as often as they were."""
        files = (Path(name) for name in self.opened)
        return sorted(file.stem for file in files if file.parent == ROOT / "scenarios")


def traced(*words: str) -> Traced:
    command = [sys.executable, "-c", PROGRAM, *words]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    modules, opened = json.loads(done.stdout)
    return Traced(set(modules), opened)


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_imports_nothing_that_a_run_needs(name: str) -> None:
    help_of = traced(*filter(None, (name, "--help")))
    assert help_of.modules & (HEAVY | OURS | OF_A_RUN | {"yaml"}) == set()


@pytest.mark.parametrize("words", [("--version",), ("clean",), ("list",), ("gone",)])
def test_what_computes_nothing_imports_nothing_that_a_run_needs(words: tuple[str, ...]) -> None:
    assert traced(*words).modules & (HEAVY | OURS | OF_A_RUN) == set()


def test_list_reads_every_scenario_once() -> None:
    assert traced("list").scenarios() == names()


def test_check_reads_no_other_scenario_and_needs_no_network() -> None:
    check = traced("check", "quickstart")
    assert check.scenarios() == ["quickstart"]
    absent = {"mininet", "grpc", "agglab.testbed.real", "agglab.testbed.virtual"}
    assert check.modules & absent == set()
    assert "numpy" in check.modules  # or the tests above show nothing


def test_descriptions_are_those_of_the_checked_scenarios() -> None:
    from agglab.testbed.scenario import find, load

    for name in ("quickstart", "layers", "tenants"):
        assert description(name) == load(find(name)).description != ""


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(shipped_scenarios, "SCENARIO_FOLDER", tmp_path)
    return tmp_path / "mine.yaml"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: description\ndescription: 'about: it'\nseed: [1", "about: it"),
        (
            "a: {description: inner}\nb: [description, x]\ndescription: |\n  two\n  lines\n",
            "two\nlines\n",
        ),
        ("x: &a 1\ny: *a\ndescription: after an alias\n", "after an alias"),
        ("description: {of: no text}\nseed: description\n", ""),
        ("seed: 1\n", ""),
        ("[1, 2]", ""),
        ("", ""),
    ],
)
def test_a_description_is_found_where_it_stands(shipped: Path, text: str, expected: str) -> None:
    shipped.write_text(text)
    assert description("mine") == expected


def test_a_file_that_is_not_yaml_does_not_hide_the_others(
    shipped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from agglab.testbed.cli.main import main

    shipped.write_text("a: [\x07")
    shipped.with_name("other.yaml").write_text("description: fine\n")
    assert main(["list"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "mine   (this file cannot be read; `./agglab check mine` says why)",
        "other  fine",
    ]
