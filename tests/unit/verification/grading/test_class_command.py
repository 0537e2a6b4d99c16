"""A class at once: which submissions are found, the table, and the progress."""

from __future__ import annotations

import csv
from pathlib import Path

import needs
import pytest
from submissions import DOUBLE, solution, written

from agglab.testbed.cli.main import main


@needs.mark("network namespaces")
def test_a_class_is_graded(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "class"
    (folder / "eve").mkdir(parents=True)
    (folder / "mallory").mkdir()
    written(folder, solution(DOUBLE), "ada.py")
    written(folder / "eve", "def double(value): return value\n", "double.py")
    (folder / "link.py").symlink_to(DOUBLE / "solution.py")
    (folder / "trent").symlink_to(DOUBLE)
    (folder / ".git").mkdir()
    written(folder, "notes", "README.txt")
    table = tmp_path / "class.csv"
    words = ["grade-all", str(DOUBLE), str(folder), "--csv", str(table), "--processes", "2"]
    assert main(words) == 1
    out, err = capfd.readouterr()
    rows = {line.split()[0]: line.split(None, 2)[1:] for line in out.splitlines()}
    assert rows.keys() == {"submission", "ada", "eve", "link", "mallory", "trent"}
    assert rows["ada"][0] == "5" and rows["eve"][0] == "1" and rows["link"][0] == "0"
    assert "is a link" in rows["trent"][1]
    assert rows["eve"][1].endswith("A number was not doubled.")
    assert "cannot be read: No such file" in rows["mallory"][1]
    assert sorted(line.split(":")[0] for line in err.splitlines()) == [
        f"{number} of 5" for number in range(1, 6)
    ]
    with table.open() as file:
        assert {row["submission"]: row["points"] for row in csv.DictReader(file)} == {
            "ada": "5",
            "eve": "1",
            "link": "0",
            "mallory": "0",
            "trent": "0",
        }


@pytest.mark.parametrize("name", ["empty", "gone"])
def test_a_folder_without_submissions_is_a_mistake(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["grade-all", str(DOUBLE), str(tmp_path / name)]) == 2
    assert len(capfd.readouterr().err.splitlines()) == 1
