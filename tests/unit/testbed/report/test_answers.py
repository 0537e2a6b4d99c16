"""What a report answers, from a folder that a real run in virtual time has left; and that every
figure follows the folder's numbers."""

from __future__ import annotations

import io
import json
import random
import re
import shlex
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from agglab.testbed import report
from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.report import dygraphs
from agglab.testbed.report.chart import Piece, Track
from agglab.testbed.report.expected import judged
from agglab.testbed.report.topology import tree
from agglab.testbed.report.zoom import POINTS_MAX, series, thinned
from agglab.testbed.results.recorded_scenario import RecordedScenario, number, unit
from agglab.testbed.scenario import load

ROOT = Path(__file__).resolve().parents[4]
TEXT = """
name: lossy
backend: virtual
topology: {kind: two_tier, racks: 2, workers: 2}
links: {rate: 10mbit, loss: 1%, overrides: [{match: "s1-*", rate: 20mbit, loss: 5%}]}
switch: {lanes: 16, slots: 8}
workload: {elements: 2000, rounds: 12}
expect: {exact: true, totals.injected_drops: {min: 1, max: 3}}
"""
SWEEP = "sweep: {workload.elements: [200, 400], links.rate: [10mbit, 20mbit]}\n"
LIBRARY = dygraphs.Library("function Dygraph() {}", ".x {}")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("answers")
    for name, more in (("run", ""), ("sweep", SWEEP)):
        (folder / "s.yaml").write_text(TEXT + more)
        run(load(folder / "s.yaml"), folder / name, [], io.StringIO())
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree((made / "run/lossy/latest").resolve(), tmp_path / "run"))


@pytest.fixture
def swept(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree((made / "sweep/lossy/latest").resolve(), tmp_path / "sweep"))


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dygraphs, "find", lambda places: LIBRARY)


def metrics_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "metrics.json").read_text())


def text_of(folder: Path) -> str:
    """What a reader sees, without tags."""
    page = report.write(folder).read_text()
    plain = re.sub(r"<[^>]*>", " ", re.sub(r"<(style|script).*?</\1>", "", page, flags=re.DOTALL))
    return " ".join(plain.split())


def answer(text: str, question: str, following: str) -> str:
    return text.partition(question)[2].partition(following)[0]


def test_five_answers(folder: Path) -> None:
    text, metrics = text_of(folder), metrics_of(folder)
    asked = answer(text, "What was asked", "Did it hold?")
    assert "12 rounds of allreduce over 2,000" in asked and "lose 1% of the packets" in asked
    assert "10mbit" in asked and "two_tier" in asked and "in virtual time" in asked
    held = answer(text, "Did it hold?", "What limited it?")
    assert f"got {metrics['totals']['injected_drops']}" in held and held.startswith(" No: ")
    limited = answer(text, "What limited it?", "Where were packets lost?")
    assert metrics["fidelity"]["reasons"][0] in limited
    lost = answer(text, "Where were packets lost?", "What to run next")
    assert f"{metrics['totals']['injected_drops']} packets were lost in" in lost
    following = answer(text, "What to run next", "Expected and measured")
    assert f"./agglab run {folder.resolve()}/scenario.yaml --set links.loss=0" in following


def test_what_to_run_next_is_a_command_that_works(folder: Path) -> None:
    """It is written for a reader in the folder of Agglab. `check` reads the same words as `run`."""
    page = report.write(folder).read_text()
    assert "What to run next, in the folder of Agglab" in page
    commands = [unescape(each) for each in re.findall("<code>(./agglab run [^<]*)</code>", page)]
    assert commands
    for command in commands:
        check = shlex.split(command.replace(" run ", " check ", 1))
        done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_a_run_that_holds_says_so(folder: Path) -> None:
    metrics = metrics_of(folder)
    metrics |= {"ok": True, "reason": ""}
    metrics["totals"]["injected_drops"] = 2
    (folder / "metrics.json").write_text(json.dumps(metrics))
    assert "Did it hold? Yes: 2 of 2 expectations hold" in text_of(folder)


