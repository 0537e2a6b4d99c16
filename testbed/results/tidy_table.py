"""Reads all numbers of result folders into one table with a row for each number, for pandas,
Polars, DuckDB and others. The numbers come from metrics.json, scenario.yaml and manifest.json of
the folders."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from agglab.testbed import systems
from agglab.testbed.results.files import NoResults, read_object
from agglab.testbed.results.recorded_scenario import number
from agglab.testbed.results.side_by_side import contenders_of
from agglab.testbed.run.result_folder import point_folder
from agglab.testbed.scenario.metric_names import metric_of
from agglab.testbed.schema.run_metrics import OF_ALL_JOBS

JOBS = "jobs"
OF_EVERY_RUN = ("system", "backend", "seed")
"""Keys of a scenario that are columns whether they are swept or not."""


@dataclass(frozen=True)
class Row:
    """One number, or one text, of one run.

    run: `<scenario>/<run-id>`. point: the number of the point in a sweep, counted from 0.
    contender: the contender's name in a comparison. settings: the swept keys, as JSON. metric: its
    path in metrics.json, with `*` in place of names such as a worker's rank; a job's own metrics
    have no `jobs.*` in front. of: the replaced names, separated by spaces. index: the position in a
    list, such as the round. value: a number; true is 1 and false is 0. text: a value that is not a
    number.
    """

    run: str
    started: str
    scenario: str
    point: int | None
    contender: str
    system: str
    backend: str
    seed: int | None
    settings: str
    job: str
    metric: str
    of: str
    index: int | None
    value: float | None
    text: str


@dataclass(frozen=True)
class _Number:
    """One value of metrics.json. path: the names that lead to it. index: its position in a list."""

    path: tuple[str, ...]
    index: int | None
    value: Any


def rows(folders: Sequence[Path]) -> Iterator[Row]:
    """Yields the rows of all runs in these folders, at any depth. Each run is included once. Raises
    NoResults."""
    seen: set[Path] = set()
    for folder in folders:
        found = _run_folders(folder)
        if not found:
            raise NoResults(
                f"{folder}: holds no results: there is no manifest.json in it or below it"
            )
        for run in found:
            if run not in seen:
                seen.add(run)
                yield from _rows_of_run(run)


def swept_keys(table: Sequence[Row]) -> tuple[str, ...]:
    """Returns the keys that the sweeps of these rows change, in order of first appearance, except
    those that are columns anyway."""
    every = (key for settings in dict.fromkeys(r.settings for r in table) for key in _of(settings))
    return tuple(key for key in dict.fromkeys(every) if key not in OF_EVERY_RUN)


def swept_columns(table: Sequence[Row]) -> dict[str, list[int | float | str | None]]:
    """Returns, for each key that the sweeps change, its value in the run of each row; None where it
    was not swept. If all values of a key are numbers or quantities, they become numbers (bits per
    second, seconds, bytes or shares). Otherwise they stay as the scenario writes them."""
    own = {row.settings: _of(row.settings) for row in table}
    columns: dict[str, list[int | float | str | None]] = {}
    for key in swept_keys(table):
        written = {str(each[key]) for each in own.values() if key in each}
        values: Mapping[str, int | float | str] = _numbers_of(written) or dict(
            zip(written, written, strict=True)
        )
        columns[key] = [
            values[str(own[row.settings][key])] if key in own[row.settings] else None
            for row in table
        ]
    return columns


def _numbers_of(written: Collection[str]) -> dict[str, int | float] | None:
    """Returns the number that each text means. If all numbers are whole, they are returned as
    integers. Returns None if one text is not a number."""
    numbers = {text: number(text) for text in written}
    found = {text: value for text, value in numbers.items() if value is not None}
    if len(found) < len(numbers):
        return None
    if all(value.is_integer() for value in found.values()):
        return {text: int(value) for text, value in found.items()}
    return dict(found)


def _of(settings: str) -> dict[str, Any]:
    loaded = json.loads(settings)
    assert isinstance(loaded, dict)
    return loaded


def _run_folders(folder: Path) -> list[Path]:
    """Returns the folders that have a manifest. Each is returned once, even if the link `latest`
    also leads to it."""
    manifests = folder.rglob("manifest.json") if folder.is_dir() else ()
    return sorted({manifest.parent.resolve() for manifest in manifests})


def _rows_of_run(folder: Path) -> Iterator[Row]:
    metrics, manifest = read_object(folder / "metrics.json"), read_object(folder / "manifest.json")
    name = str(manifest.get("scenario", folder.parent.name))
    label, started = f"{folder.parent.name}/{folder.name}", str(manifest.get("started", ""))
    try:
        for place, point, settings, own in _points(folder, metrics):
            for where, contender, one in _contenders(place, own):
                known = _scenario(where)
                system = str(known.get("system", ""))
                make = partial(
                    Row,
                    run=label,
                    started=started,
                    scenario=name,
                    point=point,
                    contender=contender,
                    system=system,
                    backend=str(known.get("backend", "")),
                    seed=_seed(known, manifest),
                    settings=json.dumps(settings),
                )
                yield from _rows(make, system, one)
    except (LookupError, TypeError, AttributeError) as error:
        what = f"metrics.json is damaged or from another version of Agglab: {error!r}"
        raise NoResults(f"{folder}: {what}") from error


def _seed(known: Mapping[str, Any], manifest: Mapping[str, Any]) -> int | None:
    """Returns the seed of a run with this scenario. The rows of a whole sweep over seeds have
    none."""
    swept = known.get("sweep")
    if isinstance(swept, Mapping) and "seed" in swept:
        return None
    seed = known.get("seed", manifest.get("seed"))
    return seed if isinstance(seed, int) else None


def _points(
    folder: Path, metrics: Mapping[str, Any]
) -> Iterator[tuple[Path, int | None, Mapping[str, str], Mapping[str, Any]]]:
    """Yields (folder, number, swept keys, metrics) of each point, and then of what all points have
    in common. A run without a sweep counts as one point."""
    if "points" not in metrics:
        yield folder, None, {}, metrics
        return
    for place, point in enumerate(metrics["points"]):
        yield folder / point_folder(place), place, point["settings"], point["metrics"]
    yield folder, None, {}, {key: value for key, value in metrics.items() if key != "points"}


def _contenders(
    folder: Path, metrics: Mapping[str, Any]
) -> Iterator[tuple[Path, str, Mapping[str, Any]]]:
    """Yields (folder, name, metrics) of each contender, and then of what all contenders have in
    common. A run that compares nothing counts as one contender."""
    if "contenders" not in metrics:
        yield folder, "", metrics
        return
    for name in contenders_of(metrics):
        yield folder / name, name, metrics["contenders"][name]
    yield folder, "", {key: value for key, value in metrics.items() if key != "contenders"}


def _rows(make: Callable[..., Row], system: str, metrics: Mapping[str, Any]) -> Iterator[Row]:
    """Yields the rows of one run. make: a function that returns a row and fills in the fields that
    all rows have in common."""
    for leaf in _numbers(_without_copies(metrics)):
        if leaf.value is None:
            continue
        path, job = leaf.path, ""
        if path[0] == JOBS and len(path) > 2:
            _, job, *rest = path
            path = tuple(rest)
        metric, of = _pattern(path, system)
        is_number = isinstance(leaf.value, (int, float))
        value, text = (float(leaf.value), "") if is_number else (None, str(leaf.value))
        yield make(job=job, metric=metric, of=of, index=leaf.index, value=value, text=text)


def _without_copies(metrics: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the metrics without those at the top level that only repeat the metrics of a single
    job."""
    of_all_jobs = {metric.path for metric in OF_ALL_JOBS}
    jobs = metrics.get(JOBS, {})
    if len(jobs) != 1:
        return metrics
    (job,) = jobs.values()
    return {k: value for k, value in metrics.items() if k not in job or k in of_all_jobs}


def _numbers(value: Any, path: tuple[str, ...] = (), index: int | None = None) -> Iterator[_Number]:
    """Yields all single values. A value of a list inside a list has the position of the inner list
    in the outer one."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _numbers(inner, (*path, key), index)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _numbers(inner, path, place if index is None else index)
    else:
        yield _Number(path, index, value)


def _pattern(path: Sequence[str], system: str) -> tuple[str, str]:
    """Returns the metric, and the names for which its `*` stand. The path is returned unchanged if
    the system cannot be found on this machine or the path is not in metric_names."""
    try:
        metric = metric_of(".".join(path), systems.find(system)) if system else None
    except systems.UnknownSystem:
        metric = None
    if metric is None:
        return ".".join(path), ""
    names = zip(path, metric.path.split("."), strict=True)
    return metric.path, " ".join(name for name, part in names if part == "*")


def _scenario(folder: Path) -> Mapping[str, Any]:
    """Returns the resolved scenario of a folder; empty if it is missing."""
    try:
        found = yaml.safe_load((folder / "scenario.yaml").read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return found if isinstance(found, dict) else {}
