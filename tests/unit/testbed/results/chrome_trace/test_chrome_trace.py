"""Trace events of runs in virtual time: their form, and that they say what the metrics say."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agglab.testbed.__main__ import run as agglab
from agglab.testbed.results import chrome_trace
from agglab.testbed.results.chrome_trace import Span
from agglab.testbed.results.files import NoResults

from ...system_runs import Run, scenario_text

SERVERS = "kind: rack, workers: 4, servers: 1"
TREE = "kind: two_tier, racks: 2, workers: 2"
PLENTY = 10**9
RESULT = "results/tried/latest"
NS = 0.001
"""Times of trace events are in us, and have whole ns."""


class Trace:
    """The events of a trace, by what they are."""

    def __init__(self, path: Path) -> None:
        content = json.loads(path.read_text())
        self.events: list[dict[str, Any]] = content["traceEvents"]
        self.processes = self._names("process_name", "pid")
        self.threads = self._names("thread_name", "tid")

    def _names(self, kind: str, key: str) -> dict[int, str]:
        return {e[key]: e["args"]["name"] for e in self.events if e["name"] == kind}

    def of(self, category: str) -> list[dict[str, Any]]:
        return [e for e in self.events if category in str(e.get("cat", "")).split(",")]

    def lanes(self) -> Iterator[list[dict[str, Any]]]:
        slices = defaultdict(list)
        for event in self.events:
            if event["ph"] == "X":
                slices[event["pid"], event["tid"]].append(event)
        yield from slices.values()


def traced(run: Run, folder: Path, text: str, *settings: str) -> tuple[Trace, dict[str, Any]]:
    code, metrics = run(text, "switch.pcap=true", "workload.elements=3000", *settings)
    assert code == 0, metrics["reason"]
    chrome_trace.write(folder / RESULT, folder / "trace.json", Span(), PLENTY)
    return Trace(folder / "trace.json"), metrics


def assert_well_formed(trace: Trace) -> None:
    """What Perfetto needs: names for all lanes, slices of a lane that do not overlap, and arrows
    that begin and end at slices."""
    begins = {(e["pid"], e["tid"], e["ts"]) for e in trace.events if e["ph"] == "X"}
    for event in trace.events:
        assert event["pid"] in trace.processes
        assert event["tid"] in trace.threads or event["tid"] == 0
        if event["ph"] in "sf":
            assert (event["pid"], event["tid"], event["ts"]) in begins
    for lane in trace.lanes():
        for one, following in pairwise(sorted(lane, key=lambda event: event["ts"])):
            assert one["ts"] + one["dur"] <= following["ts"] + 1.5 * NS
    arrows = Counter((e["ph"], e["id"]) for e in trace.of("way"))
    assert set(arrows.values()) == {1}
    assert {id_ for phase, id_ in arrows if phase == "s"} == {id_ for _, id_ in arrows}


@pytest.mark.parametrize(
    ("system", "topology", "setting"),
    [
        ("switchml", TREE, "series.record=true"),
        ("atp", SERVERS, "atp.servers=[p1]"),
        ("omnireduce", "kind: rack, workers: 4", "series.record=true"),
        ("netrpc", "kind: rack, workers: 4", "series.record=true"),
        ("ps", SERVERS, "ps.servers=[p1]"),
        ("ring", "kind: rack, workers: 4", "series.record=true"),
    ],
)
def test_a_trace_says_what_the_metrics_say(
    tried: Run, tmp_path: Path, system: str, topology: str, setting: str
) -> None:
    trace, metrics = traced(tried, tmp_path, scenario_text(system, topology, loss="2%"), setting)
    assert_well_formed(trace)
    packets = trace.of("packet")
    arrived = [e for e in packets if trace.threads[e["tid"]].endswith(" in")]
    left = [e for e in packets if trace.threads[e["tid"]].endswith(" out")]
    switches = set(metrics["switches"])
    to_switch, from_switch = (
        sum(
            way["seen"] - lost * (way["dropped"] + way["lost_down"])
            for link in metrics["links"].values()
            for name, way in link.items()
            if name.split("->")[end] in switches
        )
        for end, lost in ((1, 1), (0, 0))
    )
    assert (len(arrived), len(left)) == (to_switch, from_switch)
    assert trace.of("again") and trace.of("loss")
    rounds = Counter(e["name"] for e in trace.of("round"))
    assert rounds == {f"round {i}": 4 for i in range(metrics["rounds"])}
    for number, time_s in enumerate(metrics["allreduce"]["time_s"]["all"]):
        slices = [e for e in trace.of("round") if e["name"] == f"round {number}"]
        end_us = max(e["ts"] + e["dur"] for e in slices)
        assert end_us - min(e["ts"] for e in slices) == pytest.approx(time_s * 1e6, abs=NS)


def test_arrows_follow_a_contribution_through_a_tree(tried: Run, tmp_path: Path) -> None:
    """Each result that leaves a switch has an arrow from what completed it, and each frame between
    switches one from the port that it left."""
    trace, _ = traced(tried, tmp_path, scenario_text("switchml", TREE))
    ends = Counter((e["tid"], e["ts"]) for e in trace.events if e["ph"] == "f")
    for event in trace.of("packet"):
        lane = trace.threads[event["tid"]]
        is_inner = lane.split()[0] in {"s0-eth1", "s0-eth2", "s1-eth3", "s2-eth3"}
        if lane.endswith("out") or is_inner:
            assert ends[event["tid"], event["ts"]] == 1, (lane, event)


def test_chunks_under_way_are_at_most_the_window(tried: Run, tmp_path: Path) -> None:
    """A slow worker keeps the others' chunks under way."""
    trace, metrics = traced(
        tried,
        tmp_path,
        scenario_text("switchml"),
        *("workload.window=6", "switch.slots=6", "links.overrides=[{match: h1-s1, rate: 5mbit}]"),
    )
    lanes = Counter(pid for pid, _ in {(e["pid"], e["tid"]) for e in trace.of("chunk")})
    assert {trace.processes[pid]: count for pid, count in lanes.items()} | {"h1": 0} == {
        "h1": 0,
        **{f"h{i}": 6 for i in (2, 3, 4)},
    }
    assert all(e["args"] == {"packets_sent": 1, "answered": True} for e in trace.of("chunk"))
    assert len(trace.of("chunk")) == metrics["totals"]["sent"]


