"""Pages about many things: what is shown instead of a row for each."""

from __future__ import annotations

import re

import pytest

from agglab.testbed.report.figures import AGAIN
from agglab.testbed.report.losses import Loss
from agglab.testbed.report.page import LISTED_MAX, PLACES_MAX, _counters, _leaves, _lost, _predicted
from agglab.testbed.report.spread import counters
from agglab.testbed.report.tables import ROWS_OPEN, table


def _rows(count: int) -> dict[str, dict[str, object]]:
    return {
        f"s{n}": {"new": 10 - n % 7, "stale_s": 0, "note": "x y", "lag": None} for n in range(count)
    }


def _cells(text: str) -> list[list[str]]:
    return [re.findall(r"<t[dh][^>]*>([^<]*)<", row) for row in text.split("</tr>")[:-1]]


def test_few_things_have_a_row_each() -> None:
    text = counters("switch", _rows(ROWS_OPEN))
    assert len(_cells(text)) == ROWS_OPEN + 1
    assert "metrics.json" not in text


@pytest.mark.parametrize("rows", [ROWS_OPEN, ROWS_OPEN + 1])
def test_a_long_table_is_folded(rows: int) -> None:
    text = table("run", {f"point {n}": {"ratio": n} for n in range(rows)})
    assert len(_cells(text)) == rows + 1
    assert (f"<summary>{rows} rows</summary>" in text) == (rows > ROWS_OPEN)


def test_many_things_have_a_row_for_each_counter_that_is_not_zero() -> None:
    text = counters("switch", _rows(ROWS_OPEN + 1))
    head, *rows = _cells(text)
    assert head[:3] == ["counter", "least", "switch with the least"]
    total = sum(10 - n % 7 for n in range(ROWS_OPEN + 1))
    assert rows == [["new", "4", "9 of them", "7", "10", "10 of them", str(total)]]
    assert "Zero everywhere: stale (s)." in text


def test_a_counter_below_zero_is_not_zero() -> None:
    rows = {f"d{n}": {"more": -n} for n in range(ROWS_OPEN + 1)}
    text = counters("direction", rows)
    assert _cells(text)[1][:3] == ["more", "-64", "d64"]
    assert "Zero" not in text


def test_counters_that_only_some_have() -> None:
    rows = {f"s{n}": {"new": n if n % 2 else None} for n in range(ROWS_OPEN + 1)}
    assert _cells(counters("switch", rows))[1][1:4] == ["1", "s1", "31"]


def test_names_are_text() -> None:
    rows = {f"<b>{n}": {"new": n} for n in range(ROWS_OPEN + 1)}
    assert "<b>" not in counters("switch", rows)


@pytest.mark.parametrize("places", [PLACES_MAX, PLACES_MAX + 3])
def test_most_losses_have_a_row_and_the_rest_a_sentence(places: int) -> None:
    text = "".join(_lost([Loss(f"h{n}->s1", 1000 - n, None, "why") for n in range(places)]))
    assert len(_cells(text)) == PLACES_MAX + 1
    told = "2,949 further packets were lost at 3 other places."
    assert (told in text) == (places > PLACES_MAX)


def test_long_lists_of_the_manifest_are_shortened() -> None:
    names = [f"h{n}" for n in range(LISTED_MAX + 2)]
    assert _leaves({"links": names, "few": [1, 2]}) == [
        ("links", ", ".join(names[:LISTED_MAX]) + ", and 2 more"),
        ("few", "1, 2"),
    ]
    assert _leaves({"programs": [{"json": "a"}]}) == [("programs.0.json", "a")]


def test_workers_switches_and_links_are_all_shown_like_this() -> None:
    many = range(ROWS_OPEN + 1)
    way = {"seen": 9, "bytes": 100, "predicted_bytes": 90}
    nothing_again = dict.fromkeys(AGAIN, 0)
    metrics = {
        "jobs": {"job1": {"workers": {str(n): {"sent": n, **nothing_again} for n in many}}},
        "switches": {f"s{n}": {"packets": {"new": n}} for n in many},
        "links": {f"h{n}-s1": {f"h{n}->s1": way} for n in many},
        "links_as_predicted": True,
    }
    parts = [*_counters(metrics), *_predicted(metrics)]
    spread = [part for part in parts if "metrics.json has the counters of all 65." in part]
    titles = [re.findall("<h2>(.*)</h2>", part)[0] for part in spread]
    assert titles == ["Workers", "Switches", "Links", "Bytes, predicted and measured"]
