"""`agglab results`: every number of every run is a row, found again by its names."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import needs
import pytest

from agglab.testbed.cli import main
from agglab.testbed.results import tidy_table
from agglab.testbed.results.tidy_table import Row, swept_columns

TEXT = """
name: tiny
backend: virtual
topology: {workers: 2}
links: {rate: 10mbit}
switch: {lanes: 16, slots: 8}
workload: {elements: 300, dtype: int32, rounds: 2}
"""
SWEEP = "sweep: {topology.workers: [2, 3]}\ncompare: {sum: {}, ring: {system: ring}}\n"
JOBS = "jobs: [{name: a}, {name: b}]\n"


def ran(folder: Path, text: str) -> Path:
    """The folder of a run of this scenario."""
    file = folder / "tiny.yaml"
    file.write_text(text)
    assert main.main(["run", str(file), "--results", str(folder)]) == 0
    return (folder / "tiny" / "latest").resolve()


def table(capsys: pytest.CaptureFixture[str], *words: str | Path) -> list[dict[str, str]]:
    """What the command prints, by column."""
    capsys.readouterr()
    assert main.main(["results", *map(str, words)]) == 0
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every place of a JSON value that holds something, lists without their places."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, path)
    elif value is not None:
        yield path, value


def named(row: dict[str, str]) -> tuple[str, ...]:
    """The path that a row's names and metric stand for."""
    names = iter(row["of"].split())
    path = [next(names) if part == "*" else part for part in row["metric"].split(".")]
    return ("jobs", row["job"], *path) if row["job"] else tuple(path)


def held(row: dict[str, str]) -> str:
    return row["value"] or row["text"]


def written(value: Any) -> str:
    """As the table has a value."""
    return str(float(value)) if isinstance(value, (int, float)) else value


def test_every_number_of_a_run_is_one_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ran(tmp_path, TEXT + JOBS)
    metrics = json.loads((run / "metrics.json").read_text())
    rows = table(capsys, run)
    expected = sorted((path, written(value)) for path, value in leaves(metrics))
    assert sorted((named(row), held(row)) for row in rows) == expected
    assert {row["job"] for row in rows} == {"", "a", "b"}
    times = [row for row in rows if row["metric"] == "allreduce.time_s.all" and row["job"] == "a"]
    assert [row["index"] for row in times] == ["0", "1"]
    sent = [row for row in rows if row["metric"] == "workers.*.sent" and row["job"] == "b"]
    assert [row["of"] for row in sent] == ["0", "1"]


