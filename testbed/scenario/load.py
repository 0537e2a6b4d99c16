"""Loads a scenario file as runs: one run for each point of its sweep and each contender, or a
single run if it has neither."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice, product
from math import prod
from pathlib import Path

from agglab.hosts import own_worker
from agglab.hosts.own_worker import WorkerError
from agglab.hosts.workloads import Torch
from agglab.testbed import systems
from agglab.testbed.base.problems import (
    Problem,
    ScenarioError,
    Where,
    nearest,
    nearest_file,
    quote,
)
from agglab.testbed.scenario import (
    checks,
    chosen,
    compare,
    figure_checks,
    files,
    job_sweep,
    sweep,
)
from agglab.testbed.scenario.metric_names import GROWTH, RATIO
from agglab.testbed.scenario.reader import Reader
from agglab.testbed.scenario.resolved import ResolvedScenario, resolve
from agglab.testbed.schema import models
from agglab.testbed.schema.document import (
    Mapping,
    Node,
    Scalar,
    overlaid,
    parse,
    read_file,
    with_value,
)
from agglab.testbed.schema.figure import Figure
from agglab.testbed.schema.jobs import inherited
from agglab.testbed.schema.key import yaml_name
from agglab.testbed.schema.models import ModelError
from agglab.testbed.schema.network_sections import Graph
from agglab.testbed.schema.scenario import NAME_MAX, Axis, Expectation, Scenario
from agglab.testbed.schema.workload_section import Workload
from agglab.testbed.systems.base import System

POINTS_MAX = 4096
READ_OF_TOO_MANY = 64
"""As many runs of a suite that has too many are examined for other mistakes."""


@dataclass(frozen=True)
class Point:
    """One run of a scenario file. settings: the swept keys with their values as written; empty
    without a sweep. resolved: the complete scenario of the run. contender: the contender's name;
    empty if nothing is compared."""

    settings: sweep.Settings
    resolved: ResolvedScenario
    contender: str = ""

    @property
    def label(self) -> str:
        return sweep.label(self.settings)


@dataclass(frozen=True)
class Suite:
    """A checked scenario file. document: the file as written, including `auto`, sweep and
    contenders.

    ratios: expectations that the contenders of each point must meet. growth: expectations that the
    suite must meet. All other expectations belong to single runs. points: all runs; the contenders
    of each point follow one another.
    """

    source: Path
    name: str
    description: str
    document: Node
    axes: tuple[Axis, ...]
    contenders: tuple[str, ...]
    points: tuple[Point, ...]
    figure: Figure | None
    growth: tuple[Expectation, ...]
    ratios: tuple[Expectation, ...]

    @property
    def groups(self) -> list[tuple[Point, ...]]:
        """The runs of each point, which take turns on the same network. Without `compare`, each
        point has one run."""
        size = len(self.contenders) or 1
        return [self.points[i : i + size] for i in range(0, len(self.points), size)]


def _at_nowhere(base: Scenario, place: Callable[[str], Where]) -> Iterator[Problem]:
    """Yields a problem for each expectation whose `at` has a value that no swept key takes."""
    values = [value.text for axis in base.sweep for value in axis.values]
    for expectation in base.expect:
        for value in expectation.at:
            if value not in values:
                path = f"expect.{expectation.metric}.at"
                what = f"no swept key has the value {quote(value)}{nearest(value, values)}"
                yield Problem(place(path), path, what, ", ".join(values) or "a sweep")


def load(path: Path, settings: Iterable[str] = (), folder: Path | None = None) -> Suite:
    """Reads and checks the scenario at `path` with `key=value` settings. Raises ScenarioError with
    all problems.

    folder: the folder from which relative paths in the scenario start; the scenario's folder if
    None.
    """
    home = folder or path.resolve().parent
    layers = [read_file(path)]
    layers.append(with_settings(layers[0], settings))
    first = _reader(layers[-1], home)
    base = first.scenario()
    problems = [] if base.sweep or base.compare else list(first.problems)
    if (count := _count(base)) > POINTS_MAX:
        allowed, key = f"at most {POINTS_MAX}", "sweep" if base.sweep else "compare"
        problems.append(Problem(first.place(key), key, f"results in {count} runs", allowed))
    problems += compare.unfair(base, first.place)
    problems += _at_nowhere(base, first.place)
    problems += job_sweep.problems(base.sweep, layers[-1])
    if base.figure:
        for key, what, allowed in figure_checks.problems(
            base.figure, base.sweep, [each.name for each in base.compare], first.system
        ):
            problems.append(Problem(first.place(key), key, what, allowed))
    points, wrong = _points(layers, base, path, home)
    problems += wrong
    if problems:
        raise ScenarioError(list(dict.fromkeys(problems)))
    name, contenders = base.name or name_of(path), tuple(each.name for each in base.compare)
    asked = with_value(layers[-1], "name", Scalar(name, False, layers[-1].where))
    growth, ratios = (
        tuple(e for e in base.expect if e.metric.startswith(kind)) for kind in (GROWTH, RATIO)
    )
    return Suite(
        source=path,
        name=name,
        description=base.description,
        document=files.located(asked, (home, Path.cwd()), contenders),
        axes=base.sweep,
        contenders=contenders,
        points=tuple(points),
        figure=base.figure,
        growth=growth,
        ratios=ratios,
    )


def name_of(path: Path) -> str:
    """Returns the name of a scenario that does not state one: the name of its file, with `-`
    instead of characters that names cannot have."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", path.stem).lstrip("._-")
    return plain[:NAME_MAX] or "scenario"


