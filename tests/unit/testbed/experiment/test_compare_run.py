"""Comparisons as they run, on virtual time: turns, folders, ratios, expectations, and endings."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import re
from collections.abc import Callable, Generator
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from agglab.testbed.base.errors import MachineLacks, NodeFailed
from agglab.testbed.cli import main
from agglab.testbed.experiment import interleaved_runs, points
from agglab.testbed.experiment import scenario_run as run
from agglab.testbed.experiment.memory import memory_needed_bytes
from agglab.testbed.experiment.single_run import Experiment
from agglab.testbed.results import side_by_side
from agglab.testbed.scenario import load
from agglab.testbed.schema.expectations import Expectation

TEXT = """
name: tiny
backend: virtual
topology: {workers: 3, servers: 1}
links: {rate: 10mbit, loss: 2%}
switch: {lanes: 16, slots: 8}
workload: {elements: 1500, dtype: int32, rounds: 3}
compare:
  sum: {}
  ring: {system: ring}
  ps: {system: ps, ps: {servers: 'p*'}}
"""
NAMES = ["sum", "ring", "ps"]


class Ran:
    """Exit code, metrics.json, what was printed, and the folder."""

    def __init__(self, folder: Path, text: str) -> None:
        path = folder / "tiny.yaml"
        path.write_text(text)
        out = io.StringIO()
        self.code = run.run(load(path), folder / "results", [], out, processes=1)
        self.folder = (folder / "results/tiny/latest").resolve()
        self.metrics: dict[str, Any] = json.loads((self.folder / "metrics.json").read_text())
        self.said = out.getvalue()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """A comparison in which all is well."""
    return Ran(tmp_path_factory.mktemp("whole"), TEXT + "expect: {exact: true, rounds: 3}\n")


def test_contenders_take_their_rounds_in_turn(whole: Ran) -> None:
    rounds = [line.split()[:3] for line in whole.said.splitlines() if " round " in line]
    assert rounds == [[name, "round", str(k)] for k in range(3) for name in NAMES]
    assert whole.code == 0 and whole.metrics["ok"] and whole.metrics["exact"]


@pytest.mark.parametrize("name", NAMES)
def test_a_contender_comes_to_what_it_comes_to_alone(whole: Ran, name: str, tmp_path: Path) -> None:
    alone = Ran(tmp_path, (whole.folder / name / "scenario.yaml").read_text())
    own = whole.folder / name
    assert (own / "events.jsonl").read_bytes() == (alone.folder / "events.jsonl").read_bytes()
    assert json.loads((own / "metrics.json").read_text()) == alone.metrics
    assert whole.metrics["contenders"][name] == alone.metrics


def test_all_meet_the_same_losses(whole: Ran) -> None:
    """The k-th packet of a direction is dropped of all contenders, or of none."""
    drops = {}
    for name in NAMES:
        found = json.loads((whole.folder / name / "drops.json").read_text())
        drops[name] = {way: each["numbers"] for way, each in found.items()}
    common = 0
    for way, numbers in drops["sum"].items():
        if drops["ring"][way] and numbers:
            last = min(numbers[-1], drops["ring"][way][-1])
            both = [[k for k in each if k <= last] for each in (numbers, drops["ring"][way])]
            assert both[0] == both[1], way
            common += len(both[0])
    assert common > 3, "otherwise this compares nothing"


def test_ratios_are_those_of_the_contenders_own_numbers(whole: Ran) -> None:
    times = {n: whole.metrics["contenders"][n]["allreduce"]["time_s"]["all"] for n in NAMES}
    for a in NAMES:
        assert list(whole.metrics["ratio"][a]) == [n for n in NAMES if n != a]
        for b, ratios in whole.metrics["ratio"][a].items():
            wanted = median(times[a]) / median(times[b])
            assert ratios["allreduce"]["time_s"]["median"] == pytest.approx(wanted, rel=1e-12)
            paired = [x / y for x, y in zip(times[a], times[b], strict=True)]
            assert ratios["paired_rounds"]["all"] == pytest.approx(paired, rel=1e-12)
            assert ratios["paired_rounds"]["median"] == pytest.approx(median(paired), rel=1e-12)
            spread = ratios["paired_rounds"]["min"], ratios["paired_rounds"]["max"]
            assert spread == pytest.approx((min(paired), max(paired)), rel=1e-12)
    assert whole.metrics["ratio"]["ps"]["sum"]["link_bound_s"] > 2.5, "three workers, one server"


def test_the_table_has_a_row_for_each(whole: Ran) -> None:
    lines = whole.said.splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("  contender"))
    assert [line.split()[0] for line in lines[head + 1 : head + 4]] == NAMES
    assert "x sum" in lines[head]
    ratio = whole.metrics["ratio"]["ring"]["sum"]["allreduce"]["time_s"]["median"]
    assert f"{ratio:.3f}" in lines[head + 2].split()
    sent = whole.metrics["contenders"]["ps"]["links"]["p1-s1"]["s1->p1"]["bytes"]
    assert f"s1->p1 {sent / 3 / 1e6:.2f} MB" in lines[head + 3]


def test_the_folder_says_what_was_run(whole: Ran) -> None:
    assert load(whole.folder / "scenario.yaml").contenders == tuple(NAMES)
    manifest = json.loads((whole.folder / "manifest.json").read_text())
    assert len(set(manifest["events_sha256"])) == 3
    assert not list(whole.folder.rglob("sums"))


def test_the_report_shows_every_contender(whole: Ran) -> None:
    text = (whole.folder / "report.html").read_text()
    table = re.search(r"<table.*?</table>", text, re.DOTALL)
    assert table
    head, *rows = (
        re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in table[0].split("<tr")[1:]
    )
    found = [dict(zip(head, row, strict=True)) for row in rows]
    links = [re.fullmatch(r"<a href='(.*)'>(.*)</a>", row["run"]) for row in found]
    assert [(link[1], link[2]) for link in links if link] == [
        (f"{name}/report.html", name) for name in NAMES
    ]
    assert all((whole.folder / name / "report.html").is_file() for name in NAMES)
    ratios = whole.metrics["ratio"]["ps"]["sum"]
    assert found[2]["times sum"] == f"{ratios['allreduce']['time_s']['median']:.6g}"
    low, high = (ratios["paired_rounds"][key] for key in ("min", "max"))
    assert found[2]["in paired rounds"] == f"{low:.3g} to {high:.3g}"
    assert found[2]["busiest link"].startswith("s1-&gt;p1 ")


def bars_of(folder: Path) -> dict[tuple[str, str], tuple[float, float]]:
    """Of the times' chart: (category, series) -> the value and the bound."""
    rows = json.loads((folder / "time.vl.json").read_text())["data"]["values"]
    return {(row["x"], row["line"]): (row["y"], row["bound"]) for row in rows}


