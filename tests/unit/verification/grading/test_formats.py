"""Each format, read by a parser that is not the grader's, and compared with the grade."""

from __future__ import annotations

import csv
import io
import json
from xml.dom import minidom

import pytest
from submissions import ECHO

from agglab.verification.grading import formats
from agglab.verification.grading import lab as labs
from agglab.verification.grading.result import Grade, Judged

LAB = labs.read(ECHO)
STORY = ("  sent to port 2: <question> & \x1b[31m\x00\ud800", "second line")
FAILED = Judged("counts", False, STORY, 7, "./agglab run x")
HALF = Grade(
    LAB,
    "ada.p4",
    {each.case: each for each in (Judged("compiles", True), Judged("answers", True), FAILED)},
)
FULL = Grade(
    LAB, "bob.p4", {name: Judged(name, True) for name in ("compiles", "answers", "counts")}
)
REFUSED = Grade(LAB, "=cmd", {}, "=1+1 is a link.")
GRADES = {"half": HALF, "full": FULL, "refused": REFUSED}


def test_points_are_shared_by_the_cases_of_a_part() -> None:
    assert [(part.points, part.of) for part in HALF.parts] == [(1, 1), (4, 8)]
    assert (HALF.points, FULL.points, REFUSED.points) == (5, 9, 0)
    assert (HALF.failed, FULL.failed, REFUSED.failed) == ("counts", "", "compiles")


def test_a_case_that_was_not_judged_has_not_passed() -> None:
    early = Grade(LAB, "x", {"compiles": Judged("compiles", True)}, "It had not ended after 9 s.")
    assert early.points == 1 and early.failed == "answers"
    assert early.verdict("answers").story == ("It had not ended after 9 s.",)


def test_json() -> None:
    values = json.loads(formats.as_json(HALF))
    assert values["points"] == 5 and values["of"] == 9 and values["failed"] == "counts"
    assert values["says"] == "A packet was not counted in its slot."
    assert values["seed"] == 7 and values["replay"] == "./agglab run x"
    assert values["cases"] == {"compiles": True, "answers": True, "counts": False}
    assert json.loads(formats.as_json(FULL))["story"] == []


@pytest.mark.parametrize("grade", GRADES.values(), ids=list(GRADES))
def test_junit(grade: Grade) -> None:
    root = minidom.parseString(formats.as_junit(grade).encode()).documentElement
    assert root.tagName == "testsuites"
    suites = root.getElementsByTagName("testsuite")
    assert [suite.getAttribute("name") for suite in suites] == ["compiles", "packets"]
    for element in (root, *suites):
        tests = element.getElementsByTagName("testcase")
        failures = element.getElementsByTagName("failure")
        assert int(element.getAttribute("tests")) == len(tests) > 0
        assert int(element.getAttribute("failures")) == len(failures)
        assert element.getAttribute("errors") == element.getAttribute("skipped") == "0"
    failed = {each.parentNode.getAttribute("name") for each in root.getElementsByTagName("failure")}
    assert failed == {case for part in grade.parts for case in part.failed}
    for test in root.getElementsByTagName("testcase"):
        assert test.getAttribute("classname").startswith("01-echo.")
        assert float(test.getAttribute("time")) >= 0


def test_junit_says_what_is_wrong() -> None:
    root = minidom.parseString(formats.as_junit(HALF).encode()).documentElement
    (failure,) = root.getElementsByTagName("failure")
    assert failure.getAttribute("message") == "A packet was not counted in its slot."
    assert "<question> & " in failure.firstChild.data and "second line" in failure.firstChild.data


GRADESCOPE = {
    "score": (int, float),
    "output": str,
    "output_format": str,
    "test_output_format": str,
    "visibility": str,
    "stdout_visibility": str,
    "tests": list,
}
GRADESCOPE_TEST = {
    "score": (int, float),
    "max_score": (int, float),
    "status": str,
    "name": str,
    "number": str,
    "output": str,
    "output_format": str,
    "visibility": str,
}
VISIBILITIES = {"hidden", "after_due_date", "after_published", "visible"}


@pytest.mark.parametrize("grade", GRADES.values(), ids=list(GRADES))
def test_gradescope(grade: Grade) -> None:
    values = json.loads(formats.as_gradescope(grade))
    for keys, given in ((GRADESCOPE, values), *((GRADESCOPE_TEST, t) for t in values["tests"])):
        assert given.keys() == keys.keys()
        assert all(isinstance(given[key], kind) for key, kind in keys.items())
        assert given["output_format"] in ("text", "html", "simple_format", "md", "ansi")
        assert given["visibility"] in VISIBILITIES
    assert sum(test["score"] for test in values["tests"]) == values["score"] == grade.points
    for test in values["tests"]:
        assert test["status"] == ("passed" if test["score"] == test["max_score"] else "failed")


def test_csv() -> None:
    text = formats.as_csv([("ada", HALF), ("bob", FULL), ("=cmd", REFUSED)])
    ada, bob, hostile = csv.DictReader(io.StringIO(text))
    assert ada["points"] == "5" and ada["packets"] == "4" and ada["failed"] == "counts"
    assert ada["story"].splitlines()[-1] == "second line"
    assert bob["points"] == "9" and bob["says"] == bob["story"] == ""
    assert hostile["submission"] == "'=cmd" and hostile["story"] == "'=1+1 is a link."
