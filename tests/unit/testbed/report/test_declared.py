"""What a scenario's section `figure` draws of a sweep's metrics, before it becomes a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from agglab.testbed.report import declared
from agglab.testbed.report.by_axis import MEDIAN
from agglab.testbed.results.recorded_scenario import RecordedScenario

AXIS = "workload.window"


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Draws a figure of medians against windows 1, 2, 4 ...: tracks, marks and whether its axis is
    logarithmic."""
    asked: list[tuple[Any, ...]] = []

    def keep(*given: Any) -> str:
        asked.append(given)
        return ""

    monkeypatch.setattr(declared, "lines", keep)

    def draw(rounds: Sequence[Sequence[float]], y: str = MEDIAN, **section: Any) -> Any:
        points = [
            {"settings": {AXIS: str(2**i)}, "metrics": metrics(times, 2.0**i)}
            for i, times in enumerate(rounds)
        ]
        text = yaml.safe_dump({"figure": {"y": [y], **section}})
        declared.figures({"points": points}, RecordedScenario(text), Path())
        _title, _x, _label, tracks, _references, marks, _layout, _ticks, log = asked[0]
        asked.clear()
        return tracks, marks, log

    return draw


def metrics(times: Sequence[float], share: float) -> dict[str, Any]:
    middle = sorted(times)[len(times) // 2]
    return {
        "allreduce": {"time_s": {"median": middle, "all": list(times)}},
        "window_share": share,
        "nothing": 0,
        "ok": True,
    }


def test_the_line_goes_through_the_medians(drawn: Any) -> None:
    (track,), marks, log = drawn([[1.0, 2.0, 3.0], [0.5, 1.0, 4.0]])
    assert [list(piece.points) for piece in track.pieces] == [[(1.0, 2.0), (2.0, 1.0)]]
    assert [at for at, _, _ in track.band] == [1.0, 2.0]
    assert all(
        low <= y <= high
        for (_, y), (_, low, high) in zip(track.pieces[0].points, track.band, strict=True)
    )
    assert marks == [] and log is False


def test_a_line_of_multiples_has_a_band_of_multiples(drawn: Any) -> None:
    rounds = [[4.0, 4.0, 4.0], [7.0, 8.0, 9.0]]
    (absolute,), _, _ = drawn(rounds)
    (relative,), _, _ = drawn(rounds, relative=True)
    assert list(relative.pieces[0].points) == [(1.0, 1.0), (2.0, 2.0)]
    assert relative.band == [(at, low / 4, high / 4) for at, low, high in absolute.band]


def test_the_mark_is_where_the_value_is_reached_exactly(drawn: Any) -> None:
    mark = {"metric": "window_share", "reaches": "2", "text": "enough"}
    _, (found,), _ = drawn([[1.0]] * 4, mark=mark)
    assert (found.x, found.text) == (2.0, "enough")
    _, found, _ = drawn([[1.0]] * 4, mark={**mark, "reaches": "9"})
    assert found == []


def test_the_axis_is_logarithmic_where_asked_and_possible(drawn: Any) -> None:
    rounds = [[1.0], [1000.0]]
    assert [drawn(rounds, y_scale=scale)[2] for scale in ("log", "linear")] == [True, False]
    assert drawn(rounds)[2] is False
    assert drawn(rounds, y="nothing", y_scale="log")[2] is False


def test_a_second_axis_makes_lines_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(declared, "lines", lambda *given: drawn.append(given[3]) or "")
    points = [
        {"settings": {AXIS: window, "links.rate": rate}, "metrics": metrics([1.0], 1.0)}
        for rate in ("10mbit", "20mbit")
        for window in ("1", "2")
    ]
    declared.figures(
        {"points": points},
        RecordedScenario(yaml.safe_dump({"figure": {"x": AXIS, "y": [MEDIAN]}})),
        Path(),
    )
    names = [(track.name, len(track.pieces[0].points)) for track in drawn[0]]
    assert names == [("links.rate 10mbit", 2), ("links.rate 20mbit", 2)]


def repeated(times: dict[tuple[int, int], float]) -> dict[str, Any]:
    """Metrics of a sweep over windows and seeds, of one round each: time by window and seed."""
    points = [
        {"settings": {AXIS: str(window), "seed": str(seed)}, "metrics": metrics([time], 1.0)}
        for (window, seed), time in times.items()
    ]
    return {"points": points}


@pytest.fixture
def tracks(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Returns the title and the tracks of the first figure that the metrics of a sweep give."""

    def draw(metrics: dict[str, Any], folder: Path = Path(), **section: Any) -> Any:
        asked: list[tuple[Any, ...]] = []
        monkeypatch.setattr(declared, "lines", lambda *given, **_: asked.append(given) or "")
        declared.figures(metrics, RecordedScenario(yaml.safe_dump({"figure": section})), folder)
        return asked[0][0], asked[0][3]

    return draw


def test_few_seeds_are_one_point_whose_band_is_their_range(tracks: Any) -> None:
    times = {(1, 1): 1.0, (1, 2): 2.0, (1, 3): 9.0, (2, 1): 4.0, (2, 2): 5.0, (2, 3): 6.0}
    title, (track,) = tracks(repeated(times), title="Times")
    assert title == "Times, with the range of 3 seeds (too few for an interval)"
    assert list(track.pieces[0].points) == [(1.0, 2.0), (2.0, 5.0)]
    assert list(track.band) == [(1.0, 1.0, 9.0), (2.0, 4.0, 6.0)]


def test_many_seeds_are_one_point_whose_band_is_their_interval(tracks: Any) -> None:
    times = {(point, seed): float(seed * seed) for point in (1, 2) for seed in range(1, 10)}
    title, (track,) = tracks(repeated(times), title="Times")
    assert title == "Times, with the 95 % interval of 9 seeds"
    assert list(track.band) == [(1.0, 4.0, 64.0), (2.0, 4.0, 64.0)]


def test_without_several_seeds_there_is_no_band_of_seeds(tracks: Any) -> None:
    title, (track,) = tracks(repeated({(1, 1): 1.0, (2, 1): 4.0}), title="Times")
    assert "seeds" not in title and not track.band


def test_over_seeds_every_seed_is_a_point(tracks: Any) -> None:
    _, found = tracks(repeated({(1, 1): 1.0, (1, 2): 2.0}), title="Times", x="seed")
    (track,) = found
    assert list(track.pieces[0].points) == [(1.0, 1.0), (2.0, 2.0)]


def test_over_time_each_run_is_a_line_of_its_series(tracks: Any, tmp_path: Path) -> None:
    for number, value in enumerate((70, 30)):
        folder = tmp_path / f"point-{number}"
        folder.mkdir()
        rows = ["time_ns,kind,name,metric,value", f"1000000000,job,job1,sent_rate,{value}"]
        rows += [f"2000000000,job,job1,sent_rate,{value + 1}", "1000000000,link,a,rate,5"]
        (folder / "series.csv").write_text("\n".join([*rows, ""]))
    sweep = {
        "points": [{"settings": {AXIS: str(w)}, "metrics": metrics([1.0], 1.0)} for w in (1, 2)]
    }
    title, (first, second) = tracks(sweep, tmp_path, title="T", y=[], over_time=["job.sent_rate"])
    assert title == "T: sent rate over time"
    assert (first.name, second.name) == (f"{AXIS} 1", f"{AXIS} 2")
    assert list(first.pieces[0].points) == [(1.0, 70.0), (2.0, 71.0)]
    assert list(second.pieces[0].points) == [(1.0, 30.0), (2.0, 31.0)]
