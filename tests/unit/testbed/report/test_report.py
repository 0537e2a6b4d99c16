"""Figures and report are a pure function of the folder; nothing in it is fetched or run."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from agglab.testbed import report
from agglab.testbed.base.errors import MachineLacks
from agglab.testbed.report import vega
from agglab.testbed.report.chart import BarChart, LineChart, Piece
from agglab.testbed.report.figures import WORKERS_MAX, charts_of_several, run_charts
from agglab.testbed.report.tracks import tracks

JOB = {
    "exact": True,
    "wrong_sums": 0,
    "wrong_results": 0,
    "rounds": 3,
    "restarts": 0,
    "lost_workers": [],
    "error": {"max_abs": 1e-9, "bound": 2e-9, "within": True},
    "allreduce": {
        "time_s": {"median": 0.4, "min": 0.3, "max": 0.5, "all": [0.3, 0.4, 0.5]},
        "ate_per_s": 2.5e6,
    },
    "payload_bound_s": 0.2,
    "link_bound_s": 0.25,
    "link_bound_ratio": 1.6,
    "lossy_bound_s": 0.32,
    "lossy_bound_ratio": 1.25,
    "workers": {
        r: {"sent": 5, "retransmitted": 2, "duplicates": 1, "timeouts": 2} for r in ("0", "1")
    },
}
METRICS = {
    **JOB,
    "jobs": {"job1": JOB},
    "fairness": {"jain": 1.0, "shares": {"job1": 1.0}},
    "failure": None,
    "links_as_predicted": True,
    "ok": True,
    "reason": "",
    "exact": True,
    "wrong_sums": 0,
    "wrong_results": 0,
    "first_wrong": None,
    "totals": {"retransmitted": 4, "injected_drops": 3, "other_drops": 0, "malformed": 0},
    "switches": {"s1": {"packets": {"new": 10}, "ring_drops": 0, "cpu_s": 0.1}},
    "links": {
        "h1-s1": {
            "h1->s1": {"seen": 9, "dropped": 1, "bytes": 100, "queue_drops": 0},
            "s1->h1": {"seen": 9, "dropped": 2, "bytes": 100, "queue_drops": 0},
        }
    },
    "findings": [{"kind": "slow", "text": "a <round> took long", "numbers": {}}],
    "fidelity": {"verdict": "network-bound", "reasons": ["the <busiest> link & co"]},
}
OF_ALL = ("exact", "wrong_sums", "wrong_results")
EVENTS = [
    {
        "t_ns": 10**9 + i * 10**8,
        "event": "progress",
        "job": 1,
        "rank": i % 2,
        "round": 0,
        "chunks": i * 10,
    }
    for i in range(8)
]
EVENTS += [
    {
        "t_ns": 2 * 10**9,
        "event": "round",
        "job": 1,
        "rank": 0,
        "round": 0,
        "start_ns": 10**9 - 5,
        "end_ns": 2 * 10**9,
        "chunks": 90,
    },
    {"t_ns": 2 * 10**9, "event": "fault", "fault": "link_down", "target": "h<1>-s1"},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    path.mkdir()
    (path / "metrics.json").write_text(json.dumps(METRICS))
    manifest = {"scenario": "<demo>", "seed": 7, "started": "now", "git": None}
    (path / "manifest.json").write_text(json.dumps(manifest))
    (path / "scenario.yaml").write_text("name: <demo> & co\n")
    (path / "events.jsonl").write_text("".join(json.dumps(e) + "\n" for e in EVENTS) + '{"cut')
    return path


class Tags(HTMLParser):
    """Tags that are opened and closed in order, and what they refer to."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.seen.add(tag)
        self.references += [value for name, value in attrs if name in ("src", "href")]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_report_stands_alone(folder: Path) -> None:
    text = report.write(folder).read_text()
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    beside = set(tags.references) - ({vega.SCRIPT} if vega.script() is None else set())
    assert all((folder / each).is_file() for each in beside), "beside it, none elsewhere"
    assert {"time.vl.json", "progress.vl.json", "metrics.json"} <= set(tags.references)
    assert not tags.seen & {"img", "link", "iframe"}
    assert "&lt;demo&gt; &amp; co" in text
    assert "<demo>" not in text
    assert "passed" in text
    assert "the &lt;busiest&gt; link &amp; co" in text
    assert "slow: a &lt;round&gt; took long" in text


