"""The file lab.yaml: what is read from it, and the message for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest
from submissions import ECHO, FIGURE, FORWARD

from agglab.testbed.base.problems import ScenarioError
from agglab.verification.grading import lab

RIGHT = """
title: A title
file: a.p4
idea: An idea.
parts:
- name: packets
  points: 4
  cases:
  - {id: one, stf: one.stf, says: It says so.}
"""


def test_an_exercise_is_read() -> None:
    echo = lab.read(ECHO)
    assert (echo.name, echo.title, echo.kind, echo.points) == ("01-echo", "The echo", ".p4", 9)
    assert [part.name for part in echo.parts] == ["compiles", "packets"]
    assert echo.parts[1].cases[1].registers == ("seen[0]",)
    runs, schedules = lab.read(FORWARD).parts[1:]
    assert runs.cases[0].settings == ("workload.rounds=1",)
    assert schedules.cases[0].schedules == 3
    settings = lab.read(FIGURE).parts[1].cases[0].settings
    assert settings == ("links.loss=0", "expect={exact: true, totals.retransmitted: 0}")


def test_settings_and_expectations_keep_their_types(tmp_path: Path) -> None:
    """A text in quotes stays a text, also inside lists and mappings."""
    case = "{id: one, expect: {failure: {worker: '3'}, findings: [a, '1']}, says: x, settings: "
    case += "{name: 'no', seed: 7, jobs: [{name: '8', workers: [h1]}]}}"
    text = RIGHT.replace("file: a.p4", "file: a.yaml")
    (tmp_path / "lab.yaml").write_text(text[: text.index("  - {")] + f"  - {case}\n")
    (read,) = lab.read(tmp_path).parts[1].cases
    assert read.settings == (
        'name="no"',
        "seed=7",
        'jobs=[{name: "8", workers: [h1]}]',
        'expect={failure: {worker: "3"}, findings: [a, "1"]}',
    )


MISTAKES = {
    "title: A title": ("", "title: is missing"),
    "file: a.p4": ("file: ../a.p4", "file: is not a file name"),
    "name: packets": ("name: [x]", "parts[0].name: is not a text"),
    "points: 4": ("points: none", "parts[0].points: is not a whole number"),
    "id: one, ": ("", "parts[0].cases[0].id: is missing"),
    "stf: one.stf": ("stf: two.stf", "two.stf does not exist"),
    "stf: one": ("python: one", "has 0 of the keys that say how a case is judged"),
    "stf: one.stf,": ("stf: one.stf, stf2: x,", "parts[0].cases[0].stf2: unknown key"),
    "says: It says so.": ("says: ''", "parts[0].cases[0].says: is not a text"),
    "  - {id": (
        "  - {id: one, stf: one.stf, says: x}\n  - {id",
        "two cases or remarks have the id one",
    ),
    "idea: An idea.": ("idea: An idea.\npart: 1", "part: unknown key, did you mean 'parts'?"),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, text: str) -> None:
    (tmp_path / "one.stf").touch()
    assert text in RIGHT
    wrong, message = MISTAKES[text]
    (tmp_path / "lab.yaml").write_text(RIGHT)
    assert lab.read(tmp_path).points == 5
    (tmp_path / "lab.yaml").write_text(RIGHT.replace(text, wrong))
    with pytest.raises(ScenarioError) as caught:
        lab.read(tmp_path)
    (problem,) = caught.value.problems
    assert message in str(problem) and str(problem).startswith(f"{tmp_path}/lab.yaml:")
