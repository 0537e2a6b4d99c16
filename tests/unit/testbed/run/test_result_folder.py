"""A result folder never looks better than its run was."""

import json
import secrets
from pathlib import Path

import pytest

from agglab.testbed.run.result_folder import EventLog, ResultsError, RunFolder, new_run_folder


def metrics(folder: Path) -> dict:
    return json.loads((folder / "metrics.json").read_text())


def test_until_it_is_finished_a_folder_says_that_it_is_not(tmp_path: Path) -> None:
    folder = new_run_folder(tmp_path, "demo")
    assert metrics(folder.path) == {"ok": False, "reason": "the run did not finish"}


def test_each_run_has_a_folder_and_latest_is_the_last(tmp_path: Path) -> None:
    folders = [new_run_folder(tmp_path / "deep" / "er", "demo") for _ in range(3)]
    assert len({folder.path for folder in folders}) == 3
    latest = tmp_path / "deep/er/demo/latest"
    assert latest.resolve() == folders[-1].path.resolve()
    assert not latest.readlink().is_absolute()  # the results folder may be moved
    assert len(list(latest.parent.iterdir())) == 4


def test_a_run_that_draws_the_name_of_another_one_draws_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was "File exists" once in 65,536 pairs of runs that began in the same second."""
    drawn = iter([*["0000"] * 20, "0001"])
    monkeypatch.setattr(secrets, "token_hex", lambda count: next(drawn))
    names = {new_run_folder(tmp_path, "demo").path.name for _ in range(2)}
    assert len(names) == 2


def test_a_failure_gives_the_reason_and_keeps_what_is_known(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "a")
    folder.fail("interrupted")
    assert metrics(folder.path) == {"ok": False, "reason": "interrupted"}
    folder.fail("killed")
    assert metrics(folder.path)["reason"] == "interrupted"


def test_files_are_whole_or_not_there(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "a")
    with pytest.raises(ValueError, match="Out of range float"):
        folder.write_json("metrics.json", {"ok": True, "x": float("nan")})
    assert metrics(folder.path)["ok"] is False
    assert sorted(path.name for path in folder.path.iterdir()) == ["logs", "metrics.json"]


def test_results_that_cannot_be_written_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultsError, match="Not a directory"):
        new_run_folder(tmp_path / "file", "demo")


def test_events_are_one_object_a_line_in_order(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl")
    for i in range(50):
        log.add("progress", rank=i, text="line\nbreak")
    log.close()
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [event["rank"] for event in events] == list(range(50))
    times = [event["t_ns"] for event in events]
    assert times == sorted(times)
