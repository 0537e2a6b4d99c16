"""What a failed packet case shows, and which remark is made on it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from submissions import ECHO, graded, solution, written

from agglab.testbed.base.problems import ScenarioError
from agglab.verification.grading import lab, symptoms
from agglab.verification.grading.formats import as_json, as_junit
from agglab.verification.grading.lab import UNDROPPED, Case, Remark
from agglab.verification.grading.symptoms import Sent
from p4native.stf import Binder, Expect, Mismatch, parse

FRAME = b"\1\5"


def sent(*ports: int, cells: dict[str, int] | None = None) -> Sent:
    return Sent(1, b"\1\2", [(port, FRAME) for port in ports], {}, cells or {})


def expected(text: str) -> Expect:
    (command,) = parse(text)
    assert isinstance(command, Expect)
    return command


@pytest.fixture
def binder(tmp_path: Path) -> Binder:
    from agglab.testbed.run.programs.program import compile_program

    return Binder(compile_program(ECHO / "solution.p4", "agglab", {}).description)


WANTED = "expect 2 0102"
CAME = {
    "nothing": (sent(), Mismatch(2, 0, expected(WANTED), None)),
    "elsewhere": (sent(1), Mismatch(2, 0, expected(WANTED), None)),
    "different": (sent(2), Mismatch(2, 0, expected(WANTED), FRAME)),
    "undropped": (sent(0), Mismatch(0, 0, None, FRAME)),
    "unexpected": (sent(0, 2), Mismatch(0, 0, None, FRAME)),
}


@pytest.mark.parametrize("how", CAME)
def test_how_a_packet_came_is_told_apart(binder: Binder, how: str) -> None:
    packet, wrong = CAME[how]
    shown = symptoms.of(packet, wrong, binder)
    assert shown["came"] == {how}
    assert shown["port"] == {str(port) for port, _ in packet.came}


def test_fields_that_differ_and_cells_are_symptoms(binder: Binder) -> None:
    wrong = Mismatch(2, 0, expected("expect 2 0100000007"), b"\1\0\0\0\5")
    shown = symptoms.of(sent(2, cells={"seen[0]": 3}), wrong, binder)
    assert shown["differs"] == {"question.count"} and shown["seen[0]"] == {"3"}


def remarked(*remarks: Remark, **shown: str) -> str:
    case = Case("x", "stf", Path(), "", remarks=remarks)
    return symptoms.remark(case, {name: {value} for name, value in shown.items()})


def test_the_first_remark_all_of_whose_symptoms_show_is_made() -> None:
    full = Remark("full", {"came": ("nothing",), "seen": ("3", "7")}, "")
    silent = Remark("silent", {"came": ("nothing",)}, "")
    assert remarked(full, silent, came="nothing", seen="7") == "full"
    assert remarked(full, silent, came="nothing", seen="1") == "silent"
    assert remarked(full, silent, came="nothing") == "silent"
    assert remarked(full, silent, came="different", seen="7") == ""


def test_a_packet_that_nobody_dropped_is_said_to_be_one(tmp_path: Path) -> None:
    """The test of an echo expects nothing for some packets; without a decision they leave by port
    0."""
    case = lab.read(ECHO).parts[1].cases[0]
    assert case.remarks == (UNDROPPED,)
    assert remarked(*case.remarks, came="undropped") == "undropped"


def test_what_the_switch_cannot_run_is_not_blamed_on_the_case(tmp_path: Path) -> None:
    text = solution(ECHO).replace(
        "register<bit<32>>(256) seen;", "register<bit<32>>(2147483647) seen;"
    )
    grade = graded(written(tmp_path, text))
    assert grade.verdict(grade.failed).message == "unrunnable"
    assert grade.says == "The program compiles, but the switch cannot run it."
    shown = json.loads(as_json(grade))
    assert shown["says"] == grade.says and not any(
        "agglab-grade" in line for line in shown["story"]
    )
    assert grade.says in as_junit(grade)


WRONG = {
    "when: {came: nothing}": ("when: nothing", "instead[0].when: is not a mapping of symptoms"),
    "id: silent": ("id: one", "two cases or remarks have the id one"),
    "says: Silent.": ("sais: x", "instead[0].sais: unknown key"),
    "stf: one.stf": ("scenario: one.stf", "instead: is only for cases with packets"),
}


@pytest.mark.parametrize("text", WRONG)
def test_a_mistake_in_a_remark_is_named(tmp_path: Path, text: str) -> None:
    right = (
        "{title: T, file: a.p4, idea: I, parts: [{name: p, points: 4, cases: ["
        "{id: one, stf: one.stf, says: So., instead: ["
        "{id: silent, when: {came: nothing}, says: Silent.}]}]}]}"
    )
    wrong, message = WRONG[text]
    (tmp_path / "one.stf").touch()
    (tmp_path / "lab.yaml").write_text(right)
    assert lab.read(tmp_path).texts["silent"] == "Silent."
    (tmp_path / "lab.yaml").write_text(right.replace(text, wrong))
    with pytest.raises(ScenarioError) as caught:
        lab.read(tmp_path)
    assert message in str(caught.value)
