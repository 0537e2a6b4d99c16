"""`switch.target: bmv2` in a scenario: what it allows, and the window it stands for."""

from __future__ import annotations

from pathlib import Path

import pytest

from agglab.testbed.scenario import ScenarioError, load


def scenario(tmp_path: Path, text: str, *settings: str):
    path = tmp_path / "s.yaml"
    path.write_text("switch: {target: bmv2, slots: 128, lanes: 64}\n" + text)
    return load(path, settings).points[0].resolved.scenario


def test_an_auto_window_stays_below_the_queues(tmp_path: Path) -> None:
    assert scenario(tmp_path, "").workload.window == 48
    assert scenario(tmp_path, "", "switch.target=native").workload.window == 128


def test_jobs_share_the_queues(tmp_path: Path) -> None:
    jobs = scenario(tmp_path, "jobs: [{}, {}, {workload: {window: 20}}]\n").jobs
    assert [job.workload.window for job in jobs] == [16, 16, 20]


def test_a_window_that_is_asked_for_stays(tmp_path: Path) -> None:
    assert scenario(tmp_path, "workload: {window: 100}\n").workload.window == 100


def test_omnireduces_answers_fit_into_bmv2(tmp_path: Path) -> None:
    """An answer to headers alone is longer by all its values, and BMv2 has room for 512 bytes."""
    omnireduce = "system: omnireduce\n"
    assert scenario(tmp_path, omnireduce, "switch.lanes=128").switch.lanes == 128
    assert scenario(tmp_path, omnireduce, "switch.lanes=auto").switch.lanes == 128
    with pytest.raises(ScenarioError, match="129 lanes: in BMv2 a packet can grow by 512 bytes"):
        scenario(tmp_path, omnireduce, "switch.lanes=129")
    on_ours = scenario(tmp_path, omnireduce, "switch.lanes=129", "switch.target=native")
    assert on_ours.switch.lanes == 129


def test_virtual_time_has_only_our_switch(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="bmv2 does not run in virtual time"):
        scenario(tmp_path, "backend: virtual\n")
