"""Charts as Vega-Lite specifications: what they show, before any program draws them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import needs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agglab.testbed import systems
from agglab.testbed.base.paths import FIGURE_FOLDER, SCENARIO_FOLDER
from agglab.testbed.report import vega
from agglab.testbed.report.chart import (
    BarChart,
    Chart,
    LineChart,
    Mark,
    Piece,
    Reference,
    Series,
    Track,
)
from agglab.testbed.report.colours import BOUND, COLOURS, REFERENCE, Palette
from agglab.testbed.report.specification import (
    CONFIG,
    POINTS_MAX,
    specification,
    text_of,
    thinned,
)
from agglab.testbed.schema.document import Mapping as Section
from agglab.testbed.schema.document import read_file

HOSTILE = "'\"];</script><script>alert(1)</script>\x1b\u202e"
EXPRESSIONS = ("labelExpr", "calculate", "filter", "test", "expr", "signal")


def spec_of(chart: Chart, *contenders: str) -> dict[str, Any]:
    return specification(chart, Palette(contenders))


def line_chart(*tracks: Track, **more: Any) -> LineChart:
    return LineChart("n", "A title", "seconds", "bits", tracks, **more)


def track(name: str, *points: tuple[float, float], **more: Any) -> Track:
    return Track(name, (Piece(points or ((0.0, 1.0), (1.0, 2.0))),), **more)


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    """All mappings in a specification."""
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from nodes(each)
    elif isinstance(value, list):
        for each in value:
            yield from nodes(each)


def legend_of(spec: dict[str, Any], channel: str = "color") -> dict[str, Any]:
    """The names of a scale, and what stands for each."""
    (scale,) = [n[channel]["scale"] for n in nodes(spec) if "scale" in (n.get(channel) or {})]
    return dict(zip(scale["domain"], scale["range"], strict=True))


def test_a_row_stands_for_each_point_and_its_band() -> None:
    band = [(0.0, 0.5, 1.5)]
    spec = spec_of(line_chart(track("a", (0.0, 1.0), (1.0, 2.0), band=band)))
    assert spec["data"]["values"] == [
        {"x": 0.0, "y": 1.0, "line": "a", "low": 0.5, "high": 1.5},
        {"x": 1.0, "y": 2.0, "line": "a"},
    ]
    marks = [layer["mark"]["type"] for layer in spec["layer"]]
    assert marks == ["line", "area", "point"]


def test_pieces_are_apart_and_aborted_ones_dashed() -> None:
    pieces = (Piece([(0, 0), (1, 1)]), Piece([(2, 1), (3, 2)], dashed=True))
    spec = spec_of(line_chart(Track("w", pieces)))
    assert [(row["piece"], row.get("style", "")) for row in spec["data"]["values"]] == [
        *((0, ""), (0, "")),
        *((1, "aborted"), (1, "aborted")),
    ]
    assert legend_of(spec, "strokeDash")["aborted"] != [1, 0]


@pytest.mark.parametrize("count", [2, 16, 40])
def test_a_legend_has_all_names(count: int) -> None:
    names = [f"worker {n}" for n in range(count)]
    references = [Reference("link bound", 0.25)]
    spec = spec_of(line_chart(*map(track, names), references=references))
    legend = legend_of(spec)
    assert list(legend) == [*names, "link bound 0.25"]
    assert legend["link bound 0.25"] == REFERENCE
    assert len({legend[name] for name in names}) == min(count, len(COLOURS))
    assert CONFIG["legend"]["symbolLimit"] == CONFIG["legend"]["labelLimit"] == 0


def test_a_second_key_has_dashes_and_the_color_stays() -> None:
    tracks = [track(n, style=s) for n in ("ring", "sum") for s in ("10mbit", "20mbit", "30mbit")]
    spec = spec_of(line_chart(*tracks))
    dashes = legend_of(spec, "strokeDash")
    assert list(dashes) == ["10mbit", "20mbit", "30mbit"]
    assert len({str(dash) for dash in dashes.values()}) == 3
    assert set(legend_of(spec)) == {"ring", "sum"}


def test_panels_are_in_the_order_of_their_lines() -> None:
    spec = spec_of(line_chart(*(track("a", panel=f"loss {n}") for n in (3, 1, 2))))
    assert spec["facet"]["sort"] == ["loss 3", "loss 1", "loss 2"] and "layer" in spec["spec"]


def test_marks_are_numbers_above_the_plot_and_the_notes_say_what_they_mean() -> None:
    marks = [Mark(2.0, "h3 again"), Mark(0.5, "crash h3"), Mark(0.5, "job1 aborted")]
    spec = spec_of(line_chart(track("a"), marks=marks))
    notes = ["1 (at 0.5 s): crash h3; job1 aborted", "2 (at 2 s): h3 again"]
    assert spec["usermeta"]["notes"] == notes and spec["title"]["subtitle"] == notes
    rule = spec["layer"][-1]
    assert [row["x"] for row in rule["data"]["values"]] == [0.5, 2.0]
    axis = rule["encoding"]["x"]["axis"]
    assert (axis["orient"], axis["values"]) == ("top", [0.5, 2.0])
    assert axis["labelExpr"] == "indexof([0.5, 2.0], datum.value) + 1"


@pytest.mark.parametrize(("from_zero", "log"), [(True, False), (False, False), (True, True)])
def test_the_y_axis_begins_where_it_should(from_zero: bool, log: bool) -> None:
    spec = spec_of(line_chart(track("a"), from_zero=from_zero, log=log))
    scale = spec["layer"][0]["encoding"]["y"]["scale"]
    assert scale == ({"type": "log"} if log else {"zero": from_zero})


def test_bars_have_a_row_for_each_value_and_a_mark_for_each_bound() -> None:
    series = [Series("sum", [1.0, None], [0.5, 0.5]), Series("ring", [3.0, 4.0], [1.0, 2.0])]
    chart = BarChart("n", "t", "workers", "seconds", ["2", "4"], series, bound="link bound")
    spec = spec_of(chart)
    rows = [(r["x"], r["line"], r["y"], r["bound"]) for r in spec["data"]["values"]]
    assert rows == [("2", "sum", 1.0, 0.5), ("2", "ring", 3.0, 1.0), ("4", "ring", 4.0, 2.0)]
    assert [layer["mark"] if layer["mark"] == "bar" else "tick" for layer in spec["layer"]] == [
        "bar",
        "tick",
    ]
    assert legend_of(spec)["link bound"] == BOUND


@pytest.mark.parametrize(("letters", "wide"), [(3, False), (12, True)])
def test_bars_with_long_names_lie(letters: int, wide: bool) -> None:
    names = [f"{n}" * letters for n in range(8)]
    spec = spec_of(BarChart("n", "t", "", "s", names, [Series("a", [1.0] * 8)]))
    encoding = spec["layer"][0]["encoding"]
    assert (encoding["y" if wide else "x"]["field"], spec["height"] == 8 * 18) == ("x", wide)


def test_a_line_keeps_its_peaks_when_thinned() -> None:
    line = [(float(i), 1.0) for i in range(50_000)]
    line[31_234] = (31_234.0, 99.0)
    kept = thinned(line, POINTS_MAX)
    assert len(kept) <= POINTS_MAX + 4 and (31_234.0, 99.0) in kept
    assert kept[0] == line[0] and kept[-1] == line[-1]


def test_each_color_can_be_told_from_a_white_and_from_a_dark_page() -> None:
    for colour in (*COLOURS, REFERENCE, BOUND):
        for ground in ("#FFFFFF", "#1C1C1C"):
            low, high = sorted((luminance(colour), luminance(ground)))
            assert (high + 0.05) / (low + 0.05) >= 3, (colour, ground)
    assert len({*COLOURS, REFERENCE, BOUND}) == len(COLOURS) + 2


def luminance(colour: str) -> float:
    """The relative luminance of an sRGB colour, as in WCAG."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contenders_of_shipped() -> Iterator[list[str]]:
    for path in sorted([*FIGURE_FOLDER.glob("*.yaml"), *SCENARIO_FOLDER.glob("*.yaml")]):
        root = read_file(path)
        assert isinstance(root, Section)
        for name, value in root.entries:
            if name.text == "compare" and isinstance(value, Section):
                yield [contender.text for contender, _ in value.entries]


