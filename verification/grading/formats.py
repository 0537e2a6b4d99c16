"""Writes a grade in the formats that other programs read: JSON, JUnit XML, Gradescope's
results.json, and a table as CSV."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree import ElementTree

from agglab.verification.grading.lab import Part
from agglab.verification.grading.result import Grade
from agglab.verification.grading.text import diagnosis, number
from p4native.common.printable import plain

_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FORMULA = ("=", "+", "-", "@", "\t")
"""What a cell must not begin with, because a spreadsheet would take it for a formula."""


def as_json(grade: Grade) -> str:
    """Returns the grade as a JSON object (docs/grading.md lists its keys)."""
    return json.dumps(to_values(grade), indent=2)


def to_values(grade: Grade) -> dict[str, Any]:
    """Returns the grade as plain values."""
    verdict = grade.verdict(grade.failed)
    return {
        "lab": grade.lab.name,
        "submission": grade.submission,
        "points": grade.points,
        "of": grade.lab.points,
        "parts": [
            {"name": part.name, "points": part.points, "of": part.of, "failed": [*part.failed]}
            for part in grade.parts
        ],
        "cases": {
            name: grade.verdict(name).passed for part in grade.lab.parts for name in part.names
        },
        "failed": grade.failed or None,
        "says": grade.says or None,
        "story": [] if grade.is_full else [*verdict.story],
        "seed": None if grade.is_full else verdict.seed,
        "replay": None if grade.is_full else verdict.replay or None,
    }


def as_junit(grade: Grade) -> str:
    """Returns the grade as JUnit XML: a suite for each part, and a test for each case."""
    results = grade.parts
    tests = sum(len(part.names) for part in grade.lab.parts)
    failures = sum(len(result.failed) for result in results)
    root = ElementTree.Element("testsuites", _counts(grade.lab.name, tests, failures))
    for part, result in zip(grade.lab.parts, results, strict=True):
        counts = _counts(part.name, len(part.names), len(result.failed))
        suite = ElementTree.SubElement(root, "testsuite", counts)
        for name in part.names:
            attributes = {"name": name, "classname": f"{grade.lab.name}.{part.name}", "time": "0"}
            test = ElementTree.SubElement(suite, "testcase", attributes)
            if name in result.failed:
                _add_failure(test, grade, name)
    ElementTree.indent(root)
    return ElementTree.tostring(root, "unicode", xml_declaration=True) + "\n"


def _counts(name: str, tests: int, failures: int) -> dict[str, str]:
    counts = {"tests": tests, "failures": failures, "errors": 0, "skipped": 0, "time": 0}
    return {"name": name, **{key: str(value) for key, value in counts.items()}}


def _add_failure(test: ElementTree.Element, grade: Grade, name: str) -> None:
    message = grade.said_to(name) or f"{name} does not hold"
    attributes = {"message": _NO_XML.sub("?", message), "type": "failure"}
    failure = ElementTree.SubElement(test, "failure", attributes)
    failure.text = _NO_XML.sub("?", "\n".join(grade.verdict(name).story))


def as_gradescope(grade: Grade) -> str:
    """Returns the grade as Gradescope's results.json: a test for each part. The diagnosis is the
    output of the first part that lacks points, which alone tells it."""
    tests = [_gradescope_test(grade, index, part) for index, part in enumerate(grade.lab.parts, 1)]
    return json.dumps(
        {
            "score": grade.points,
            "output": plain("\n".join(diagnosis(grade)).strip()),
            "output_format": "text",
            "test_output_format": "text",
            "visibility": "visible",
            "stdout_visibility": "hidden",
            "tests": tests,
        },
        indent=2,
    )


def _gradescope_test(grade: Grade, index: int, part: Part) -> dict[str, Any]:
    result = grade.parts[index - 1]
    texts = (f"{name}: {grade.said_to(name)}" for name in result.failed)
    return {
        "number": str(index),
        "name": part.name,
        "score": result.points,
        "max_score": result.of,
        "status": "failed" if result.failed else "passed",
        "output": plain("\n".join(texts)),
        "output_format": "text",
        "visibility": "visible",
    }


def as_csv(grades: Sequence[tuple[str, Grade]]) -> str:
    """Returns a table with a row for each submission. grades: the name and grade of each."""
    lab = grades[0][1].lab
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    parts = [part.name for part in lab.parts]
    writer.writerow(["submission", "points", "of", *parts, "failed", "says", "story"])
    for name, grade in grades:
        writer.writerow([_cell(each) for each in _row(name, grade)])
    return file.getvalue()


def _row(name: str, grade: Grade) -> Iterator[str]:
    yield name
    yield number(grade.points)
    yield number(grade.lab.points)
    yield from (number(part.points) for part in grade.parts)
    yield grade.failed
    yield grade.says
    yield "\n".join(() if grade.is_full else grade.verdict(grade.failed).story)


def _cell(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text