def test_the_figure_has_a_bar_and_a_bound_for_each(whole: Ran) -> None:
    drawn = bars_of(whole.folder)
    assert list(drawn) == [(name, "median time") for name in NAMES]
    for name, own in whole.metrics["contenders"].items():
        time_s, bound_s = drawn[name, "median time"]
        assert time_s == pytest.approx(own["allreduce"]["time_s"]["median"], rel=1e-8)
        assert bound_s == pytest.approx(own["link_bound_s"], rel=1e-8)


def test_reports_are_drawn_again_from_the_folder(whole: Ran) -> None:
    files = [*whole.folder.rglob("report.html"), *whole.folder.rglob("*.vl.json")]
    before = {path: path.read_bytes() for path in files}
    assert len(before) >= 8
    for path in before:
        path.unlink()
    assert main.main(["report", str(whole.folder)]) == 0
    assert {path: path.read_bytes() for path in files} == before


@pytest.mark.long(
    but=[
        "ratio.ring.sum.rounds: 1-",
        "ratio.ps.sum.link_bound_s: {max: 2}-expected ratio.ps.sum.link_bound_s <= 2, got 3",
    ]
)
@pytest.mark.parametrize(
    ("expected", "reason"),
    [
        ("ratio.ring.sum.rounds: 1", ""),
        ("ratio.ps.sum.link_bound_s: {min: 2.9, max: 3.6}", ""),
        ("ratio.ring.sum.rounds: {min: 1.1}", "expected ratio.ring.sum.rounds >= 1.1, got 1"),
        ("ratio.ps.sum.link_bound_s: {max: 2}", "expected ratio.ps.sum.link_bound_s <= 2, got 3"),
        # int32 has no error, and so no ratio of it.
        ("ratio.ps.sum.error.max_abs: {max: 9}", "error.max_abs <= 9, got nothing"),
        # The ring's switches sum nothing; there is no such number to divide by.
        ("ratio.sum.ring.totals.forged: {max: 9}", "totals.forged <= 9, got nothing"),
        ("rounds: 2", "sum: expected rounds = 2, got 3; ring: expected rounds = 2, got 3; ps:"),
    ],
)
def test_expectations_of_ratios_can_fail(tmp_path: Path, expected: str, reason: str) -> None:
    ran = Ran(tmp_path, TEXT + f"expect: {{{expected}}}\n")
    assert (ran.code, ran.metrics["ok"]) == (bool(reason), not reason)
    assert reason in ran.metrics["reason"] and bool(ran.metrics["reason"]) == bool(reason)
    assert ("FAILED" if reason else "PASSED") in ran.said
    assert all(line in ran.said for line in reason.split("; ")), "each has a line of its own"