def _count(base: Scenario) -> int:
    return prod(len(axis.values) for axis in base.sweep) * (len(base.compare) or 1)


def with_settings(root: Node, settings: Iterable[str]) -> Node:
    """Returns the document with `key=value` settings applied. Raises ScenarioError."""
    problems: list[Problem] = []
    for setting in settings:
        path, equals, text = setting.partition("=")
        where = Where(f"--set {quote(setting)}")
        if not equals or not all(path.split(".")) or not text.strip():
            problems.append(
                Problem(where, "", "does not have the form KEY=VALUE", "key.path=value")
            )
            continue
        try:
            root = with_value(root, path, _relocated(parse(text, where.source), where))
        except ScenarioError as error:
            problems += error.problems
    if problems:
        raise ScenarioError(problems)
    return root


def _relocated(node: Node, where: Where) -> Node:
    """Returns the node with `where` as the position of all its parts, because the line numbers of a
    setting mean nothing on a command line."""
    if isinstance(node, Scalar):
        return Scalar(node.text, node.quoted, where)
    if isinstance(node, Mapping):
        pairs = ((Scalar(k.text, k.quoted, where), _relocated(v, where)) for k, v in node.entries)
        return Mapping(tuple(pairs), where)
    return type(node)(tuple(_relocated(item, where) for item in node.items), where)


def _points(
    layers: Sequence[Node], base: Scenario, path: Path, home: Path
) -> tuple[list[Point], list[Problem]]:
    """Returns all runs of the suite, and their problems."""
    points: list[Point] = []
    wrong: list[tuple[sweep.Settings, Sequence[Problem]]] = []
    count = _count(base)
    most = (count if count <= POINTS_MAX else READ_OF_TOO_MANY) // (len(base.compare) or 1)
    for choice in islice(product(*(axis.values for axis in base.sweep)), most):
        found, problems = _group(layers, base, choice, path, home)
        points += found
        wrong.append((_settings(base, choice), problems))
    return points, list(sweep.together(wrong))


def _settings(base: Scenario, choice: Sequence[Scalar]) -> sweep.Settings:
    return tuple((axis.path, s.text) for axis, s in zip(base.sweep, choice, strict=True))


