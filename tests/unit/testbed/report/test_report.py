"""Figures and report are a pure function of the folder; nothing in it is fetched or run."""

import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agglab.testbed import report
from agglab.testbed.report.chart import (
    Axis,
    Piece,
    Reference,
    Series,
    Track,
    bars,
    lines,
    number,
    tick_step,
)
from agglab.testbed.report.figures import figures_of_several
from agglab.testbed.report.tracks import tracks

SVG = "{http://www.w3.org/2000/svg}"

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
    assert all((folder / each).is_file() for each in tags.references)  # beside it, none elsewhere
    assert {"time.svg", "progress.svg", "metrics.json"} <= set(tags.references)
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
        kinds = (".svg", ".html")
        return {p.name: p.read_bytes() for p in folder.iterdir() if p.suffix in kinds}

    first = drawn()
    assert set(first) == {
        "time.svg",
        "workers.svg",
        "progress.svg",
        "drops.svg",
        "topology.svg",
        "report.html",
    }
    assert drawn() == first
    documented = (Path(__file__).parents[4] / "docs/results.md").read_text()
    assert all(f"\n| `{name}` |" in documented for name in first)


def test_figures_show_the_values(folder: Path) -> None:
    report.write(folder)
    root = ET.parse(folder / "time.svg").getroot()
    hints = [t.text for t in root.iter(f"{SVG}title")]
    assert hints == ["Time of each round", *[f"round {i}, time: 0.{i + 3}" for i in (0, 1, 2)]]
    heights = [
        float(r.get("height")) for r in root.iter(f"{SVG}rect") if r.find(f"{SVG}title") is not None
    ]
    assert heights == pytest.approx([heights[0], heights[0] * 4 / 3, heights[0] * 5 / 3], rel=0.01)
    assert any(t.text == "link bound 0.25" for t in root.iter(f"{SVG}text"))
    progress = ET.parse(folder / "progress.svg").getroot()
    assert len(list(progress.iter(f"{SVG}polyline"))) == 2


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
    hints = [t.text for t in ET.parse(folder / "time.svg").getroot().iter(f"{SVG}title")]
    assert "4, median time, link bound: 0.25" in hints


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
    text = (folder / "progress.svg").read_text()
    assert "(dashed: rounds that were aborted)" in text
    assert text.count("stroke-dasharray='4 3'") == 2, "rank 1's own round never ended either"


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
    hints = [t.text for t in ET.parse(folder / "time.svg").getroot().iter(f"{SVG}title")]
    assert [h for h in hints if ", b: " in h] == ["round 0, b: 1"]


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
        assert "metrics.json or events.jsonl is damaged or from another version of Agglab" in str(
            error
        )
        assert sorted(folder.iterdir()) == before, "half a report"


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
    root = ET.parse(folder / "workers.svg").getroot()
    labels = [t.text for t in root.iter(f"{SVG}text")]
    assert "Frames beyond the necessary ones (the 24 of 200 workers with the most)" in labels
    assert "worker 176" in labels
    assert "worker 175" not in labels


def test_labels_and_legends_do_not_meet() -> None:
    names = [f"worker {n}" for n in range(1000, 1040)]
    root = ET.fromstring(bars("t", "frames", names, [Series(n, [1.0] * 40) for n in names]))
    texts = [(float(t.get("x")), float(t.get("y")), t.text) for t in root.iter(f"{SVG}text")]
    for y in (41.0, 286.0):
        row = sorted((x, text) for x, at, text in texts if at == y)
        assert len(row) > 3
        assert all(b - a > 5.5 * len(text) for (a, text), (b, _) in pairwise(row))
        assert row[-1][0] + 5.5 * len(row[-1][1]) * (0.5 if y > 50 else 1) <= 680
    assert any(text.startswith("and ") for _, _, text in texts)


@settings(deadline=None)
@given(st.floats(1e-12, 1e12))
def test_ticks_are_round_and_few(top: float) -> None:
    step = tick_step(top)
    assert 2 <= top / step <= 5 * (1 + 1e-6)
    assert f"{step:.0e}"[0] in "125"
    assert len(Axis(top, 0, 100).ticks()) <= 6


