"""The file wrong.yaml: what it makes of a solution, and the message for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from agglab.testbed.base.problems import ScenarioError
from agglab.verification.grading import wrong

SOLUTION = "one two two three"


def made(tmp_path: Path, text: str) -> list[wrong.Wrong]:
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    return wrong.read(path, SOLUTION)


def test_texts_are_replaced_one_after_the_other(tmp_path: Path) -> None:
    text = """
- {name: a, meets: x, find: one, replace: two}
- {name: b, changes: [{find: one, replace: four}, {find: four, replace: five}]}
"""
    assert made(tmp_path, text) == [
        wrong.Wrong("a", "x", "two two two three"),
        wrong.Wrong("b", "", "five two two three"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- {name: a, find: two, replace: x}", "[0]: a: 'two' does not occur exactly once"),
        ("- {name: a, find: gone, replace: x}", "[0]: a: 'gone' does not occur exactly once"),
        ("- {name: a}", "[0]: a: 'None' does not occur exactly once"),
        ("- {find: one, replace: x}", "[0]: is no entry with a name"),
        ("- {name: a, fnd: one}", "[0]: is no entry with a name"),
        ("name: a", "is not a list"),
        ("[", "cannot be read"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        made(tmp_path, text)
    assert message in str(caught.value)