def test_expected_stands_beside_measured(folder: Path) -> None:
    metrics = metrics_of(folder)
    first, second = judged(RecordedScenario((folder / "scenario.yaml").read_text()), metrics)
    assert (first.metric, first.wanted, first.got, first.holds) == ("exact", "= true", "true", True)
    drops = metrics["totals"]["injected_drops"]
    assert (second.wanted, second.got) == (">= 1 and <= 3", str(drops)) and not second.holds


def test_losses_say_where_and_why(folder: Path) -> None:
    text = text_of(folder)
    rows = text.partition("Where packets were lost, and why")[2].partition("Result")[0]
    ways = [w for link in metrics_of(folder)["links"].values() for w in link.items()]
    for name, way in ways:
        row = re.search(rf"{re.escape(name.replace('>', '&gt;'))} (\d+) ", rows)
        assert (int(row[1]) if row else 0) == way["dropped"], name
    assert "dropped on purpose: loss 0.05" in rows and "dropped on purpose: loss 0.01" in rows


def test_the_topology_is_a_tree_with_each_link_once(folder: Path) -> None:
    metrics = metrics_of(folder)
    root = tree(metrics)
    nodes, found = [root], {}
    while nodes:
        node = nodes.pop()
        nodes += node.below
        found |= {way.name: (way.bytes, way.lost, node.rate) for way in node.ways}
    ways = {n: w for link in metrics["links"].values() for n, w in link.items()}
    assert {name: (way["bytes"], way["dropped"]) for name, way in ways.items()} == {
        name: (count, lost) for name, (count, lost, _) in found.items()
    }
    assert {rate for *_, rate in found.values()} == {"10mbit", "20mbit"}
    assert root.is_switch and {node.label for node in root.below} >= {"s1", "s2"}


def test_many_hosts_are_drawn_as_one_with_their_sum() -> None:
    links = {
        f"h{i}-s1": {
            f"h{i}->s1": {"bytes": 10, "dropped": 1, "queue_drops": 0},
            f"s1->h{i}": {"bytes": 20, "dropped": 0, "queue_drops": 2},
        }
        for i in range(1, 21)
    }
    root = tree({"links": links, "switches": {"s1": {}}})
    (group,) = root.below
    assert group.label == "20 hosts, h1 to h20"
    assert [(way.bytes, way.lost) for way in group.ways] == [(200, 20), (400, 40)]


@pytest.mark.parametrize("seed", range(12))
def test_the_root_is_the_switch_whose_farthest_node_is_nearest(seed: int) -> None:
    """Compared with all distances in a random network, where hosts may have two links."""
    draw = random.Random(seed)
    switches = [f"s{n}" for n in range(1, 8)]
    pairs = {(f"s{n}", f"s{draw.randrange(1, n)}") for n in range(2, 8)} | {("s1", "s7")}
    pairs |= {(f"h{n}", draw.choice(switches)) for n in range(9) for _ in range(1 + (n == 8))}
    beside: dict[str, set[str]] = {}
    for one, other in pairs:
        beside.setdefault(one, set()).add(other)
        beside.setdefault(other, set()).add(one)

    def farthest(name: str) -> int:
        seen, edge, steps = {name}, {name}, -1
        while edge:
            steps, edge = steps + 1, {o for n in edge for o in beside[n]} - seen
            seen |= edge
        return steps

    ways = {f"{a}-{b}": {f"{a}->{b}": {"bytes": 1}, f"{b}->{a}": {"bytes": 1}} for a, b in pairs}
    metrics = {"links": ways, "switches": {name: {} for name in switches}}
    wanted = min(switches, key=lambda name: (farthest(name), -len(beside[name])))
    assert tree(metrics).label == wanted


def test_a_circle_of_links_ends() -> None:
    links = {
        f"{a}-{b}": {f"{a}->{b}": {"bytes": 1}, f"{b}->{a}": {"bytes": 1}}
        for a, b in (("s1", "s2"), ("s2", "s3"), ("s1", "s3"))
    }
    root = tree({"links": links, "switches": {"s1": {}, "s2": {}, "s3": {}}})
    assert sorted(n.label for n in root.below) == ["s2", "s3"]
    assert [n.label for n in root.below[0].below] == ["s3 (above)"]


