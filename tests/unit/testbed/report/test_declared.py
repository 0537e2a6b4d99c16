"""What a scenario's section `figure` draws of a sweep's metrics, before it becomes a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from agglab.testbed.report import declared
from agglab.testbed.report.by_axis import MEDIAN
from agglab.testbed.report.colours import Palette
from agglab.testbed.report.figure_style import styled
from agglab.testbed.report.specification import specification
from agglab.testbed.results.recorded_scenario import RecordedScenario

AXIS = "workload.window"


@pytest.fixture
def drawn() -> Any:
    """Draws a figure of medians against windows 1, 2, 4 ...: tracks, marks and whether its axis is
    logarithmic."""

    def draw(rounds: Sequence[Sequence[float]], y: str = MEDIAN, **section: Any) -> Any:
        points = [
            {"settings": {AXIS: str(2**i)}, "metrics": metrics(times, 2.0**i)}
            for i, times in enumerate(rounds)
        ]
        chart = first({"points": points}, y=[y], **section)
        return chart.tracks, list(chart.marks), chart.log

    return draw


def first(metrics: dict[str, Any], folder: Path = Path(), **section: Any) -> Any:
    """The first chart that a section `figure` asks for, whose values are read as from YAML."""
    text = yaml.safe_dump({"figure": section})
    return declared.charts(metrics, RecordedScenario(text).tree["figure"], folder)[0]


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


def test_a_second_axis_makes_lines_of_its_own() -> None:
    points = [
        {"settings": {AXIS: window, "links.rate": rate}, "metrics": metrics([1.0], 1.0)}
        for rate in ("10mbit", "20mbit")
        for window in ("1", "2")
    ]
    tracks = first({"points": points}, x=AXIS, y=[MEDIAN]).tracks
    names = [(track.name, len(track.pieces[0].points)) for track in tracks]
    assert names == [("links.rate 10mbit", 2), ("links.rate 20mbit", 2)]


def repeated(times: dict[tuple[int, int], float]) -> dict[str, Any]:
    """Metrics of a sweep over windows and seeds, of one round each: time by window and seed."""
    points = [
        {"settings": {AXIS: str(window), "seed": str(seed)}, "metrics": metrics([time], 1.0)}
        for (window, seed), time in times.items()
    ]
    return {"points": points}


@pytest.fixture
def tracks() -> Any:
    """Returns the title and the tracks of the first figure that the metrics of a sweep give."""

    def draw(metrics: dict[str, Any], folder: Path = Path(), **section: Any) -> Any:
        chart = first(metrics, folder, **section)
        return chart.title, chart.tracks

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


def compared(**section: Any) -> Any:
    """The first chart of two contenders over windows, losses and rates; the time of a run is the
    product of its numbers."""
    points = []
    for window in (1, 2):
        for loss in (0, 1):
            for rate in (10, 20):
                times = {"ring": window * rate * 1.0, "sum": window * rate * 0.5 + loss}
                runs = {name: metrics([time], 1.0) for name, time in times.items()}
                settings = {AXIS: str(window), "links.loss": f"{loss}%"}
                settings["links.rate"] = f"{rate}mbit"
                point = {"contenders": runs, "ok": True, "reason": ""}
                points.append({"settings": settings, "metrics": point})
    return first({"points": points}, **section)


def test_a_contender_has_a_color_and_further_keys_have_dashes() -> None:
    names = {(track.name, track.style, track.coloured_as) for track in compared().tracks}
    assert names == {
        (name, f"links.loss {loss}%, links.rate {rate}mbit", name)
        for name in ("ring", "sum")
        for loss in (0, 1)
        for rate in (10, 20)
    }


def test_facets_are_panels_and_no_dashes() -> None:
    tracks = compared(facets="links.loss").tracks
    assert {track.panel for track in tracks} == {"links.loss 0%", "links.loss 1%"}
    assert {track.style for track in tracks} == {"links.rate 10mbit", "links.rate 20mbit"}
    of_contenders = compared(facets="contender", where={"links.rate": "10mbit"}).tracks
    assert {(track.name, track.style, track.panel) for track in of_contenders} == {
        (f"links.loss {loss}%", "", name) for loss in (0, 1) for name in ("ring", "sum")
    }


def test_where_leaves_out_all_other_runs() -> None:
    where = {"links.loss": "0%", "links.rate": ["10mbit"], "contender": ["sum"]}
    (track,) = compared(where=where).tracks
    assert (track.name, list(track.pieces[0].points)) == ("sum", [(1.0, 5.0), (2.0, 10.0)])


def test_labels_are_written_and_the_color_stays() -> None:
    where = {"links.rate": "10mbit"}
    labels = {"sum": "SwitchML", AXIS: "Window", MEDIAN: "Time", "2": "two", "links.loss": "Loss"}
    chart = compared(where=where, labels=labels)
    assert (chart.x_label, chart.y_label) == ("Window", "Time")
    of_no_loss = chart.tracks[:2]
    named = {track.coloured_as: (track.name, track.style) for track in of_no_loss}
    assert named == {
        "ring": ("ring", "Loss 0%"),
        "sum": ("SwitchML", "Loss 0%"),
    }
    assert [text for _, text in chart.ticks] == ["1", "two"]


def test_units_divide_values_and_stand_on_the_axes() -> None:
    where = {"links.loss": "0%", AXIS: "1", "contender": "ring"}
    units = {MEDIAN: "ms", "links.rate": "kbit/s"}
    chart = compared(where=where, x="links.rate", units=units)
    assert (chart.x_label, chart.y_label) == ("links.rate (kbit/s)", f"{MEDIAN} (ms)")
    (track,) = chart.tracks
    assert list(track.pieces[0].points) == [(10_000.0, 10_000.0), (20_000.0, 20_000.0)]
    assert chart.ticks == ()


def test_a_band_of_rounds_is_in_the_unit_of_its_line(drawn: Any) -> None:
    rounds = [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]
    (plain,), _, _ = drawn(rounds)
    (in_ms,), _, _ = drawn(rounds, units={MEDIAN: "ms"})
    assert in_ms.band == [(x, low * 1e3, high * 1e3) for x, low, high in plain.band]


def test_a_figure_in_files_has_the_size_and_font_that_are_asked_for() -> None:
    spec = specification(compared(facets="links.loss"), Palette())
    section = {"size": {"width": "180mm", "height": "90mm"}, "font": {"family": "X Y", "size": "7"}}
    panels = styled(spec, section)
    assert panels["config"]["font"] == "X Y" and panels["config"]["axis"]["labelFontSize"] == 7
    assert panels["spec"]["width"] * 2 < 180 / 25.4 * 72 and panels["spec"]["height"] < 256
    single = styled(specification(compared(), Palette()), section)
    assert single["autosize"] == {"type": "fit", "contains": "padding"}
    assert (single["width"], single["height"]) == (510, 255)