def test_what_is_text_in_one_run_has_no_ratio() -> None:
    """`first_wrong.got` is a number, but for NaN and arrays of another shape."""
    wrong, right = ({"ok": True, "first_wrong": {"got": got}} for got in ("nan", 2.0))
    expected = [Expectation("ratio.a.b.first_wrong.got", minimum=0.0)]
    for runs in ({"a": wrong, "b": wrong}, {"a": wrong, "b": right}, {"a": right, "b": wrong}):
        found = side_by_side.comparison(runs, expected)
        assert found["ratio"]["a"]["b"]["first_wrong"]["got"] is None
        assert found["reason"] == "expected ratio.a.b.first_wrong.got >= 0, got nothing"


def test_an_expectation_of_one_contender_is_of_no_other(tmp_path: Path) -> None:
    own = "ring: {system: ring, expect: {rounds: 2}}"
    ran = Ran(tmp_path, TEXT.replace("ring: {system: ring}", own) + "expect: {exact: true}\n")
    assert ran.code == 1
    assert ran.metrics["reason"] == "ring: expected rounds = 2, got 3"
    assert [run["ok"] for run in ran.metrics["contenders"].values()] == [True, False, True]


SWEPT = "sweep: {workload.elements: [1500, 3000]}\n"


@pytest.mark.parametrize(("most", "code"), [(2.3, 0), (1.5, 1)])
def test_growth_is_a_contender_s(tmp_path: Path, most: float, code: int) -> None:
    expected = f"expect: {{growth.ring.link_bound_s: {{max: {most}}}}}\n"
    ran = Ran(tmp_path, TEXT + SWEPT + expected)
    first, last = (point["metrics"]["contenders"]["ring"] for point in ran.metrics["points"])
    growth = last["link_bound_s"] / first["link_bound_s"]
    assert ran.metrics["growth"] == {"ring.link_bound_s": growth}
    assert 1.5 < growth < 2.3
    assert (ran.code, bool(ran.metrics["reason"])) == (code, bool(code))
    rows = [line.split() for line in ran.said.splitlines() if line.startswith("  workload.elem")]
    assert [row[2] for row in rows] == NAMES * 2
    assert (ran.folder / "point-1/ps/scenario.yaml").is_file()
    assert (ran.folder / "point-1/metrics.json").is_file()
    assert "href='point-1/ps/report.html'" in (ran.folder / "report.html").read_text()
    own = (ran.folder / "point-1/ps/report.html").read_text()
    assert "<title>tiny: point-1/ps</title>" in own
    bars = [(str(elements), name) for name in NAMES for elements in (1500, 3000)]
    assert list(bars_of(ran.folder)) == bars


def test_a_ratio_that_does_not_hold_at_one_point_fails_the_sweep(tmp_path: Path) -> None:
    expected = "expect: {ratio.sum.ring.totals.retransmitted: {max: 0}}\n"
    ran = Ran(tmp_path, TEXT + SWEPT + expected)
    assert ran.code == 1
    assert ran.metrics["reason"].startswith("elements 1500: expected ratio.sum.ring.totals.retr")