CHANGES = {
    "topology.svg": ("links", lambda ways: [w.update(bytes=123_456) for w in ways.values()]),
    "drops.svg": (
        "links",
        lambda ways: [w.update(dropped=w["dropped"] + 7) for w in ways.values()],
    ),
}


@pytest.mark.parametrize("file", sorted(CHANGES))
def test_a_link_s_number_changes_its_figure(folder: Path, file: str) -> None:
    key, change = CHANGES[file]
    report.write(folder)
    before = (folder / file).read_text()
    metrics = metrics_of(folder)
    for ways in metrics[key].values():
        change(ways)
    (folder / "metrics.json").write_text(json.dumps(metrics))
    report.write(folder)
    assert (folder / file).read_text() != before


@pytest.mark.parametrize("file", ["time.svg", "distribution.svg", "workers.svg", "progress.svg"])
def test_a_number_of_a_job_changes_its_figure(folder: Path, file: str, library: None) -> None:
    report.write(folder)
    before, page = (folder / file).read_text(), (folder / "report.html").read_text()
    metrics, lines = metrics_of(folder), (folder / "events.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    job = metrics["jobs"]["job1"]
    job["allreduce"]["time_s"]["all"][3] *= 4
    job["workers"]["0"]["retransmitted"] += 100
    (folder / "metrics.json").write_text(json.dumps(metrics))
    next(event for event in events if event["event"] == "round")["end_ns"] += 5_000_000
    (folder / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    report.write(folder)
    assert (folder / file).read_text() != before
    assert (folder / "report.html").read_text() != page


def charts_of(page: str) -> list[Any]:
    """The data of all charts in a page."""
    found = re.findall(r"<script type='application/json'>(.*?)</script>", page)
    return [json.loads(text) for text in found]


def test_a_sweep_has_a_line_over_each_key_and_follows_its_numbers(
    swept: Path, library: None
) -> None:
    page = report.write(swept).read_text()
    files = [f"time-by-{key}.svg" for key in ("workload.elements", "links.rate")]
    before = [(swept / file).read_text() for file in files]
    chart = next(each for each in charts_of(page) if "choices" not in each)
    assert chart["bands"] and chart["x"] == "workload.elements"
    metrics = metrics_of(swept)
    lines = {line["name"]: line["points"] for line in chart["series"]}
    assert set(lines) == {"links.rate 10mbit", "links.rate 20mbit"}
    for point in metrics["points"]:
        x = float(point["settings"]["workload.elements"])
        y = point["metrics"]["allreduce"]["time_s"]["median"]
        (drawn,) = [p for p in lines[f"links.rate {point['settings']['links.rate']}"] if p[0] == x]
        assert drawn[1] == y and drawn[2] <= y <= drawn[3]
    metrics["points"][0]["metrics"]["allreduce"]["time_s"]["median"] *= 9
    (swept / "metrics.json").write_text(json.dumps(metrics))
    report.write(swept)
    assert all((swept / f).read_text() != b for f, b in zip(files, before, strict=True))


def choices_of(page: str) -> Any:
    """The data of the chart whose metric the reader chooses: axis -> metric -> chart."""
    return next(data["choices"] for data in charts_of(page) if "choices" in data)


def test_the_reader_can_choose_each_number_that_differs(swept: Path, library: None) -> None:
    choices = choices_of(report.write(swept).read_text())
    metrics = metrics_of(swept)
    assert set(choices) == {"workload.elements", "links.rate"}
    for axis, charts in choices.items():
        assert next(iter(charts)) == "allreduce.time_s.median"
        assert "exact" not in charts and "rounds" not in charts, "a flag, and one that is the same"
        line = {x: y for each in charts["link_bound_s"]["series"] for x, y in each["points"]}
        points = metrics["points"]
        assert set(line.values()) <= {point["metrics"]["link_bound_s"] for point in points}
        assert len(line) == 2 and charts["link_bound_s"]["x"].startswith(axis)


def test_without_a_swept_number_nothing_is_to_be_chosen(swept: Path, library: None) -> None:
    metrics = metrics_of(swept)
    for point, name in zip(metrics["points"], "abcd", strict=False):
        point["settings"] = {"system": name}
    (swept / "metrics.json").write_text(json.dumps(metrics))
    assert "choices" not in report.write(swept).read_text()


def test_a_key_that_would_lead_elsewhere_names_no_file(swept: Path) -> None:
    metrics = metrics_of(swept)
    for number_, point in enumerate(metrics["points"]):
        point["settings"] = {"../../evil": str(number_)}
    (swept / "metrics.json").write_text(json.dumps(metrics))
    around = swept.parent.parent
    before = set(around.rglob("*evil*"))
    report.write(swept)
    assert set(around.rglob("*evil*")) == before


def test_the_library_is_in_the_page_once_or_everything_is_plain(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dygraphs, "find", lambda places: LIBRARY)
    assert report.write(folder).read_text().count(LIBRARY.script) == 1
    monkeypatch.setattr(dygraphs, "find", lambda places: None)
    plain = report.write(folder).read_text()
    assert "<script" not in plain and plain.count("<svg") >= 8


def test_where_the_library_is_looked_for(tmp_path: Path) -> None:
    assert dygraphs.find([tmp_path]) is None
    (tmp_path / "dygraph.min.js").write_text(
        "var Dygraph;\n//# sourceMappingURL=dygraph.min.js.map"
    )
    found = dygraphs.find([tmp_path / "none", tmp_path])
    assert found and found.script == "var Dygraph;\n" and found.style == ""
    (tmp_path / "dygraph.min.js").write_text("var Dygraph = '</SCRIPT>'")
    assert dygraphs.find([tmp_path]) is None


def test_text_in_a_chart_s_data_ends_no_tag(folder: Path, library: None) -> None:
    events = (folder / "events.jsonl").read_text().splitlines()
    mark = {"t_ns": 5, "event": "fault", "fault": "x</script><b>", "target": "h1"}
    (folder / "events.jsonl").write_text("\n".join([*events, json.dumps(mark)]) + "\n")
    assert "x</script>" not in report.write(folder).read_text()


def test_a_line_keeps_its_peaks_when_thinned() -> None:
    line = [(float(i), 1.0) for i in range(50_000)]
    line[31_234] = (31_234.0, 99.0)
    kept = thinned(line, POINTS_MAX)
    assert len(kept) <= POINTS_MAX + 4 and (31_234.0, 99.0) in kept
    assert kept[0] == line[0] and kept[-1] == line[-1]


def test_pieces_are_apart_and_broken_off_ones_dashed() -> None:
    pieces = [
        Piece([(0, 0), (1, 1)]),
        Piece([(2, 1), (3, 2)], dashed=True),
        Piece([(4, 1), (5, 2)]),
    ]
    solid, dashed = series([Track("w", pieces)])
    assert solid["points"] == [[0, 0], [1, 1], [2.5, None], [4, 1], [5, 2]] and not solid["dashed"]
    assert dashed["points"] == [[2, 1], [3, 2]] and dashed["dashed"]
    assert dashed["name"] == "w, aborted"


@pytest.mark.parametrize(
    ("text", "value", "of"),
    [
        ("10mbit", 1e7, "bits per second"),
        ("2ms", 0.002, "seconds"),
        ("100%", 1.0, "share"),
        ("4MB", 4e6, "bytes"),
        ("1_000", 1000.0, ""),
        ("rack", None, ""),
        ("[", None, ""),
    ],
)
def test_numbers_of_axes(text: str, value: float | None, of: str) -> None:
    assert (number(text), unit(text)) == (value, of)


@pytest.mark.parametrize(
    "text", ["", "a: [", "- 1", "expect: 3", "expect: {a: [[]]}", "a: &x [*x]"]
)
def test_a_scenario_that_is_none_has_no_expectations(text: str) -> None:
    assert RecordedScenario(text).expectations == ()
