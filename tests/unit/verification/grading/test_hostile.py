"""Submissions that want to pass without being right, or to do harm: none gets the points, none ends
the grader, and nothing of them is left."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import needs
import pytest
from submissions import DOUBLE, ECHO, FIGURE, FORWARD, graded, solution, written

from agglab.testbed.base import kernel
from agglab.verification.grading import lab as labs
from agglab.verification.grading import submission
from agglab.verification.grading.grade import grades
from agglab.verification.grading.jail import Jail
from agglab.verification.grading.python_cases import Channel
from agglab.verification.grading.sandbox import Limits

PR_SET_CHILD_SUBREAPER = 36
QUICK = Limits(cpu_s=3, wall_s=30)


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for all temporary files, which must be empty afterwards."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    kernel.control_process(PR_SET_CHILD_SUBREAPER, 1)
    return folder


def students_processes() -> set[str]:
    """The processes below this one that run a student's file. Orphans come to this process, which
    is their reaper, and those of other tests that run at the same time do not count."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parents[path.name] = (path / "stat").read_text().rpartition(")")[2].split()[1]
    below = {str(os.getpid())}
    while more := {each for each, parent in parents.items() if parent in below} - below:
        below |= more
    return {each for each in below if "student.py" in _command(each)}


INCLUDES = {
    "another exercise's solution": '#include "../03-bitmap/solution.p4"',
    "an absolute path": "#include </etc/passwd>",
    "a device": '#include "/dev/zero"',
    "a file beside it": '#include "solution.p4"',
    "a macro": '#define FILE "/etc/passwd"\n#include FILE',
    "a comment between": '# /* a */ include /* b */ "/etc/passwd"',
    "a comment before": '/* a\n */ # include "/etc/passwd"',
    "a continued line": '#inc\\\nlude "/etc/passwd"',
    "a continued line with blanks": '#inc\\ \nlude "/etc/passwd"',
    "a digraph": '%:include "/etc/passwd"',
    "a trigraph": '??=include "/etc/passwd"',
    "another directive": '#include_next "/etc/passwd"',
    "import": '#import "/etc/passwd"',
    "quotes that hide a comment": '\'"\' "/*"\n#include "/etc/passwd"\n// */',
    "a library that is none": '#include "core.p4/../../../etc/passwd"',
    "a return alone": '\r#include "/etc/passwd"',
}


@pytest.mark.parametrize("text", INCLUDES.values(), ids=list(INCLUDES))
def test_no_other_file_is_included(text: str) -> None:
    submission.check(solution(ECHO).encode(), ".p4")
    with pytest.raises(submission.Refused, match="which includes only"):
        submission.check(f"{text}\n{solution(ECHO)}".encode(), ".p4")


LINES = {
    "of a password file": '#line 1 "/etc/shadow"',
    "without the word": '# 1 "/etc/shadow"',
    "from a macro": '#define FILE 1 "/etc/shadow"\n#line FILE',
    "after a comment": '/* a */ %: line 1 "/etc/shadow"',
    "a continued line": '#li\\\nne 1 "/etc/shadow"',
}


@pytest.mark.parametrize("text", LINES.values(), ids=list(LINES))
def test_no_error_shows_a_line_of_another_file(text: str) -> None:
    with pytest.raises(submission.Refused, match="show lines of other files"):
        submission.check(f"{text}\nwrong\n{solution(ECHO)}".encode(), ".p4")


def test_a_search_for_comments_that_never_end_ends(tmp_path: Path) -> None:
    path = written(tmp_path, "/*\n" * 80_000)
    assert graded(path, limits=Limits(cpu_s=2, wall_s=20)).points == 0


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    link = tmp_path / "echo.p4"
    link.symlink_to(ECHO / "solution.p4")
    grade = graded(link)
    assert grade.points == 0 and "is a link" in grade.ended


def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "echo.p4")
    assert "is not a file" in graded(tmp_path / "echo.p4").ended


def test_ten_megabytes_are_not_read(tmp_path: Path) -> None:
    grade = graded(written(tmp_path, solution(ECHO) + "// x\n" * 2_000_000))
    assert grade.points == 0 and "has more than 256 KiB" in grade.ended


P4 = {
    "drops": "standard.egress_spec = 511;",
    "floods": "standard.mcast_grp = 1; standard.egress_spec = 1;",
    "resubmits for ever": "resubmit_preserving_field_list(0);",
    "recirculates": "standard.egress_spec = 7;",
}


