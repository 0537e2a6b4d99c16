"""Writes the tables of docs/scenarios.md and docs/results.md from the declarations in the code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agglab.testbed import systems
from agglab.testbed.scenario.metric_names import metrics
from agglab.testbed.schema.fault_kinds import KINDS
from agglab.testbed.schema.finding_kinds import FINDING_KINDS, WARNINGS
from agglab.testbed.schema.key import Key
from agglab.testbed.schema.kinds import AutoOr
from agglab.testbed.schema.scenario import keys
from agglab.testbed.schema.series_metrics import PROGRAM_COUNTER, SERIES
from agglab.testbed.systems.base import SHARED_KEYS, System


def key_table() -> str:
    """Returns a row for each key: path, allowed values, default, meaning."""
    rows = ["| key | allowed | default | meaning |", "|---|---|---|---|"]
    for path, key, default in _all_keys():
        if path.startswith("jobs[].workload.kind"):
            rows.append("| `jobs[].workload` | the keys of `workload` | `workload` | of this job |")
        elif not path.startswith("jobs[].workload."):
            form = "a list: " if isinstance(default, tuple) else ""
            form = "a mapping to: " if isinstance(default, dict) else form
            allowed = form + key.kind.allowed
            rows.append(f"| `{path}` | {allowed} | {_default(key, default)} | {key.doc} |")
    return "\n".join(rows)


def _all_keys() -> Iterator[tuple[str, Key, Any]]:
    """Yields every key, including those of the built-in systems' sections."""
    yield from keys()
    for name in systems.built_in():
        if own := systems.find(name).options:
            yield from keys(own, f"{name}.")


def fault_table() -> str:
    """Returns a row for each kind of fault: where it happens, the keys that only it has, and its
    meaning."""
    rows = ["| kind | where | keys | what happens |", "|---|---|---|---|"]
    for name, kind in KINDS.items():
        own = ", ".join(f"`{each}`" for each in (*kind.needs, *kind.may))
        rows.append(f"| `{name}` | {kind.target} | {own} | {kind.doc} |")
    return "\n".join(rows)


def series_table() -> str:
    """Returns a row for each metric over time."""
    rows = ["| kind | metric | unit | meaning | counted by |", "|---|---|---|---|---|"]
    for each in (*SERIES, PROGRAM_COUNTER):
        about = (f"`{each.name}`", each.unit, each.meaning, each.counted)
        rows.append(f"| {each.kind} | {' | '.join(about)} |")
    return "\n".join(rows)


def metric_table() -> str:
    """Returns a row for each metric of any built-in system: path, unit or type, and meaning. If the
    meaning differs between systems, the row has the meaning for each."""
    rows = ["| path | unit or type | meaning |", "|---|---|---|"]
    stated: dict[str, dict[str, list[str]]] = {}
    units: dict[str, dict[str, None]] = {}
    for name in systems.built_in():
        for path, metric in metrics(systems.find(name)).items():
            if metric.meaning:
                stated.setdefault(path, {}).setdefault(metric.meaning, []).append(f"`{name}`")
                units.setdefault(path, {})[metric.unit or metric.kind] = None
    for path, said in stated.items():
        rows.append(f"| `{path}` | {', '.join(units[path])} | {_meaning(said)} |")
    return "\n".join(rows)


def _meaning(said: Mapping[str, Sequence[str]]) -> str:
    """Returns the text on a metric's meaning. said: each meaning, with the systems for which it
    holds."""
    if len(said) == 1:
        return next(iter(said))
    return "; ".join(f"{', '.join(names)}: {meaning}" for meaning, names in said.items())


def _default(key: Key, default: object) -> str:
    if default is None and not isinstance(key.kind, AutoOr):
        return ""
    if isinstance(default, (tuple, dict)):
        return " ".join(f"`{key.kind.write(entry)}`" for entry in default)
    shown = key.kind.write(default)
    if isinstance(shown, bool):
        shown = str(shown).lower()
    return f"`{shown}`" if shown != "" else ""


def system_lines(system: System) -> Iterator[str]:
    """Yields lines for people about what a system is and what it supports."""
    able = system.abilities
    yield f"{system.name}: {system.summary}"
    own = [path for path, _, _ in keys(system.options, f"{system.name}.")] if system.options else []
    shared = [path for path in SHARED_KEYS if path in able.keys]
    for what, values in (
        ("workloads", able.workloads),
        ("dtypes", able.dtypes),
        ("clocks", able.clocks),
        ("targets", able.targets),
        ("keys", [*own, *shared]),
    ):
        yield f"  {what}: {', '.join(values) or 'none'}"


def finding_table() -> str:
    """Returns the kinds of findings as a Markdown table."""
    rows = [
        f"| `{kind}` | {'no, it is a warning' if kind in WARNINGS else 'yes'} | {meaning} |"
        for kind, meaning in FINDING_KINDS.items()
    ]
    return "\n".join(["| kind | fails the run | meaning |", "|---|---|---|", *rows])
