"""A scenario file to the runs it asks for: one, or one for each point of its sweep."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from itertools import islice, product
from math import prod
from pathlib import Path

from agglab.hosts import own_worker
from agglab.hosts.own_worker import WorkerError
from agglab.testbed import systems
from agglab.testbed.places import SCENARIO_FOLDER
from agglab.testbed.scenario import checks
from agglab.testbed.scenario.document import Mapping, Node, Scalar, parse, read_file, with_value
from agglab.testbed.scenario.errors import (
    Problem,
    ScenarioError,
    Where,
    nearest,
    nearest_file,
    quote,
)
from agglab.testbed.scenario.jobs import inherited
from agglab.testbed.scenario.metric_names import GROWTH
from agglab.testbed.scenario.reader import Reader
from agglab.testbed.scenario.schema import (
    NAME_MAX,
    Axis,
    Expectation,
    Graph,
    Scenario,
    Workload,
    yaml_name,
)

POINTS_MAX = 64


@dataclass(frozen=True)
class Point:
    """One run: the swept keys' values as written (none without a sweep), and the whole scenario."""

    settings: tuple[tuple[str, str], ...]
    scenario: Scenario
    program: Path

    @property
    def label(self) -> str:
        return ", ".join(f"{path.rpartition('.')[2]} {text}" for path, text in self.settings)


@dataclass(frozen=True)
class Suite:
    """A checked scenario file; `asked` is its text as values, `auto` and sweep included.

    `growth` is expected of the suite, the other expectations of each point.
    """

    source: Path
    name: str
    description: str
    asked: Scenario
    axes: tuple[Axis, ...]
    points: tuple[Point, ...]
    growth: tuple[Expectation, ...]


def find(name_or_path: str) -> Path:
    """The file a user means: a path, or the name of a file in scenarios/."""
    path = Path(name_or_path)
    is_path = "/" in name_or_path or path.suffix in (".yaml", ".yml")
    name = path.stem if is_path else name_or_path
    named = SCENARIO_FOLDER / f"{name}.yaml"
    if not is_path and named.is_file():
        return named
    ours = path.parent.resolve() == SCENARIO_FOLDER
    if not path.exists() and (ours or not is_path):
        what = f"no such scenario{nearest(name, names())}"
        raise ScenarioError([Problem(Where(quote(name_or_path)), "", what, _known())])
    return path


def names() -> list[str]:
    """The scenarios that come with the laboratory."""
    return sorted(path.stem for path in SCENARIO_FOLDER.glob("*.yaml"))


def load(path: Path, settings: Iterable[str] = (), folder: Path | None = None) -> Suite:
    """Read and check `path` with `key=value` settings; raises ScenarioError with all problems.

    folder: where the paths in it count from, instead of its own.
    """
    home = folder or path.resolve().parent
    root = _with_settings(read_file(path), settings)
    first = _reader(root, home)
    base = first.scenario()
    problems = [] if base.sweep else list(first.problems)
    if (count := _count(base.sweep)) > POINTS_MAX:
        allowed = f"at most {POINTS_MAX}"
        problems.append(Problem(first.place("sweep"), "sweep", f"makes {count} runs", allowed))
    choices = islice(product(*(axis.values for axis in base.sweep)), POINTS_MAX)
    readings = [_point(root, base.sweep, choice, path, home) for choice in choices]
    for _, found in readings:
        problems += found
    if problems:
        raise ScenarioError(list(dict.fromkeys(problems)))
    points = tuple(point for point, _ in readings if point)
    asked = replace(base, name=base.name or name_of(path))
    growth = tuple(e for e in base.expect if e.metric.startswith(GROWTH))
    return Suite(path, asked.name, base.description, asked, base.sweep, points, growth)


