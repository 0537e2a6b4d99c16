"""Charts of series.csv and latency.csv: what the files hold and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from agglab.testbed.report.over_time import LINES_MAX, charts
from agglab.testbed.schema.series_metrics import SERIES, UNITS

HEAD = "time_ns,kind,name,metric,value"
LATENCIES = "job,agent,from_ns,to_ns,count"


def written(folder: Path, *rows: str, name: str = "series.csv", head: str = HEAD) -> Path:
    (folder / name).write_text("\n".join([head, *rows]) + "\n")
    return folder


def test_a_chart_for_each_metric_and_a_line_for_each_name(tmp_path: Path) -> None:
    written(
        tmp_path,
        "1000000000,link,h1->s1,rate,96896000",
        "2000000000,link,h1->s1,rate,5",
        "1000000000,link,s1->h1,rate,7",
        "1500000000,job,job1,in_flight,3",
    )
    job, link = charts(tmp_path)
    assert (job.name, job.kind, job.y_label) == ("job-in_flight", "job", "packets")
    assert (link.name, link.title, link.y_label) == ("link-rate", "Link: rate", "bit/s")
    lines = {track.name: track.pieces[0].points for track in link.tracks}
    assert lines == {"h1->s1": [(1.0, 96896000.0), (2.0, 5.0)], "s1->h1": [(1.0, 7.0)]}


def test_zeros_alone_are_no_chart(tmp_path: Path) -> None:
    assert charts(written(tmp_path, "1,job,job1,retransmitted,0")) == []


@pytest.mark.parametrize(
    "row",
    [
        "1,job,job1,in_fli",
        "x,job,job1,in_flight,1",
        "1,job,job1,in_flight,nan",
        "1,job,job1,../../evil,1",
        "1,switch,s1,program.../../evil,1",
        "1,switch,s1,program.,1",
        "1,job,job1,program.seen,1",
        "1,other,x,rate,1",
    ],
)
def test_rows_of_another_shape_are_left_out(tmp_path: Path, row: str) -> None:
    (found,) = charts(written(tmp_path, "1,job,job1,in_flight,2", row))
    assert [track.pieces[0].points for track in found.tracks] == [[(1e-9, 2.0)]]


def test_another_file_is_not_drawn(tmp_path: Path) -> None:
    assert charts(written(tmp_path, "1,2", head="a,b")) == [] and charts(tmp_path / "none") == []


def test_of_many_lines_those_with_most_are_drawn(tmp_path: Path) -> None:
    (found,) = charts(written(tmp_path, *(f"1,link,h{i},rate,{i}" for i in range(1, 41))))
    assert {track.name for track in found.tracks} == {f"h{i}" for i in range(41 - LINES_MAX, 41)}
    assert found.title == f"Link: rate (the {LINES_MAX} of 40 with the most)"


def test_latencies_are_shares(tmp_path: Path) -> None:
    rows = ("job1,h1,0,1000000000,3", "job1,h1,1000000001,2000000000,1", "job1,h2,0,5,0")
    (found,) = charts(written(tmp_path, *rows, name="latency.csv", head=LATENCIES))
    (line,) = found.tracks
    assert line.name == "job1 h1" and found.name == "latency"
    assert line.pieces[0].points == [(0.0, 0.0), (1.0, 0.75), (2.0, 1.0)]


@pytest.mark.parametrize("agents", [LINES_MAX, LINES_MAX + 1])
def test_the_latencies_of_the_first_agents_are_drawn(tmp_path: Path, agents: int) -> None:
    rows = [f"job1,h{n},{at},{at + 9},1" for n in range(agents) for at in (10, 20)]
    (found,) = charts(written(tmp_path, *rows, name="latency.csv", head=LATENCIES))
    assert [line.name for line in found.tracks] == [f"job1 h{n}" for n in range(LINES_MAX)]
    assert all(len(line.pieces[0].points) == 3 for line in found.tracks)
    assert ("(the first 16 agents)" in found.title) == (agents > LINES_MAX)


def test_units_are_the_declared_ones() -> None:
    assert len(UNITS) == len(SERIES)