def test_what_is_in_a_list_of_lists_has_the_place_of_its_list(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    (tmp_path / "metrics.json").write_text('{"nested": [[5, 6], [7]], "plain": [8, 9]}')
    found = [(row.metric, row.index, row.value) for row in tidy_table.rows([tmp_path])]
    nested = [("nested", 0, 5), ("nested", 0, 6), ("nested", 1, 7)]
    assert found == [*nested, ("plain", 0, 8), ("plain", 1, 9)]


def test_what_stands_twice_in_a_run_of_one_job_is_one_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ran(tmp_path, TEXT)
    metrics = json.loads((run / "metrics.json").read_text())
    rows = table(capsys, run)
    job = metrics["jobs"]["job1"]
    of_all = ("exact", "wrong_sums", "wrong_results", "completion_s", "switch_share")
    copies = sum(path[0] not in of_all for path, _ in leaves(job))
    assert len(rows) == sum(1 for _ in leaves(metrics)) - copies
    (median,) = [row for row in rows if row["metric"] == "allreduce.time_s.median"]
    assert float(median["value"]) == job["allreduce"]["time_s"]["median"]
    assert median["job"] == "job1"


def test_points_and_contenders_are_told_apart_and_each_run_comes_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ran(tmp_path, TEXT + SWEEP)
    rows = table(capsys, tmp_path, run)
    medians = [row for row in rows if row["metric"] == "allreduce.time_s.median"]
    keys = ("point", "topology.workers", "contender", "system", "backend", "seed")
    assert [tuple(row[key] for key in keys) for row in medians] == [
        ("0", "2", "sum", "switchml", "virtual", "1"),
        ("0", "2", "ring", "ring", "virtual", "1"),
        ("1", "3", "sum", "switchml", "virtual", "1"),
        ("1", "3", "ring", "ring", "virtual", "1"),
    ]
    ratios = [row for row in rows if row["metric"] == "ratio.ring.sum.allreduce.time_s.median"]
    by_point = {row["point"]: float(row["value"]) for row in ratios}
    times = [float(row["value"]) for row in medians]
    assert by_point == {"0": times[1] / times[0], "1": times[3] / times[2]}


def test_a_swept_seed_is_one_column_and_that_of_each_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    growth = "expect: {growth.rounds: 1}\n"
    run = ran(tmp_path, TEXT + "sweep: {seed: [3, 8], system: [switchml, ring]}\n" + growth)
    capsys.readouterr()
    assert main.main(["results", str(run)]) == 0
    printed = capsys.readouterr().out
    columns = printed.partition("\n")[0].split(",")
    assert [columns.count(name) for name in ("seed", "system")] == [1, 1]
    rows = list(csv.DictReader(io.StringIO(printed)))
    medians = [row for row in rows if row["metric"] == "allreduce.time_s.median"]
    assert [(row["seed"], row["system"]) for row in medians] == [
        ("3", "switchml"),
        ("3", "ring"),
        ("8", "switchml"),
        ("8", "ring"),
    ]
    assert [row["seed"] for row in rows if row["metric"] == "growth.rounds"] == [""]


@pytest.mark.parametrize("name", ["table.tex", "table", "table.parqet"])
def test_a_format_that_is_not_known_is_refused_before_anything_is_read(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / name
    assert main.main(["results", str(tmp_path / "nowhere"), "--out", str(out)]) == 2
    said = f"agglab results: --out {out}: does not end in .csv or .parquet; say the format with "
    assert capsys.readouterr().err == f"{said}--to: csv or parquet\n"
    assert not out.exists()


def test_another_name_is_written_in_the_format_that_is_said(tmp_path: Path) -> None:
    run, out = ran(tmp_path, TEXT), tmp_path / "table.tsv"
    assert main.main(["results", str(run), "--to", "csv", "--out", str(out)]) == 0
    assert out.read_text().startswith("run,started,scenario,")


def test_the_table_is_what_the_folder_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ran(tmp_path, TEXT)
    metrics = json.loads((run / "metrics.json").read_text())
    metrics["totals"]["injected_drops"] = 4711
    (run / "metrics.json").write_text(json.dumps(metrics))
    rows = table(capsys, run)
    assert [r["value"] for r in rows if r["metric"] == "totals.injected_drops"] == ["4711.0"]


def test_a_file_is_written_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, out = ran(tmp_path, TEXT), tmp_path / "out" / "numbers.csv"
    assert main.main(["results", str(run), "--out", str(out)]) == 2
    assert capsys.readouterr().err == f"{out}: No such file or directory\n"
    out.parent.mkdir()
    assert main.main(["results", str(run), "--out", str(out)]) == 0
    assert [each.name for each in out.parent.iterdir()] == ["numbers.csv"]
    assert main.main(["results", str(run)]) == 0
    assert capsys.readouterr().out == out.read_text()


def settings_of(*every: str) -> list[Row]:
    common = ("run", "", "s", 0, "", "", "", 1)
    return [Row(*common, each, "", "ok", "", None, 1.0, "") for each in every]


@pytest.mark.parametrize(
    ("every", "column"),
    [
        (['{"k": "2"}', '{"k": "16"}', "{}"], [2, 16, None]),
        (['{"k": "50mbit"}', '{"k": "1gbit"}'], [50_000_000, 1_000_000_000]),
        (['{"k": "0.1%"}', '{"k": "0"}'], [0.001, 0.0]),
        (['{"k": "1"}', '{"k": "auto"}'], ["1", "auto"]),
        (['{"k": "ring"}', "{}", '{"k": "ps"}'], ["ring", None, "ps"]),
    ],
)
def test_a_swept_key_is_a_column_of_numbers_where_all_its_values_are(
    every: list[str], column: list[Any]
) -> None:
    (found,) = swept_columns(settings_of(*every)).values()
    assert found == column
    assert [type(value) for value in found] == [type(value) for value in column]


@needs.mark("pyarrow")
def test_parquet_holds_what_csv_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from pyarrow import parquet

    run, out = ran(tmp_path, TEXT + SWEEP), tmp_path / "numbers.parquet"
    assert main.main(["results", str(run), "--out", str(out)]) == 0
    found = parquet.read_table(out)
    assert found.schema.field("value").type == "double"
    assert found.schema.field("topology.workers").type == "int64"
    rows = table(capsys, run)
    columns = list(rows[0])
    assert found.column_names == columns
    for got, row in zip(found.to_pylist(), rows, strict=True):
        assert ["" if got[c] is None else str(got[c]) for c in columns] == list(row.values())


def test_parquet_without_its_package_is_one_line_and_exit_code_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    out = tmp_path / "numbers.parquet"
    nowhere = tmp_path / "nowhere"  # so that reading it first would be another complaint
    assert main.main(["results", str(nowhere), "--out", str(out)]) == 3
    assert capsys.readouterr().err == (
        "this machine lacks the Python package pyarrow: "
        ".venv/bin/python -m pip install --editable '.[parquet]'\n"
    )
    assert not out.exists() and not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("manifest.json", None, "holds no results: there is no manifest.json in it or below it"),
        ("metrics.json", "{", "metrics.json: is not JSON"),
        ("metrics.json", "[]", "metrics.json: is not a JSON object"),
        (
            "metrics.json",
            '{"points": [3]}',
            "metrics.json is damaged or from another version of Agglab: ",
        ),
        (
            "metrics.json",
            '{"jobs": 3}',
            "metrics.json is damaged or from another version of Agglab: ",
        ),
        ("metrics.json", '{"contenders": {"a": 3}}', "metrics.json is damaged or from another"),
    ],
)
def test_what_is_no_result_is_one_line_and_exit_code_2(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    content: str | None,
    message: str,
) -> None:
    run = ran(tmp_path, TEXT)
    (run / name).unlink()
    if content is not None:
        (run / name).write_text(content)
    capsys.readouterr()
    assert main.main(["results", str(run)]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_parquet_needs_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["results", str(tmp_path), "--to", "parquet"]) == 2
    assert capsys.readouterr().err == "agglab results: --to parquet needs --out FILE\n"