def test_a_system_has_one_color_in_all_comparisons() -> None:
    alone = {name: Palette((name,)).of([name])[name] for name in systems.names()}
    assert len(set(alone.values())) == len(alone), "choose another SALT"
    compared = list(contenders_of_shipped())
    assert len(compared) > 10
    for names in compared:
        own = Palette(tuple(names)).of(names)
        assert all(own[name] == alone[name] for name in names if name in alone), names


@settings(deadline=None)
@given(st.lists(st.text(max_size=8), unique=True, max_size=40), st.randoms())
def test_a_contender_keeps_its_color_whatever_else_is_drawn(
    names: list[str], draw: random.Random
) -> None:
    palette = Palette(tuple(names))
    whole = palette.of(names)
    some = draw.sample(names, len(names) // 2)
    assert palette.of([*some, "other"]).items() >= {name: whole[name] for name in some}.items()
    assert len(set(whole.values())) == min(len(names), len(COLOURS))


def hostile_charts() -> Iterator[Chart]:
    words = [HOSTILE, f"{HOSTILE}2", "{{x}}", "datum.y", "=alert(1)"]
    tracks = [track(w, style=w, panel=w, band=[(0.0, 0.0, 1.0)]) for w in words]
    for even in (False, True):
        ticks = [(float(i), w if even else str(i)) for i, w in enumerate(words)]
        more = {"ticks": ticks, "even": even, "references": [Reference(HOSTILE, 1.0)]}
        marks = [Mark(0.0, HOSTILE)]
        yield LineChart("n", HOSTILE, HOSTILE, HOSTILE, tracks, marks=marks, **more)
    series = [Series(word, [1.0] * len(words)) for word in words]
    yield BarChart("n", HOSTILE, HOSTILE, HOSTILE, words, series, bound=HOSTILE)


@pytest.mark.parametrize("chart", list(hostile_charts()))
def test_words_from_outside_are_text_and_no_expressions(chart: Chart) -> None:
    whole = json.loads(text_of(spec_of(chart)))
    for node in nodes(whole):
        assert all(value.isprintable() for value in node.values() if isinstance(value, str))
        for key in EXPRESSIONS:
            assert "alert" not in beside_list(node.get(key, ""))


def beside_list(expression: str) -> str:
    """An expression without the JSON list with which it begins, or which is the first argument of
    the function with which it begins."""
    start = len("indexof(") if expression.startswith("indexof(") else 0
    if not expression.startswith("[", start):
        return expression
    _, end = json.JSONDecoder().raw_decode(expression, start)
    return expression[:start] + expression[end:]


@needs.mark("vl-convert-python")
@pytest.mark.parametrize("chart", list(hostile_charts()))
def test_files_hold_such_words_as_text(chart: Chart) -> None:
    svg = vega.converted(spec_of(chart), "svg").decode()
    assert "<script" not in svg and "&lt;script&gt;" in svg


@settings(deadline=None)
@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=20), st.text(max_size=10))
def test_specifications_are_json(values: list[float], name: str) -> None:
    points = [(value, value) for value in values]
    for chart in (
        BarChart("n", name, name, name, [str(v) for v in values], [Series(name, values)]),
        LineChart("n", name, name, name, [track(name, *points), track("b", *points)]),
    ):
        assert len(json.loads(text_of(spec_of(chart)))["data"]["values"]) >= len(values)
