"""The texts of the course, and docs/first-hour.md: what they show is so."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from exercises import LABS, ROOT, WRONG

from agglab.hosts.wire import LOWER_HEADER_BYTES
from agglab.verification.grading.lab import Lab

COURSE, TEACHER = ((ROOT / "labs" / name).read_text() for name in ("README.md", "teacher.md"))
FIRST_HOUR = (ROOT / "docs/first-hour.md").read_text()
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"\s+# .*$")


def commands(text: str) -> list[str]:
    """The command lines of a page."""
    shell = [block for language, block in BLOCK.findall(text) if language == "sh"]
    return [COMMENT.sub("", line) for block in shell for line in block.splitlines()]


def expected_commands(lab: Lab) -> list[str]:
    """The first command lines of an exercise's page."""
    number, folder = lab.name.partition("-")[0], f"labs/{lab.name}"
    return [
        f"./agglab labs start {number} {folder}",
        f"./agglab grade {number} {folder}/{lab.file}",
        f"./agglab labs hint {number} --next",
    ]


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_the_commands_of_an_exercise_are_right(lab: Lab) -> None:
    lines = commands((lab.folder / "README.md").read_text())
    assert lines[:3] == expected_commands(lab)
    words = {word for line in lines[3:] for word in line.split() if word.startswith("labs/")}
    there = words - {f"labs/{lab.name}/{lab.file}"}  # which the student writes
    assert [word for word in there if not (ROOT / word).is_file()] == []


def test_the_table_of_exercises_is_whole() -> None:
    linked = re.findall(r"^\| \[(\d+)\]\(([^/]+)/README.md\)", COURSE, re.MULTILINE)
    assert linked == [(lab.name.partition("-")[0], lab.name) for lab in LABS]


def test_the_table_of_mistakes_is_whole() -> None:
    rows = [f"| {lab.name} | {wrong.name} | {wrong.meets} |" for lab, wrong in WRONG]
    assert TEACHER.splitlines()[-len(rows) - 2 :] == [
        "| exercise | mistake (`wrong.yaml`) | message |",
        "|---|---|---|",
        *rows,
    ]


def test_the_commands_of_the_course_lead_to_a_grade(tmp_path: Path) -> None:
    """A student lists the exercises, starts one, grades the skeleton, and opens a hint."""
    place = str(tmp_path / "03-bitmap")
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    said = []
    for command in commands(COURSE):
        words = command.replace("labs/03-bitmap", place).split()
        assert words[0] == "./agglab"
        done = subprocess.run(
            [sys.executable, "-m", "agglab.testbed", *words[1:]],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == (1 if words[1] == "grade" else 0), done.stderr
        said.append(done.stdout)
    assert all(lab.name in said[0] for lab in LABS)
    assert (tmp_path / "03-bitmap/bitmap.p4").is_file()
    (bitmap,) = (lab for lab in LABS if lab.name == "03-bitmap")
    assert bitmap.texts["no-bits-kept"] in said[2]
    assert (bitmap.folder / "hints/1.md").read_text().strip() in said[3]


def test_the_packet_of_the_first_hour_goes_its_way() -> None:
    command = commands(FIRST_HOUR)[0]
    assert command.split()[0] == "./p4native-stf"
    words = [sys.executable, "-m", "p4native.stf", *command.split()[1:]]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    packets = done.stdout.split("packet in: ")
    way = " ".join(f"packet in: {packets[3]}".split())
    shown = [block for language, block in BLOCK.findall(FIRST_HOUR) if not language]
    steps = [line.strip() for block in shown[4:] for line in block.splitlines()]
    assert len(steps) == 16
    places = [way.find(step) for step in steps]
    assert -1 not in places and places == sorted(places)


def test_a_result_is_lost_where_the_first_hour_says(tmp_path: Path) -> None:
    """The captures of the run have the packets of picture 3."""
    command = commands(FIRST_HOUR)[1].split()
    assert command[0] == "./agglab"
    words = [*command[1:], "--results", str(tmp_path)]
    subprocess.run([sys.executable, "-m", "agglab.testbed", *words], cwd=ROOT, check=True)
    assert "`solution.course.slot == 2 && solution.course.tag == 0`" in FIRST_HOUR
    folder = tmp_path / "lab-05-loss/latest/pcap"
    counts = [
        [packets_of(folder / f"s1-eth{port}_{way}.pcap", slot=2, tag=0) for port in (1, 2, 3, 4)]
        for way in ("in", "out")
    ]
    assert counts == [[1, 2, 1, 1], [1, 2, 1, 1]]


def packets_of(capture: Path, slot: int, tag: int) -> int:
    """How many packets of a capture have this slot and this tag, behind kind and worker."""
    fields = struct.pack("!HI", slot, tag)
    content, at, count = capture.read_bytes(), 24, 0
    while at < len(content):
        (length,) = struct.unpack_from("<I", content, at + 8)
        payload = content[at + 16 : at + 16 + length][LOWER_HEADER_BYTES:]
        count += payload[2:8] == fields
        at += 16 + length
    return count


def test_skeletons_tell_students_how_many_todos_there_are() -> None:
    words = {2: "two", 3: "three", 4: "four"}
    for lab in LABS:
        (skeleton,) = lab.folder.glob("skeleton.*")
        count = len(set(re.findall(r"TODO \d", skeleton.read_text())))
        text = (lab.folder / "README.md").read_text()
        assert f"{words[count]} TODOs" in text, lab.name