@pytest.mark.parametrize(("ok", "said"), [(True, "passed"), (False, "failed")])
def test_its_head_says_how_the_run_ended(folder: Path, ok: bool, said: str) -> None:
    reason = "" if ok else "expected exact = true"
    (folder / "metrics.json").write_text(json.dumps({**METRICS, "ok": ok, "reason": reason}))
    text = report.write(folder).read_text()
    assert f"<span class='verdict {said}'>{said}</span>" in text
    assert f"<p>{reason}</p>" in text or ok


def test_a_system_that_summed_nothing_is_named_in_its_head_and_the_calls_in_a_table(
    folder: Path,
) -> None:
    counts = {"all_gather_collective": 3, "all_gather_collective_bytes": 4500}
    job = {**JOB, "training": {"counts": counts}}
    finding = {"kind": "not-aggregated", "text": "the system summed <nothing>", "numbers": {}}
    changed = {"exact": None, "jobs": {"job1": job}, "findings": [finding]}
    (folder / "metrics.json").write_text(json.dumps({**METRICS, **changed}))
    text = report.write(folder).read_text()
    head = text.partition("<h1>")[2].partition("<dl")[0]
    assert "<p>not-aggregated: the system summed &lt;nothing&gt;</p>" in head
    table = text.partition("<h2>What went where (job1)</h2>")[2].partition("</table>")[0]
    for cell in ("1. all_gather", "by Gloo (no all-reduce)", "3", "4,500"):
        assert f">{cell}<" in table
    assert "What went where" not in report.write(without_calls(folder)).read_text()


def without_calls(folder: Path) -> Path:
    (folder / "metrics.json").write_text(json.dumps(METRICS))
    return folder


def test_the_same_folder_gives_the_same_bytes(folder: Path) -> None:
    def drawn() -> dict[str, bytes]:
        report.write(folder)
        kinds = (".vl.json", ".html")
        return {p.name: p.read_bytes() for p in folder.iterdir() if p.name.endswith(kinds)}

    first = drawn()
    assert set(first) == {
        "time.vl.json",
        "workers.vl.json",
        "progress.vl.json",
        "drops.vl.json",
        "topology.vl.json",
        "report.html",
    }
    assert drawn() == first
    documented = (Path(__file__).parents[4] / "docs/results.md").read_text()
    assert all(f"\n| `{name}` |" in documented for name in first)


def chart(folder: Path, name: str) -> dict:
    """The specification of a chart in a result folder."""
    return json.loads((folder / f"{name}.vl.json").read_text())


def rows_of_chart(folder: Path, name: str) -> list[dict]:
    return chart(folder, name)["data"]["values"]


def test_figures_show_the_values(folder: Path) -> None:
    report.write(folder)
    rows = [(row["x"], row["y"]) for row in rows_of_chart(folder, "time")]
    assert rows == [("0", 0.3), ("1", 0.4), ("2", 0.5)]
    reference = chart(folder, "time")["layer"][-1]["data"]["values"]
    assert reference == [{"at": 0.25, "line": "link bound 0.25"}]
    progress = {row["line"] for row in rows_of_chart(folder, "progress")}
    assert progress == {"worker 0", "worker 1"}


def test_a_page_names_the_scripts_and_the_scripts_are_there_once(folder: Path) -> None:
    points = [{"settings": {"n": n}, "metrics": METRICS} for n in ("2", "4")]
    (folder / "metrics.json").write_text(json.dumps({**METRICS, "points": points}))
    (folder / "point-0").mkdir()
    (folder / "point-0/metrics.json").write_text(json.dumps(METRICS))
    report.write(folder)
    pages = {"report.html": "charts.js", "point-0/report.html": "../charts.js"}
    for page, source in pages.items():
        text = (folder / page).read_text()
        assert text.count(f"<script src='{source}'></script>") == 1
        assert len(text) < 200_000, "the scripts are not in the page"
    assert len([*folder.rglob(vega.SCRIPT)]) == (vega.script() is not None)


def test_without_vega_a_run_still_writes_its_charts_as_data(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vega, "find_spec", lambda name: None)
    report.write(folder)
    assert rows_of_chart(folder, "time") and not (folder / vega.SCRIPT).exists()
    with pytest.raises(MachineLacks, match="vl-convert-python"):
        vega.converted(chart(folder, "time"), "svg")