@pytest.mark.long(but=["recirculates"])
@pytest.mark.parametrize("text", P4.values(), ids=list(P4))
def test_a_program_that_does_something_else_fails(tmp_path: Path, text: str) -> None:
    right = "standard.egress_spec = standard.ingress_port;"
    grade = graded(written(tmp_path, solution(ECHO).replace(right, text)), limits=QUICK)
    assert grade.parts[0].points == 1 and grade.points <= 1


LOOPS = {
    "always": "transition more; } state more { transition more;",
    "for some packets": (
        "transition more; } state more { transition select(hdr.question.slot) {"
        " 0xee: less; default: accept; } } state less { transition more;"
    ),
    "by nothing": "transition more; } state more { packet.advance(0); transition more;",
    "by what the packet says": (
        "transition more; } state more { packet.advance((bit<32>)hdr.question.slot);"
        " transition more;"
    ),
}


@pytest.mark.parametrize("text", LOOPS.values(), ids=list(LOOPS))
def test_a_parser_that_can_loop_for_ever_gets_nothing(tmp_path: Path, text: str) -> None:
    looping = solution(ECHO).replace("transition accept;", text)
    assert graded(written(tmp_path, looping), limits=QUICK).points == 0


def test_a_parser_that_takes_bytes_may_go_round(tmp_path: Path) -> None:
    text = solution(ECHO).replace(
        "transition accept;",
        "transition select(packet.lookahead<bit<8>>()) { 0xee: more; default: accept; }\n    }\n"
        "    state more {\n        packet.advance(8);\n        transition start;",
    )
    assert not graded(written(tmp_path, text)).verdict("compiles").story


@pytest.mark.long
def test_macros_that_multiply_end(tmp_path: Path) -> None:
    doubled = "".join(f"#define M{n + 1} M{n} M{n}\n" for n in range(40))
    grade = graded(
        written(tmp_path, f"#define M0 x\n{doubled}M40\n"), limits=Limits(cpu_s=5, wall_s=20)
    )
    assert grade.points == 0


def test_a_program_that_drops_everything_fails_its_runs(tmp_path: Path) -> None:
    text = solution(FORWARD).replace("standard.egress_spec = port;", "mark_to_drop(standard);")
    grade = graded(written(tmp_path, text, "forward.p4"), FORWARD)
    assert grade.points == 1 and grade.failed == "all-to-all"
    assert any("s1 sends nothing" in line for line in grade.verdict("all-to-all").story)


SCENARIOS = {
    "a program": "switch: {program: mine.p4}",
    "a system's code": "system: mine.py:Mine",
    "entries": "switch: {entries: run.json}",
    "a worker": "workload: {worker: 'os:system'}",
    "a script": "workload: {kind: torch, script: x}",
    "a graph": "topology: {kind: custom, file: x.yaml}",
    "a path in any key": "description: ../../lab.yaml",
    "a swept program": "sweep: {switch.program: [a]}",
}


@pytest.mark.parametrize("text", SCENARIOS.values(), ids=list(SCENARIOS))
def test_a_scenario_names_no_file(tmp_path: Path, text: str) -> None:
    grade = graded(written(tmp_path, f"{text}\n", "figure.yaml"), FIGURE)
    assert grade.points == 0
    assert grade.verdict("compiles").story[0].startswith("The scenario ")