def test_faults_have_their_beginning_and_end(tried: Run, tmp_path: Path) -> None:
    faults = "faults: [{kind: loss, link: h1-s1, probability: 5%, at: 2ms, for: 3ms}]"
    trace, _ = traced(tried, tmp_path, scenario_text("switchml", more=[faults]))
    (fault,) = trace.of("fault")
    assert (fault["name"].split()[0], fault["ts"], fault["dur"]) == ("loss", 2000, 3000)


def test_a_part_of_a_run(tried: Run, tmp_path: Path) -> None:
    whole, _ = traced(tried, tmp_path, scenario_text("switchml"))
    out = tmp_path / "part.json"
    chrome_trace.write(tmp_path / RESULT, out, Span(2_000_000, 3_000_000), PLENTY)
    part = Trace(out)

    def inside(trace: Trace) -> list[tuple[str, float]]:
        kept = ((e["name"], e["ts"], e["dur"]) for e in trace.of("packet"))
        return sorted((name, ts) for name, ts, dur in kept if ts < 3000 and ts + dur >= 2000)

    assert inside(part) == inside(whole) != []
    assert len(part.of("packet")) == len(inside(part))


def test_a_file_that_would_be_too_large_lacks_the_last_packets(tried: Run, tmp_path: Path) -> None:
    traced(tried, tmp_path, scenario_text("switchml"))
    out = tmp_path / "small.json"
    written = chrome_trace.write(tmp_path / RESULT, out, Span(), 400_000)
    assert out.stat().st_size < 450_000
    last_us = max(e["ts"] for e in Trace(out).of("packet"))
    assert written.complete_until_ns is not None
    assert 0 < last_us <= written.complete_until_ns / 1000


def test_a_run_without_captures_has_rounds_and_metrics(tried: Run, tmp_path: Path) -> None:
    code, metrics = tried(scenario_text("switchml"))
    written = chrome_trace.write(tmp_path / RESULT, tmp_path / "trace.json", Span(), PLENTY)
    trace = Trace(tmp_path / "trace.json")
    assert (code, written.has_packets, trace.of("packet")) == (0, False, [])
    assert len(trace.of("round")) == 4 * metrics["rounds"]
    assert {e["name"] for e in trace.events if e["ph"] == "C"} >= {"h1->s1 rate [bit/s]"}
    lines = (tmp_path / RESULT / "series.csv").read_text().splitlines()
    rows = [line.split(",") for line in lines if ",h1->s1,rate," in line]
    drawn = [e for e in trace.events if e["name"] == "h1->s1 rate [bit/s]"]
    assert [(e["ts"] * 1000, e["args"]["value"]) for e in drawn] == [
        (float(time_ns), float(value)) for time_ns, _, _, _, value in rows
    ]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("events.jsonl", '{"t_ns": 1}\n'),
        ("events.jsonl", '{"t_ns": "x", "event": "started", "at_ns": []}\n'),
        ("events.jsonl", '{"t_ns": 0, "event": "round"}\n'),
        ("events.jsonl", "[1]\n"),
        ("events.jsonl", ""),
        ("pcap/all.pcapng", "no capture at all"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, file: str, content: str) -> None:
    (tmp_path / "pcap").mkdir()
    (tmp_path / "events.jsonl").write_text('{"t_ns": 0, "event": "started", "at_ns": 0}\n')
    (tmp_path / file).write_text(content)
    out = tmp_path / "trace.json"
    with pytest.raises(NoResults, match=str(tmp_path)):
        chrome_trace.write(tmp_path, out, Span(), PLENTY)
    assert not out.exists()


def test_the_command_names_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["agglab", "trace", str(tmp_path)])
    assert agglab() == 2
    assert capsys.readouterr().err.startswith(f"{tmp_path}: has no events.jsonl")


def test_no_capture_however_damaged_stops_it_otherwise(tried: Run, tmp_path: Path) -> None:
    """Bytes of a capture are changed at random. Either a trace is written, or the file is refused
    in one line."""
    traced(tried, tmp_path, scenario_text("switchml"), "workload.elements=500")
    result, chance = tmp_path / RESULT, Random(1)
    capture = result / "pcap" / "all.pcapng"
    content = capture.read_bytes()
    refused = 0
    for _ in range(150):
        damaged = bytearray(content)
        for _ in range(chance.randint(1, 20)):
            damaged[chance.randrange(min(len(damaged), 4000))] = chance.randrange(256)
        capture.write_bytes(damaged[: chance.randint(len(damaged) // 2, len(damaged))])
        try:
            chrome_trace.write(result, tmp_path / "trace.json", Span(), PLENTY)
        except NoResults as error:
            refused += 1
            assert "\n" not in str(error)
    assert 10 < refused < 150