Break = Callable[[str, BaseException, int], None]


@pytest.fixture
def breaking(monkeypatch: pytest.MonkeyPatch) -> Break:
    """Has one contender break off in its turn of that number, from 0."""

    def arrange(name: str, error: BaseException, at: int) -> None:
        class Breaking(Experiment):
            def turns(self) -> Generator[None, None, Any]:
                with contextlib.closing(super().turns()) as turns:
                    for number in itertools.count():
                        if self.folder.path.name == name and number == at:
                            raise error
                        try:
                            next(turns)
                        except StopIteration as end:
                            return end.value
                        yield

        monkeypatch.setattr(interleaved_runs, "Experiment", Breaking)

    return arrange


def test_one_that_breaks_off_does_not_stop_the_others(
    tmp_path: Path, breaking: Break, capsys: pytest.CaptureFixture[str]
) -> None:
    breaking("ring", NodeFailed("s1", "the switch ended", ["x"], tmp_path / "none"), 2)
    ran = Ran(tmp_path, TEXT)
    assert ran.code == 1
    found = ran.metrics["contenders"]
    assert [found[name]["ok"] for name in NAMES] == [True, False, True]
    assert "the switch ended" in found["ring"]["reason"]
    assert [found[name].get("rounds") for name in NAMES] == [3, None, 3]
    assert ran.metrics["ratio"]["ring"]["sum"]["link_bound_s"] is None
    assert ran.metrics["reason"] == f"ring: {found['ring']['reason']}"
    assert capsys.readouterr().err.startswith("ring: s1: the switch ended")
    row = next(line for line in ran.said.splitlines() if line.startswith("  ring  "))
    assert row.split()[:3] == ["ring", "FAILED", "-"]


def test_one_that_cannot_start_ends_its_point(tmp_path: Path, breaking: Break) -> None:
    breaking("ring", NodeFailed("s1", "the switch ended", ["x"], tmp_path / "none"), 0)
    ran = Ran(tmp_path, TEXT + SWEPT)
    assert ran.code == 1
    assert len(ran.metrics["points"]) == 2, "the other point is begun all the same"
    for point in ran.metrics["points"]:
        contenders = point["metrics"]["contenders"]
        assert "the switch ended" in contenders["ring"]["reason"]
        others = {contenders[name]["reason"] for name in NAMES if name != "ring"}
        assert others == {"aborted, because another contender could not start"}
        assert not any("rounds" in run for run in contenders.values())
    assert not list(ran.folder.rglob("sums")), "what had been started is torn down"
    assert ran.said.count("could not start") and "FAILED  tiny, 6 runs" in ran.said


@pytest.mark.parametrize("at", [0, 2])
def test_an_interrupt_tears_all_down(tmp_path: Path, breaking: Break, at: int) -> None:
    breaking("ring", KeyboardInterrupt(), at)
    ran = Ran(tmp_path, TEXT)
    assert ran.code == 130
    assert [run["reason"] for run in ran.metrics["contenders"].values()] == ["interrupted"] * 3
    assert not list(ran.folder.rglob("sums"))
    assert not (ran.folder / "ps/logs/testbed.log").exists()


def test_a_comparison_that_was_killed_says_so_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(points, "take_turns", lambda runs: 128 + 9)
    ran = Ran(tmp_path, TEXT)
    assert ran.code == 137
    found = {own["reason"] for own in ran.metrics["contenders"].values()}
    assert found == {"killed by signal 9"}
    assert "FAILED  tiny" in ran.said


def test_all_contenders_have_to_fit_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one.yaml").write_text(TEXT)
    needs = [memory_needed_bytes(p.resolved) for p in load(tmp_path / "one.yaml").points]
    monkeypatch.setattr(run, "memory_available_bytes", lambda: sum(needs))
    assert Ran(tmp_path, TEXT).code == 0
    monkeypatch.setattr(run, "memory_available_bytes", lambda: sum(needs) - 1)
    with pytest.raises(MachineLacks, match="memory"):
        Ran(tmp_path, TEXT)
