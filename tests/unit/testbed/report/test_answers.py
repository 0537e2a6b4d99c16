"""What a report answers, from a folder that a real run in virtual time has left; and that every
figure follows the folder's numbers."""

from __future__ import annotations

import io
import json
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
from agglab.testbed.report.expected import judged
from agglab.testbed.report.network import ALIKE_MAX, specification
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


def test_what_was_asked_counts_the_workers_and_names_only_what_there_is(folder: Path) -> None:
    assert "12 rounds of allreduce over 2,000 float32 values by 4 workers" in text_of(folder)
    scenario = folder / "scenario.yaml"
    text = scenario.read_text()
    for key, value in (("elements", "2000"), ("dtype", "float32"), ("rounds", "12")):
        assert f"  {key}: {value}\n" in text
        text = text.replace(f"  {key}: {value}\n", "")
    scenario.write_text(text.replace("kind: allreduce", "kind: async_sgd"))
    assert "1 round of async_sgd by 4 workers in topology two_tier" in text_of(folder)


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


def picture(metrics: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The rows of the nodes and of the links in the picture of a network, by name."""
    links, nodes, *_ = specification(metrics)["layer"]
    return (
        {row["name"]: row for row in nodes["data"]["values"]},
        {row["link"]: row for row in links["data"]["values"]},
    )


def test_the_topology_has_each_link_once_with_its_bytes_and_losses(folder: Path) -> None:
    metrics = metrics_of(folder)
    nodes, links = picture(metrics)
    assert set(links) == set(metrics["links"])
    for name, ways in metrics["links"].items():
        assert links[name]["lost"] == sum(way["dropped"] for way in ways.values())
        assert links[name]["rate"] == ("20mbit" if name.startswith("s1-") else "10mbit")
        sizes = {links[name][way].rpartition(": ")[2] for way in ("up", "down")}
        assert sizes == {f"{way['bytes'] / 1e3:.3g} kB" for way in ways.values()}
    tiers = {name: row["y"] for name, row in nodes.items()}
    assert {name: y for name, y in tiers.items() if name.startswith("h")} == dict.fromkeys(
        ("h1", "h2", "h3", "h4"), 0
    )
    assert sorted(y for name, y in tiers.items() if name.startswith("s")) == [1, 1, 2]


def test_many_hosts_are_drawn_as_one_with_their_sum() -> None:
    links = {
        f"h{i}-s1": {
            f"h{i}->s1": {"bytes": 10, "dropped": 1, "queue_drops": 0, "rate_bps": 10**6},
            f"s1->h{i}": {"bytes": 20, "dropped": 0, "queue_drops": 2, "rate_bps": 10**6},
        }
        for i in range(1, 2 + ALIKE_MAX)
    }
    nodes, drawn = picture({"links": links, "switches": {"s1": {}}})
    assert list(nodes) == ["9 hosts", "s1"]
    assert nodes["9 hosts"]["lines"] == ["9 hosts", "1mbit", "↑ 90 B", "↓ 180 B", "27 lost"]
    assert list(drawn) == ["h1-s1 to h9-s1"]


def test_a_fat_tree_fits_a_page() -> None:
    """Of 16 ports: 1024 hosts, 320 switches."""
    links: dict[str, Any] = {}

    def connect(a: str, b: str) -> None:
        links[f"{a}-{b}"] = {f"{a}->{b}": {"bytes": 1}, f"{b}->{a}": {"bytes": 1}}

    for pod in range(16):
        for edge in range(8):
            for host in range(8):
                connect(f"h{pod}_{edge}_{host}", f"e{pod}_{edge}")
            for up in range(8):
                connect(f"e{pod}_{edge}", f"a{pod}_{up}")
        for up in range(8):
            for core in range(8):
                connect(f"a{pod}_{up}", f"c{up}_{core}")
    switches = {end for link in links for end in link.split("-") if not end.startswith("h")}
    metrics = {"links": links, "switches": {name: {} for name in sorted(switches)}}
    spec = specification(metrics)
    rows = spec["layer"][1]["data"]["values"]
    tiers = [[row["x"] for row in rows if row["y"] == y] for y in range(4)]
    assert [len(tier) for tier in tiers] == [128, 128, 128, 64]
    assert all(len(set(tier)) == len(tier) for tier in tiers), "no node hides another"
    assert spec["height"] < 500


def test_a_circle_of_links_is_drawn_with_each_link_once() -> None:
    links = {
        f"{a}-{b}": {f"{a}->{b}": {"bytes": 1}, f"{b}->{a}": {"bytes": 1}}
        for a, b in (("s1", "s2"), ("s2", "s3"), ("s1", "s3"))
    }
    nodes, drawn = picture({"links": links, "switches": {"s1": {}, "s2": {}, "s3": {}}})
    assert (set(nodes), set(drawn)) == ({"s1", "s2", "s3"}, set(links))


def test_without_switches_the_hosts_are_a_tier() -> None:
    link = {"h1->h2": {"bytes": 1}, "h2->h1": {"bytes": 2}}
    nodes, drawn = picture({"links": {"h1-h2": link}, "switches": {}})
    assert {row["y"] for row in nodes.values()} == {0} and len(drawn) == 1


CHANGES = {
    "topology.vl.json": ("links", lambda ways: [w.update(bytes=123_456) for w in ways.values()]),
    "drops.vl.json": (
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


@pytest.mark.parametrize("file", ["time", "distribution", "workers", "progress"])
def test_a_number_of_a_job_changes_its_figure(folder: Path, file: str) -> None:
    file += ".vl.json"
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
    """The specifications of all charts in a page."""
    texts = re.findall(r"<script type='application/json'>(.*?)</script>", page)
    return [json.loads(text) for text in texts]


def test_a_sweep_has_a_line_over_each_key_and_follows_its_numbers(swept: Path) -> None:
    page = report.write(swept).read_text()
    files = [f"time-by-{key}.vl.json" for key in ("workload.elements", "links.rate")]
    before = [(swept / file).read_text() for file in files]
    chart = json.loads(before[0])
    assert chart in charts_of(page)
    metrics = metrics_of(swept)
    rows = {(row["line"], row["x"]): row for row in chart["data"]["values"]}
    assert {line for line, _ in rows} == {"links.rate 10mbit", "links.rate 20mbit"}
    for point in metrics["points"]:
        x = float(point["settings"]["workload.elements"])
        y = point["metrics"]["allreduce"]["time_s"]["median"]
        row = rows[f"links.rate {point['settings']['links.rate']}", x]
        assert row["y"] == pytest.approx(y, rel=1e-8) and row["low"] <= row["y"] <= row["high"]
    metrics["points"][0]["metrics"]["allreduce"]["time_s"]["median"] *= 9
    (swept / "metrics.json").write_text(json.dumps(metrics))
    report.write(swept)
    assert all((swept / f).read_text() != b for f, b in zip(files, before, strict=True))


def choices_of(page: str) -> dict[str, Any]:
    """The charts whose metric the reader chooses, by the key of their axis."""
    charts = [chart for chart in charts_of(page) if "params" in chart]
    return {chart["usermeta"]["title"].rpartition(" ")[2]: chart for chart in charts}


def test_the_reader_can_choose_each_number_that_differs(swept: Path) -> None:
    choices = choices_of(report.write(swept).read_text())
    metrics = metrics_of(swept)
    assert set(choices) == {"workload.elements", "links.rate"}
    for chart in choices.values():
        (chosen,) = chart["params"]
        names = chosen["bind"]["labels"]
        assert names[0] == "allreduce.time_s.median"
        assert "exact" not in names and "rounds" not in names, "a flag, and one that is the same"
        of_bound = names.index("link_bound_s")
        values = {row["values"][of_bound] for row in chart["data"]["values"]}
        points = metrics["points"]
        assert values == {point["metrics"]["link_bound_s"] for point in points}


def test_without_a_swept_number_nothing_is_to_be_chosen(swept: Path) -> None:
    metrics = metrics_of(swept)
    for point, name in zip(metrics["points"], "abcd", strict=False):
        point["settings"] = {"system": name}
    (swept / "metrics.json").write_text(json.dumps(metrics))
    assert choices_of(report.write(swept).read_text()) == {}


def test_a_key_that_would_lead_elsewhere_names_no_file(swept: Path) -> None:
    metrics = metrics_of(swept)
    for number_, point in enumerate(metrics["points"]):
        point["settings"] = {"../../evil": str(number_)}
    (swept / "metrics.json").write_text(json.dumps(metrics))
    around = swept.parent.parent
    before = set(around.rglob("*evil*"))
    report.write(swept)
    assert set(around.rglob("*evil*")) == before


def test_text_in_a_chart_s_data_ends_no_tag(folder: Path) -> None:
    events = (folder / "events.jsonl").read_text().splitlines()
    mark = {"t_ns": 5, "event": "fault", "fault": "x</script><b>", "target": "h1"}
    (folder / "events.jsonl").write_text("\n".join([*events, json.dumps(mark)]) + "\n")
    assert "x</script>" not in report.write(folder).read_text()


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