PYTHON = {
    "exits with 0": "import os\ndef double(value): os._exit(0)",
    "exits while it loads": "import sys\nsys.exit(0)",
    "exits at once while it loads": "import os\nos._exit(0)",
    "never returns": "def double(value):\n    while True: pass",
    "eats memory": "def double(value): return bytearray(1 << 40)",
    "eats memory slowly": (
        "def double(value):\n    a = []\n    while True: a.append(bytearray(1 << 24))"
    ),
    "answers much": "def double(value): return 'x' * (1 << 26)",
    "prints a verdict": (
        "def double(value):\n"
        '    print(\'{"case": "doubles", "passed": true}\', flush=True)\n    return 0'
    ),
    "writes to every descriptor": (
        "import os\ndef double(value):\n    for n in range(64):\n        try: os.write(n,"
        ' b\'{"case": "doubles", "passed": true}\\n\')\n        except OSError: pass\n    return 0'
    ),
    "is equal to everything": (
        "class Any(int):\n    def __eq__(self, other): return True\n"
        "def double(value): return Any(0)"
    ),
    "is an object that is equal": (
        "class Any:\n    def __eq__(self, other): return True\n    def tolist(self): return [0]\n"
        "def double(value): return Any()"
    ),
    "raises what a check raises": "def double(value): raise AssertionError",
    "forks": (
        "import os\ndef double(value):\n    for _ in range(100):\n"
        "        if os.fork() == 0:\n            os.setsid()\n            while True: pass\n"
        "    return 2 * value"
    ),
    "patches the interpreter": (
        "import builtins, sys\nbuiltins.AssertionError = SystemExit\n"
        "sys.settrace(lambda *a: None)\ndef double(value): return 0"
    ),
    "kills": "import os\ndef double(value):\n    os.kill(-1, 9)\n    os.kill(os.getppid(), 9)",
    "reads the solution": (
        "import glob\ndef double(value):\n"
        f"    text = open({str(DOUBLE / 'solution.py')!r}).read()\n"
        "    exec(text, globals())\n    return globals()['double'](value)"
    ),
    "looks for the solution": (
        "import os\ndef double(value):\n    for base, _, names in os.walk('/'):\n"
        "        if 'lab.yaml' in names or 'solution.py' in names: return 2 * value\n    return 0"
    ),
    "writes beside the solution": (
        f"def double(value):\n    open({str(DOUBLE / 'left')!r}, 'w')\n    return 0"
    ),
    "answers in the grader's words": (
        "import os\ndef double(value):\n"
        '    raw = b\'["raised", ["x", "y", Infinity]]\'\n'
        "    os.write(3, len(raw).to_bytes(4, 'big') + raw)\n    return 2 * value"
    ),
    "answers before it is asked": (
        "import os\nraw = b'[\"returned\", 2]'\n"
        "os.write(3, (len(raw).to_bytes(4, 'big') + raw) * 50)\ndef double(value): return 0"
    ),
    "kills its group": "import os\ndef double(value):\n    os.kill(0, 9)\n    os.killpg(0, 9)",
    "fills its folder": (
        "def double(value):\n    for n in range(100):\n"
        "        open(f'/tmp/{n}', 'wb').write(bytes(1 << 20))\n    return 2 * value"
    ),
    "uses the network": (
        "import socket\ndef double(value):\n    socket.create_connection(('127.0.0.1', 22))\n"
        "    return 2 * value"
    ),
}


REPRESENTATIVE = ["eats memory", "forks", "kills", "patches the interpreter", "reads the solution"]
"""Of each way: time and memory, processes, signals, the judge itself, and files."""


@needs.mark("network namespaces")
@pytest.mark.every
@pytest.mark.long(but=REPRESENTATIVE)
@pytest.mark.parametrize("text", PYTHON.values(), ids=list(PYTHON))
def test_hostile_python_gets_no_points_for_its_case(
    tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr("agglab.verification.grading.python_cases.ANSWER_S", 3.0)
    grade = graded(written(tmp_path, text, "double.py"), DOUBLE)
    assert not grade.verdict("doubles").passed
    assert not (DOUBLE / "left").exists() and not list(scratch.iterdir())
    assert not students_processes(), "a process is left"


@needs.mark("network namespaces")
def test_a_process_that_is_left_would_be_seen(tmp_path: Path) -> None:
    path = written(tmp_path, solution(DOUBLE), "double.py")
    with Jail(()).started(path, tmp_path) as connection:
        Channel(connection).answer()
        (left,) = students_processes()
    with contextlib.suppress(ChildProcessError):
        os.waitpid(int(left), 0)


@needs.mark("network namespaces")
def test_trust_does_not_open_the_jail(tmp_path: Path) -> None:
    path = written(tmp_path, PYTHON["reads the solution"], "double.py")
    ((_, grade),) = grades(labs.read(DOUBLE), [path], QUICK, 1, trust=True)
    assert not grade.verdict("doubles").passed


def _command(name: str) -> str:
    try:
        return Path(f"/proc/{name}/cmdline").read_text()
    except OSError:
        return ""


def test_without_namespaces_python_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from agglab.testbed.cli.main import main

    def refused(kinds: int) -> None:
        raise OSError(1, "unshare: Operation not permitted")

    monkeypatch.setattr(kernel, "enter_namespaces", refused)
    path = str(DOUBLE / "solution.py")
    assert main(["grade", str(DOUBLE), path]) == 3
    (line,) = capfd.readouterr().err.splitlines()
    assert "--trust" in line and "namespaces" in line
    assert main(["grade", str(DOUBLE), path, "--trust"]) == 0