def _group(
    layers: Sequence[Node], base: Scenario, choice: Sequence[Scalar], path: Path, home: Path
) -> tuple[list[Point], list[Problem]]:
    """Returns the run of one point of the sweep, or the runs of all its contenders, and their
    problems."""
    root, settings = layers[-1], _settings(base, choice)
    for axis, scalar in zip(base.sweep, choice, strict=True):
        root = job_sweep.with_setting(root, axis.path, scalar)
    layers = [*layers, root]
    if not base.compare:
        point, problems = _point(layers, settings, "", path, home)
        return [point] if point else [], problems
    readings = {
        name: _point([*layers, overlaid(root, own)], settings, name, path, home)
        for name, own in ((each.name, each.own) for each in base.compare)
    }
    problems = [*compare.together({name: found for name, (_, found) in readings.items()})]
    points = [point for point, _ in readings.values() if point]
    if not problems:
        problems += compare.unlike(base.compare, [point.resolved.jobs for point in points])
        equal = compare.with_equal_queues([point.resolved for point in points])
        points = [replace(p, resolved=run) for p, run in zip(points, equal, strict=True)]
    return points, problems


def _point(
    layers: Sequence[Node],
    settings: sweep.Settings,
    contender: str,
    path: Path,
    home: Path,
) -> tuple[Point | None, list[Problem]]:
    """Returns one run and its problems. layers: the documents that result from the first layer
    alone, from the first two, and so on."""
    reader = _reader(chosen.left_out(layers, home), home, contender)
    scenario = _completed(reader.scenario(), reader, home)
    bare = checks.check(scenario, reader)
    sources = reader.system.sources(scenario)
    program, problem = checks.own_program(scenario, sources, home)
    if problem and not any(p.path == "switch.program" for p in reader.problems):
        reader.problem(reader.place("switch.program"), "switch.program", *problem)
    if reader.problems:
        return None, reader.problems
    single = _single(scenario, path)
    if len(sources) == 1:
        (source,) = sources.values()
        asked = scenario.switch.program or source.name
        single = replace(single, switch=replace(single.switch, program=asked))
    return Point(settings, resolve(single, program, bare), contender), []


def _reader(root: Node, home: Path, contender: str = "") -> Reader:
    """Returns a reader that knows the system's keys. If the system does not exist, the reader's
    first problem says so."""
    stated = chosen.stated(root)
    spec = chosen.name_in(stated)
    system = chosen.find(spec, home)
    if isinstance(system, System):
        return Reader(root, system, contender)
    assert stated is not None, "the default is one of the systems"
    reader = Reader(root, contender=contender)
    known = systems.names()
    allowed = f"{', '.join(known)}, or path/to/mine.py:Mine"
    reader.problem(stated.where, "system", f"{system}{nearest(spec, known)}", allowed)
    return reader


def _completed(scenario: Scenario, reader: Reader, folder: Path) -> Scenario:
    """Returns the scenario completed from other places: the paths of files, a custom graph from its
    file, and each job's workload from `workload`."""
    given = [
        frozenset(
            item.name
            for item in fields(Workload)
            if reader.given(f"jobs[{i}].workload.{yaml_name(item)}")
        )
        for i in range(len(scenario.jobs))
    ]
    scenario = _with_workers(inherited(scenario, given), reader, folder)
    scenario = _with_models(scenario, reader, folder)
    scenario = _with_scripts(_with_entries(scenario, reader, folder), reader, folder)
    spec = systems.located(scenario.system, (folder, Path.cwd()))
    scenario = replace(scenario, system=spec)
    shape = scenario.topology
    if shape.kind != "custom" or not shape.file:
        return scenario
    read, problems = _graph(folder / shape.file)
    if problems:
        reader.adopt(problems, "topology.file")
    return replace(
        scenario, topology=replace(shape, switches=read.switches, links=read.links, file="")
    )


def _graph(file: Path) -> tuple[Graph, list[Problem]]:
    try:
        reader = Reader(read_file(file))
    except ScenarioError as error:
        return Graph(), list(error.problems)
    return reader.read(Graph), reader.problems


