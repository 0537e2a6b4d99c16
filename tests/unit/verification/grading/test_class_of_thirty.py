"""A class of thirty, some of them hostile: who is right gets all points and nobody else, within
five minutes of two processors, and nothing is left."""

from __future__ import annotations

import os
import resource
import tempfile
from pathlib import Path

import needs
import pytest

from agglab.testbed.base.paths import LAB_FOLDER
from agglab.verification.grading import lab as labs
from agglab.verification.grading.grade import grades
from agglab.verification.grading.sandbox import Limits

LAB = LAB_FOLDER / "05-loss"
BUDGET_CPU_S = 2 * 5 * 60
RIGHT = 6
EGRESS = "apply { receivers.apply(); }"
FIRST = "        if (!hdr.course.isValid()) {"
EXTRACT = "packet.extract(hdr.ethernet);"
AGAIN = "recirculate_preserving_field_list(0);"
HOSTILE = {
    "drops": (FIRST, f"        mark_to_drop(standard_metadata);\n        return;\n{FIRST}"),
    "floods": (FIRST, f"        standard_metadata.mcast_grp = 1;\n        return;\n{FIRST}"),
    "resubmits": (FIRST, f"        resubmit_preserving_field_list(0);\n{FIRST}"),
    "recirculates": (EGRESS, f"apply {{ {AGAIN} receivers.apply(); }}"),
    "multiplies": (EGRESS, f"apply {{ clone(CloneType.E2E, 1); {AGAIN} receivers.apply(); }}"),
    "parses for ever": (
        EXTRACT,
        f"{EXTRACT}\n        transition around;\n    }}\n    state around {{\n"
        "        packet.advance(0);\n        transition select(hdr.ethernet.type) "
        "{ 0x1234: around; default: go; }\n    }\n    state go {",
    ),
    "huge register": ("register<bit<8>>(CELLS)  seen;", "register<bit<8>>(2147483647) seen;"),
    "reads a file": ("#include <core.p4>", '#include <core.p4>\n#include "/etc/passwd"'),
    "shows a file": ("#include <core.p4>", '#include <core.p4>\n#line 1 "/etc/passwd"\nx'),
    "includes the solution": ("#include <core.p4>", '#include "solution.p4"'),
}


def handed_in(folder: Path) -> dict[str, Path]:
    """Writes the submissions, and returns them by name."""
    lab = labs.read(LAB)
    right = (LAB / "solution.p4").read_text()
    texts = {f"right {number}": f"// {number}\n{right}" for number in range(RIGHT)}
    texts["skeleton"] = (LAB / "skeleton.p4").read_text()
    texts |= {wrong.name: wrong.text for wrong in lab.wrong()}
    for name, (find, replace) in HOSTILE.items():
        assert right.count(find) >= 1, name
        texts[name] = right.replace(find, replace, 1)
    paths = {name: folder / f"{number}.p4" for number, name in enumerate(texts)}
    for name, path in paths.items():
        path.write_text(texts[name])
    return paths


def children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.long
@needs.mark("network namespaces")
def test_a_class_of_thirty_is_graded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "temporary"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    paths = handed_in(tmp_path)
    assert len(paths) == 30
    before_s = children_cpu_s()
    at_once = len(os.sched_getaffinity(0))
    names = [*paths]
    graded = dict(grades(labs.read(LAB), [*paths.values()], Limits(), at_once))
    assert children_cpu_s() - before_s < BUDGET_CPU_S
    full = {names[index] for index, grade in graded.items() if grade.is_full}
    assert full == {name for name in names if name.startswith("right ")}
    assert len(graded) == 30 and all(grade.says or grade.is_full for grade in graded.values())
    assert not list(scratch.iterdir())