def name_of(path: Path) -> str:
    """The name of a scenario that gives none: its file's, with `-` for what names do not have."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", path.stem).lstrip("._-")
    return plain[:NAME_MAX] or "scenario"


def _known() -> str:
    return f"{', '.join(names())}, or the path of a .yaml file"


def _count(axes: tuple[Axis, ...]) -> int:
    return prod(len(axis.values) for axis in axes)


def _has_sweep(root: Node) -> bool:
    return isinstance(root, Mapping) and root.get("sweep") is not None


def _with_settings(root: Node, settings: Iterable[str]) -> Node:
    problems: list[Problem] = []
    for setting in settings:
        path, equals, text = setting.partition("=")
        where = Where(f"--set {quote(setting)}")
        if not equals or not all(path.split(".")) or not text.strip():
            problems.append(Problem(where, "", "is not a setting", "key.path=value"))
            continue
        try:
            root = with_value(root, path, _relocated(parse(text, where.source), where))
        except ScenarioError as error:
            problems += error.problems
    if problems:
        raise ScenarioError(problems)
    return root


def _relocated(node: Node, where: Where) -> Node:
    """Line numbers mean nothing on a command line."""
    if isinstance(node, Scalar):
        return Scalar(node.text, node.quoted, where)
    if isinstance(node, Mapping):
        pairs = ((Scalar(k.text, k.quoted, where), _relocated(v, where)) for k, v in node.entries)
        return Mapping(tuple(pairs), where)
    return type(node)(tuple(_relocated(item, where) for item in node.items), where)


def _point(
    root: Node, axes: tuple[Axis, ...], choice: tuple[Scalar, ...], path: Path, home: Path
) -> tuple[Point | None, list[Problem]]:
    for axis, scalar in zip(axes, choice, strict=True):
        root = with_value(root, axis.path, scalar)
    reader = _reader(root, home)
    scenario = _completed(reader.scenario(), reader, home)
    checks.check(scenario, reader)
    asked = scenario.switch.program or reader.system.source(scenario).name
    program = checks.find_program(asked, home)
    if program is None and not any(p.path == "switch.program" for p in reader.problems):
        what, allowed = checks.program_problem(asked, home)
        reader.problem(reader.place("switch.program"), "switch.program", what, allowed)
    if reader.problems or program is None:
        return None, reader.problems
    settings = tuple((axis.path, s.text) for axis, s in zip(axes, choice, strict=True))
    resolved = checks.resolve(_single(scenario, path), reader.system, asked)
    return Point(settings, resolved, program), []


def _reader(root: Node, home: Path) -> Reader:
    """One that knows the system's keys; a system that there is not is its first problem."""
    stated = root.get("system") if isinstance(root, Mapping) else None
    spec = stated.text if isinstance(stated, Scalar) and stated.text else systems.default()
    try:
        system = systems.find(systems.located(spec, (home, Path.cwd())))
    except systems.UnknownSystem as error:
        reader = Reader(root, swept=_has_sweep(root))
        assert stated is not None, "the default is one of the systems"
        known = systems.names()
        allowed = f"{', '.join(known)}, or path/to/mine.py:Mine"
        reader.problem(stated.where, "system", f"{error}{nearest(spec, known)}", allowed)
        return reader
    return Reader(root, swept=_has_sweep(root), system=system)


def _completed(scenario: Scenario, reader: Reader, folder: Path) -> Scenario:
    """With what stands elsewhere: a custom graph in its file, a job's workload in `workload`."""
    given = [
        frozenset(
            item.name
            for item in fields(Workload)
            if reader.given(f"jobs[{i}].workload.{yaml_name(item)}")
        )
        for i in range(len(scenario.jobs))
    ]
    scenario = _with_workers(inherited(scenario, given), reader, folder)
    scenario = _with_entries(scenario, reader, folder)
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
        reader = Reader(read_file(file), swept=False)
    except ScenarioError as error:
        return Graph(), list(error.problems)
    return reader.read(Graph), reader.problems


def _with_workers(scenario: Scenario, reader: Reader, folder: Path) -> Scenario:
    """Each worker class as the file it was found in. The file is read and never run: that is for
    `agglab.testbed.prepare`, when a run begins."""

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


def _nearest_module(spec: str, folder: Path) -> str:
    """What a worker's module may have been meant to be, if there is no such file."""
    module = spec.rpartition(":")[0]
    if os.path.isfile(module):
        return ""
    return nearest_file(module.removesuffix(".py") + ".py", (folder, Path.cwd()), "*.py")


def _with_entries(scenario: Scenario, reader: Reader, folder: Path) -> Scenario:
    """The file or folder of own entries as it was found; what it holds is the program's matter."""
    given = scenario.switch.entries
    if not given:
        return scenario
    found = next((path for path in (folder / given, Path(given)) if os.path.exists(path)), None)
    if found is None:
        allowed = "a path from the scenario's folder or from where you are"
        near = nearest_file(given, (folder, Path()))
        what = f"no such file or folder {quote(given)}{near}"
        reader.problem(reader.place("switch.entries"), "switch.entries", what, allowed)
        return scenario
    return replace(scenario, switch=replace(scenario.switch, entries=str(found.resolve())))


def _single(scenario: Scenario, path: Path) -> Scenario:
    """One point as a scenario of its own: no sweep, no growth."""
    own = tuple(e for e in scenario.expect if not e.metric.startswith(GROWTH))
    return replace(scenario, name=scenario.name or name_of(path), expect=own, sweep=())