@settings(deadline=None)
@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=20), st.text(max_size=10))
def test_charts_are_well_formed(values: list[float], name: str) -> None:
    name = "".join(c for c in name if c.isprintable())
    labels = [name] * len(values)
    piece = Piece([(value, value) for value in values])
    dashed = Piece(piece.points, dashed=True)
    for svg in (
        bars(name, name, labels, [Series(name, values)], [Reference(name, values[0])]),
        lines(name, name, name, [Track(name, [piece]), Track("b", [piece, dashed])]),
    ):
        for rectangle in ET.fromstring(svg).iter(f"{SVG}rect"):
            assert float(rectangle.get("height")) >= 0
            assert float(rectangle.get("y", 0)) >= 0


def test_numbers_are_short() -> None:
    assert [number(v) for v in (0, 0.33512, 12, 1234, 2.5e6, 1e9)] == [
        "0",
        "0.335",
        "12",
        "1.23k",
        "2.5M",
        "1G",
    ]


def test_a_run_without_a_retransmission_says_so_instead_of_an_empty_chart(folder: Path) -> None:
    quiet = json.loads(json.dumps(METRICS))
    for worker in quiet["jobs"]["job1"]["workers"].values():
        worker |= {"retransmitted": 0, "duplicates": 0, "timeouts": 0}
    assert "No worker sent" not in report.write(folder).read_text()
    assert (folder / "workers.svg").is_file()
    (folder / "workers.svg").unlink()
    (folder / "metrics.json").write_text(json.dumps(quiet))
    assert "No worker sent or received anything twice" in report.write(folder).read_text()
    assert not (folder / "workers.svg").exists()


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
    assert "link_down h&lt;1&gt;-s1" in (folder / "progress.svg").read_text()


def trained(curve: list[list[float]], counts: list[int]) -> dict[str, object]:
    return {**METRICS, "training": {"curve": curve, "delay": {"counts": counts}}}


def test_training_is_drawn_with_a_line_and_bars_for_each_contender() -> None:
    curve = [[0.0, 1.0], [0.5, 0.75], [1.0, 0.5]]
    contenders = {"fifo": trained(curve, [0, 1, 3]), "other": trained(curve[:2], [5])}
    figures = figures_of_several({**METRICS, "contenders": contenders})
    drawn = {each.file: each for each in figures}
    assert set(drawn) >= {"loss.svg", "delays.svg"}
    for figure in (drawn["loss.svg"], drawn["delays.svg"]):
        for svg in (figure.wide, figure.narrow):
            assert "fifo" in svg and "other" in svg
            ET.fromstring(svg)
    (longer, shorter) = re.findall(r"<polyline points='([^']*)'", drawn["loss.svg"].wide)
    assert (len(longer.split()), len(shorter.split())) == (5, 3)
    assert "2, fifo: 0.75" in drawn["delays.svg"].wide and "0, other: 1" in drawn["delays.svg"].wide


def test_a_line_needs_a_measured_value_at_two_points() -> None:
    """At a point with several jobs there is no time of a round of all of them."""
    of_one_job = ("allreduce", "link_bound_ratio")
    several = {name: value for name, value in METRICS.items() if name not in of_one_job}
    names = {}
    for second in (METRICS, several):
        points = [
            {"settings": {"jobs": str(jobs)}, "metrics": metrics}
            for jobs, metrics in ((1, METRICS), (2, second))
        ]
        drawn = figures_of_several({**METRICS, "points": points})
        names[second is several] = {each.file for each in drawn}
    assert {"time-by-jobs.svg", "again-by-jobs.svg"} <= names[False]
    assert names[False] - names[True] == {"time-by-jobs.svg", "ratio-by-jobs.svg"}


def test_nothing_of_training_is_drawn_where_nobody_trained() -> None:
    untrained = {**METRICS, "contenders": {"a": METRICS, "b": trained([], [])}}
    names = {each.file for each in figures_of_several(untrained)}
    assert names and not names & {"loss.svg", "delays.svg"}