def test_a_cache_that_cannot_be_written_costs_the_charts_only(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr(vega, "script", refuse)
    assert report.write(folder).is_file() and not (folder / vega.SCRIPT).exists()


def test_a_run_without_results_still_has_a_report(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text('{"ok": false, "reason": "worker 1: gave <up>"}')
    text = report.write(tmp_path).read_text()
    assert "failed" in text
    assert "worker 1: gave &lt;up&gt;" in text


def test_a_sweep_links_its_points(folder: Path) -> None:
    points = [{"settings": {"topology.workers": n}, "metrics": METRICS} for n in ("2", "4")]
    broken = {"settings": {"topology.workers": "8"}, "metrics": {"ok": False, "reason": "x"}}
    sweep = {"ok": False, "reason": "8: x", "exact": False, "growth": {}}
    (folder / "metrics.json").write_text(json.dumps({**sweep, "points": [*points, broken]}))
    (folder / "point-0").mkdir()
    (folder / "point-0/metrics.json").write_text(json.dumps(METRICS))
    text = report.write(folder).read_text()
    assert "href='point-0/report.html'" in text
    assert "seed 7" in (folder / "point-0/report.html").read_text()
    assert {"x": "4", "line": "median time", "y": 0.4, "bound": 0.25} in rows_of_chart(
        folder, "time"
    )


def rows_of(text: str) -> list[list[str]]:
    """Of the first table, cell by cell."""
    table = re.search(r"<table.*?</table>", text, re.DOTALL)
    assert table
    return [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in table[0].split("<tr")[1:]]


def test_a_sweep_says_of_every_point_how_it_ended(folder: Path) -> None:
    def point(**changes: object) -> dict[str, object]:
        return {"settings": {"n": str(len(changes))}, "metrics": {**METRICS, **changes}}

    starved = {"verdict": "starved", "reasons": ["2 of 2 waited"]}
    missed = {"ok": False, "reason": "expected ratio <= 1, got 2"}
    failed = {"job": "job1", "worker": "h3", "after_s": 1.0, "reason": "h3: worker 2 is <dead>"}
    points = [
        point(),
        point(fidelity=starved),
        point(**missed, wrong_results=7),
        point(failure=failed, exact=False, wrong_sums=3),
        {"settings": {"n": "9"}, "metrics": {"ok": False, "reason": "no room"}},
    ]
    sweep = {"ok": False, "reason": "x", "exact": False, "growth": {"ratio": 2.5}}
    (folder / "metrics.json").write_text(json.dumps({**sweep, "points": points}))
    text = report.write(folder).read_text()
    head, *rows = rows_of(text)
    assert head[0] == "run" and len(rows) == 5
    found = [dict(zip(head, row, strict=True)) for row in rows]
    assert [row["verdict"] for row in found] == ["passed", "passed", "failed", "passed", "failed"]
    assert [row["sums exact"] for row in found] == ["true", "true", "true", "false", "–"]
    assert [row["wrong results"] for row in found] == ["0", "0", "7", "0", "–"]
    assert [row["fidelity"] for row in found[:2]] == ["network-bound", "starved"]
    assert [row["why it did not pass"] for row in found] == [
        "",
        "",
        "expected ratio &lt;= 1, got 2",
        "h3: worker 2 is &lt;dead&gt;",
        "no room",
    ]
    assert "class='bad' data-of='fidelity'>starved<" in text
    assert "1 of 5 runs did not measure the network" in text
    assert "growth of ratio: 2.5" in text
    assert "<span class='verdict limited'>starved</span>" in text


BEGIN = 10**9


def at(ms: int, event: str, rank: int | None = 0, **more: object) -> dict[str, object]:
    who = {} if rank is None else {"job": 1, "rank": rank}
    return {"t_ns": BEGIN + ms * 10**6, "event": event, **who, **more}


def test_chunks_done_are_connected_within_an_attempt_only() -> None:
    """Round 0 ends, round 1 is broken off at 200 ms with 30 and 100 chunks, and ends at 400 ms."""

    def begin(ms: int, number: int, ranks: list[int]) -> dict[str, object]:
        return at(ms, "round_begin", None, job=1, round=number, ranks=ranks)

    def over(ms: int, number: int, rank: int) -> dict[str, object]:
        ends = {"start_ns": BEGIN, "end_ns": BEGIN + ms * 10**6}
        return at(ms, "round", rank, round=number, chunks=100, **ends)

    events = [
        begin(0, 0, [0, 1, 2]),
        over(90, 0, 0),
        over(100, 0, 1),
        at(50, "progress", 2, round=0, chunks=40, of=100, agent_ns=BEGIN + 45 * 10**6),
        over(100, 0, 2),
        begin(150, 1, [0, 1, 2]),
        over(190, 1, 1),
        at(195, "ended", 2, status=-9),
        at(200, "aborted", 0, round=1, chunks=30),
        at(200, "aborted", 1, round=2, waiting=[]),
        at(200, "round_broken_off", None, of="job1"),
        begin(300, 1, [0, 1]),
        over(400, 1, 0),
        over(400, 1, 1),
    ]
    found = tracks(events, BEGIN)
    whole = {0: 0.09, 1: 0.1}
    again = Piece([(0.3, 100.0), (0.4, 200.0)])
    assert found[1, 0] == [
        Piece([(0.0, 0.0), (whole[0], 100.0)]),
        Piece([(0.15, 100.0), (0.2, 130.0)], dashed=True),
        again,
    ]
    assert found[1, 1] == [
        Piece([(0.0, 0.0), (whole[1], 100.0)]),
        Piece([(0.15, 100.0), (0.19, 200.0)]),
        again,
    ]
    assert found[1, 2] == [Piece([(0.0, 0.0), (0.045, 40.0), (0.1, 100.0)])]


def test_a_broken_off_round_is_dashed_and_said(folder: Path) -> None:
    more = [
        at(1100, "round_begin", None, job=1, round=1, ranks=[0]),
        at(1200, "failed", 0, round=1, chunks=20),
    ]
    (folder / "events.jsonl").write_text("".join(json.dumps(e) + "\n" for e in [*EVENTS, *more]))
    report.write(folder)
    assert "(dashed: rounds that were aborted)" in chart(folder, "progress")["usermeta"]["title"]
    rows = [row for row in rows_of_chart(folder, "progress") if row.get("style") == "aborted"]
    assert {row["line"] for row in rows} == {"worker 0", "worker 1"}, "rank 1's never ended either"


def test_rounds_that_a_job_did_not_come_to_have_no_bar(folder: Path) -> None:
    both = {"a": JOB, "b": {**JOB, "rounds": 1, "allreduce": {**JOB["allreduce"]}}}
    both["b"]["allreduce"] = {
        "time_s": {"median": 1, "min": 1, "max": 1, "all": [1.0]},
        "ate_per_s": 1,
    }
    fairness = {"jain": 0.9, "shares": {"a": 0.6, "b": 0.4}}
    several = {k: v for k, v in METRICS.items() if k not in JOB or k in OF_ALL}
    several |= {"jobs": both, "fairness": fairness}
    (folder / "metrics.json").write_text(json.dumps(several))
    report.write(folder)
    rows = [row for row in rows_of_chart(folder, "time") if row["line"] == "b"]
    assert rows == [{"x": "0", "line": "b", "y": 1.0}]


def test_a_folder_that_is_no_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(report.NoResults, match="not the folder of a run"):
        report.write(tmp_path)
    (tmp_path / "metrics.json").write_text("[1]")
    with pytest.raises(report.NoResults, match="is not a JSON object"):
        report.write(tmp_path)


@pytest.mark.parametrize("path", ["ok", "jobs", "totals.other_drops", "fidelity.reasons"])
@pytest.mark.parametrize("value", [None, 7, "x", [1]])
def test_a_folder_of_another_version_is_named(folder: Path, path: str, value: object) -> None:
    metrics = json.loads(json.dumps(METRICS))
    *above, last = path.split(".")
    section = metrics
    for name in above:
        section = section[name]
    if value is None:
        del section[last]
    else:
        section[last] = value
    (folder / "metrics.json").write_text(json.dumps(metrics))
    before = sorted(folder.iterdir())
    try:
        report.write(folder)
    except report.NoResults as error:
        assert "metrics.json, events.jsonl or program.json is damaged or from another" in str(error)
        assert sorted(folder.iterdir()) == before, "half a report"


def test_registers_are_a_table_of_their_first_cells(folder: Path) -> None:
    registers = {"few": {"cells": 3, "not_zero": {"1": 7}}, "stopped": None}
    registers["many"] = {"cells": 17, "not_zero": {"0": 5, "16": 9}}
    state = {"s1": {"counters": {}, "registers": registers}}
    (folder / "program.json").write_text(json.dumps(state))
    text = report.write(folder).read_text()
    assert _row(text, "few of s1") == ["3", "1", "0, 7, 0"]
    assert _row(text, "many of s1") == ["17", "2", "5, " + "0, " * 14 + "0 ..."]
    assert _row(text, "stopped of s1") == ["–"] * 3
    (folder / "program.json").write_text('{"s1": {"registers": {"few": 3}}}')
    with pytest.raises(report.NoResults, match=r"program\.json is damaged"):
        report.write(folder)


@pytest.mark.parametrize("name", [".", "..", "../a", "/", "a/../a", "javascript:alert(1)//", ""])
@pytest.mark.parametrize("at_a_point", [False, True])
def test_a_contender_s_name_leads_nowhere_else(folder: Path, name: str, at_a_point: bool) -> None:
    metrics: dict[str, object] = {**METRICS, "contenders": {name: METRICS} if name else {}}
    if at_a_point:
        metrics = {**METRICS, "points": [{"settings": {"seed": "1"}, "metrics": metrics}]}
    (folder / "metrics.json").write_text(json.dumps(metrics))
    with pytest.raises(report.NoResults, match="no contenders"):
        report.write(folder)


def test_what_is_no_text_is_drawn_as_far_as_it_goes(folder: Path) -> None:
    (folder / "events.jsonl").write_bytes(b"\xff\xfe\n")
    (folder / "scenario.yaml").write_bytes(b"name: caf\xe9\n")
    assert "caf\N{REPLACEMENT CHARACTER}" in report.write(folder).read_text(encoding="utf-8")


def test_a_systems_own_counters_are_a_table_of_their_own_unless_all_are_zero(folder: Path) -> None:
    metrics = json.loads(json.dumps(METRICS))
    for rank, counts in enumerate(metrics["jobs"]["job1"]["workers"].values()):
        counts |= {"skipped": 0, "ahead": 7 * rank}
    for wanted in (True, False):
        (folder / "metrics.json").write_text(json.dumps(metrics))
        text = report.write(folder).read_text()
        assert ("<th>ahead</th>" in text, "<th>skipped</th>" in text) == (wanted, wanted)
        assert "<th>ahead</th>" not in text.split("<th>sent</th>")[1].split("</table>")[0]
        for counts in metrics["jobs"]["job1"]["workers"].values():
            counts["ahead"] = 0


def _row(text: str, counter: str) -> list[str]:
    """Returns the cells of a counter's row in a table of spread counters."""
    row = text.split(f"<tr><td>{counter}</td>")[1].split("</tr>")[0]
    return re.findall(r">([^<]*)</td>", row)


def test_many_workers_are_a_figure_and_the_spread_of_their_counters(folder: Path) -> None:
    metrics = json.loads(json.dumps(METRICS))
    worker = next(iter(metrics["jobs"]["job1"]["workers"].values()))
    workers = {str(n): {**worker, "retransmitted": 3 + n, "late": 0} for n in range(200)}
    metrics["workers"] = metrics["jobs"]["job1"]["workers"] = workers
    (folder / "metrics.json").write_text(json.dumps(metrics))
    text = report.write(folder).read_text()
    part = text.split("<h2>Workers</h2>")[1].split("<h2>")[0]
    assert "metrics.json has the counters of all 200." in part
    assert _row(part, "retransmitted") == ["3", "0", "102", "202", "199", "20,500"]
    assert "late" in part.split("Zero everywhere: ")[1].split("</p>")[0].removesuffix(".").split(
        ", "
    )
    assert "<td>late</td>" not in part
    title = "Frames beyond the necessary ones (the 24 of 200 workers with the most)"
    assert chart(folder, "workers")["usermeta"]["title"] == title
    shown = {row["x"] for row in rows_of_chart(folder, "workers")}
    assert shown == {f"worker {n}" for n in range(176, 200)}


def test_of_many_workers_those_that_are_done_last_are_drawn() -> None:
    events = [
        {**at(10 * (rank + 1), "round", rank), "round": 0, "chunks": 9}
        | {"start_ns": BEGIN, "end_ns": BEGIN + 10**7 * (rank + 1)}
        for rank in range(40)
    ]
    (progress,) = [c for c in run_charts(METRICS, events) if c.name == "progress"]
    assert isinstance(progress, LineChart)
    assert progress.title == f"Chunks done (the {WORKERS_MAX} of 40 workers that were last)"
    assert {track.name for track in progress.tracks} == {f"worker {n}" for n in range(24, 40)}


def test_a_run_without_a_retransmission_says_so_instead_of_an_empty_chart(folder: Path) -> None:
    quiet = json.loads(json.dumps(METRICS))
    for worker in quiet["jobs"]["job1"]["workers"].values():
        worker |= {"retransmitted": 0, "duplicates": 0, "timeouts": 0}
    assert "No worker sent" not in report.write(folder).read_text()
    assert (folder / "workers.vl.json").is_file()
    (folder / "workers.vl.json").unlink()
    (folder / "metrics.json").write_text(json.dumps(quiet))
    assert "No worker sent or received anything twice" in report.write(folder).read_text()
    assert not (folder / "workers.vl.json").exists()


def test_several_jobs_and_faults_are_drawn(folder: Path) -> None:
    both = {"a": JOB, "b": {**JOB, "rounds": 2, "lost_workers": ["h3"], "restarts": 1}}
    fairness = {"jain": 0.987, "shares": {"a": 0.6, "b": 0.4}}
    several = {k: v for k, v in METRICS.items() if k not in JOB or k in OF_ALL}
    (folder / "metrics.json").write_text(
        json.dumps({**several, "jobs": both, "fairness": fairness})
    )
    text = report.write(folder).read_text()
    assert "Jain index of the jobs: 0.987" in text
    assert "Workers of b" in text and "h3" in text
    assert "1 (at 1 s): link_down h<1>-s1" in chart(folder, "progress")["usermeta"]["notes"]


def trained(curve: list[list[float]], counts: list[int]) -> dict[str, object]:
    return {**METRICS, "training": {"curve": curve, "delay": {"counts": counts}}}


def test_training_is_drawn_with_a_line_and_bars_for_each_contender() -> None:
    curve = [[0.0, 1.0], [0.5, 0.75], [1.0, 0.5]]
    contenders = {"fifo": trained(curve, [0, 1, 3]), "other": trained(curve[:2], [5])}
    drawn = {each.name: each for each in charts_of_several({**METRICS, "contenders": contenders})}
    loss, delays = drawn["loss"], drawn["delays"]
    assert isinstance(loss, LineChart) and isinstance(delays, BarChart)
    points = {track.name: track.pieces[0].points for track in loss.tracks}
    assert (len(points["fifo"]), len(points["other"])) == (5, 3)
    assert not loss.from_zero, "losses would be specks at the top of an axis from zero"
    shares = {series.name: series.y for series in delays.series}
    assert shares == {"fifo": [0.0, 0.25, 0.75], "other": [1.0, None, None]}


def jobs_of(*times_s: float) -> dict[str, object]:
    """The metrics of a run with several jobs: those of a job are not at the top level."""
    of_one_job = ("allreduce", "link_bound_ratio", "link_bound_s")
    several = {name: value for name, value in METRICS.items() if name not in of_one_job}
    jobs = {}
    for number, time_s in enumerate(times_s):
        times = {"median": time_s, "min": time_s, "max": time_s, "all": [time_s]}
        jobs[f"job{number}"] = {**JOB, "allreduce": {"time_s": times, "ate_per_s": 1.0}}
    return {**several, "jobs": jobs}


def test_the_time_of_several_jobs_is_that_of_the_slowest() -> None:
    points = [
        {"settings": {"jobs": str(jobs)}, "metrics": metrics}
        for jobs, metrics in ((1, METRICS), (2, jobs_of(0.7, 0.9)))
    ]
    drawn = {each.name: each for each in charts_of_several({**METRICS, "points": points})}
    assert set(drawn) == {"time-by-jobs", "again-by-jobs", "time"}, "a ratio at one point only"
    times = drawn["time-by-jobs"]
    assert isinstance(times, LineChart) and "(of the slowest job)" in times.title
    assert [list(piece.points) for piece in times.tracks[0].pieces] == [[(1.0, 0.4), (2.0, 0.9)]]


def test_contenders_with_several_jobs_are_compared(folder: Path) -> None:
    contenders = {"slow": jobs_of(0.2, 0.8), "fast": jobs_of(0.4, 0.3)}
    (folder / "metrics.json").write_text(json.dumps({**METRICS, "contenders": contenders}))
    text = report.write(folder).read_text()
    head, *rows = rows_of(text)
    cells = [dict(zip(head, row, strict=True)) for row in rows]
    assert [row["median time of a round (s)"] for row in cells] == ["0.8", "0.4"]
    assert [row["times slow"] for row in cells] == ["1", "0.5"]
    bars = [(row["x"], row["y"]) for row in rows_of_chart(folder, "time")]
    assert bars == [("slow", 0.8), ("fast", 0.4)]


def test_nothing_of_training_is_drawn_where_nobody_trained() -> None:
    untrained = {**METRICS, "contenders": {"a": METRICS, "b": trained([], [])}}
    names = {each.name for each in charts_of_several(untrained)}
    assert names and not names & {"loss", "delays"}