def _with_workers(scenario: Scenario, reader: Reader, folder: Path) -> Scenario:
    """Returns the scenario with the path where the file of each worker class was found. The file is
    read but not run; `agglab.testbed.run.programs.prepare` runs it when a run begins."""

    def found(workload: Workload, path: str) -> Workload:
        spec = own_worker.find(workload.worker, (folder, Path.cwd())) if workload.worker else ""
        try:
            if reader.given(path):
                declared = own_worker.declared(spec)
                if scenario.backend == "virtual" and "all_reduce" in declared:
                    raise WorkerError(own_worker.ONLY_COMBINE)
        except WorkerError as error:
            what = f"{error}{_nearest_module(spec, folder)}"
            reader.problem(reader.place(path), path, what, own_worker.ALLOWED)
        return replace(workload, worker=spec)

    jobs = (
        replace(job, workload=found(job.workload, f"jobs[{i}].workload.worker"))
        for i, job in enumerate(scenario.jobs)
    )
    own = found(scenario.workload, "workload.worker")
    return replace(scenario, workload=own, jobs=tuple(jobs))


def _with_models(scenario: Scenario, reader: Reader, folder: Path) -> Scenario:
    """Returns the scenario with the path where each table of layers was found."""

    def found(workload: Workload, path: str) -> Workload:
        model = models.find(workload.model, (folder, Path.cwd()))
        try:
            if reader.given(path):
                models.read(model)
        except ModelError as error:
            what = f"{error}{nearest(workload.model, models.names())}"
            allowed = f"{', '.join(models.names())}, or a path (docs/scenarios.md, Layers)"
            reader.problem(reader.place(path), path, what, allowed)
        return replace(workload, model=model)

    jobs = (
        replace(job, workload=found(job.workload, f"jobs[{i}].workload.model"))
        for i, job in enumerate(scenario.jobs)
    )
    own = found(scenario.workload, "workload.model")
    return replace(scenario, workload=own, jobs=tuple(jobs))


def _nearest_module(spec: str, folder: Path) -> str:
    """Returns a hint that names the worker module that was probably meant, if the stated file does
    not exist."""
    module = spec.rpartition(":")[0]
    if os.path.isfile(module):
        return ""
    return nearest_file(module.removesuffix(".py") + ".py", (folder, Path.cwd()), "*.py")


def _with_scripts(scenario: Scenario, reader: Reader, folder: Path) -> Scenario:
    """Returns the scenario with the path where each training script was found."""

    def found(workload: Workload, path: str) -> Workload:
        given, folders = workload.script, (folder, Path())
        if not given:
            if workload.kind == Torch.kind and reader.trust()(path):
                reader.problem(reader.place(path), path, "is missing", "the path of a .py file")
            return workload
        file = next((each / given for each in folders if os.path.isfile(each / given)), None)
        if file is None and reader.given(path):
            what = f"no such file {quote(given)}{nearest_file(given, folders, '*.py')}"
            allowed = "a path relative to the scenario's folder or to the current folder"
            reader.problem(reader.place(path), path, what, allowed)
        return replace(workload, script=str(file.resolve()) if file else given)

    if not scenario.jobs:
        return replace(scenario, workload=found(scenario.workload, "workload.script"))
    own = (found(job.workload, f"jobs[{i}].workload.script") for i, job in enumerate(scenario.jobs))
    jobs = (replace(job, workload=each) for job, each in zip(scenario.jobs, own, strict=True))
    return replace(scenario, jobs=tuple(jobs))


def _with_entries(scenario: Scenario, reader: Reader, folder: Path) -> Scenario:
    """Returns the scenario with the path where the user's own entries were found. Their content is
    checked later, against the program."""
    given = scenario.switch.entries
    if not given:
        return scenario
    found = next((path for path in (folder / given, Path(given)) if os.path.exists(path)), None)
    if found is None:
        allowed = "a path relative to the scenario's folder or to the current folder"
        near = nearest_file(given, (folder, Path()))
        what = f"no such file or folder {quote(given)}{near}"
        reader.problem(reader.place("switch.entries"), "switch.entries", what, allowed)
        return scenario
    return replace(scenario, switch=replace(scenario.switch, entries=str(found.resolve())))


def _single(scenario: Scenario, path: Path) -> Scenario:
    """Returns one run as a separate scenario, without sweep, contenders, figure, growth or
    ratios."""
    own = tuple(e for e in scenario.expect if not e.metric.startswith((GROWTH, RATIO)))
    name = scenario.name or name_of(path)
    alone = replace(scenario, sweep=(), compare=(), figure=None)
    return replace(alone, name=name, expect=own)
