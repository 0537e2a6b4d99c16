"""Writes a resolved scenario as YAML from which the same scenario can be loaded again."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml

from agglab.testbed.base.paths import P4_FOLDER
from agglab.testbed.scenario.load import Suite
from agglab.testbed.scenario.resolved import ResolvedScenario
from agglab.testbed.scenario.workloads import KINDS
from agglab.testbed.schema.document import written
from agglab.testbed.schema.key import key_of, yaml_name
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.schema.target_names import P4_TARGETS
from agglab.testbed.systems.base import SHARED_KEYS


def to_yaml(resolved: ResolvedScenario) -> str:
    """Returns the scenario as YAML, with every key and its value, including defaults."""
    programs = {program.path for program in resolved.programs.values()}
    return _dump(_tree(resolved.scenario, programs, resolved.system.abilities.keys))


def suite_to_yaml(suite: Suite) -> str:
    """Returns a suite as YAML. A single run is written with all values resolved. A suite of several
    runs is written as its file states it, because each run resolves `auto` separately."""
    if suite.axes or suite.contenders:
        return written(suite.document)
    return to_yaml(suite.points[0].resolved)


def _tree(scenario: Scenario, programs: Collection[Path], read: Collection[str]) -> dict[str, Any]:
    """Returns the scenario as a tree for YAML. programs: the paths at which the P4 sources were
    found. read: the keys among SHARED_KEYS that the system reads."""
    tree = _section(scenario)
    if len(programs) == 1:  # otherwise they are the system's own, and there is nothing to choose
        (program,) = programs
        own = program.parent == P4_FOLDER
        tree["switch"]["program"] = program.stem if own else str(program)
    if scenario.switch.target not in P4_TARGETS:
        del tree["switch"]["program"]
    for path in SHARED_KEYS:
        if path not in read:
            _leave_out(tree, path)
    for workload in [tree["workload"], *(job["workload"] for job in tree["jobs"])]:
        for key in KINDS[workload["kind"]].unread:
            workload.pop(key, None)
    tree |= {name: _section(options) for name, options in scenario.options}
    tree["expect"] = {e.metric: e.to_yaml() for e in scenario.expect}
    return {name: value for name, value in tree.items() if value or value == 0}


def _leave_out(tree: dict[str, Any], path: str) -> None:
    """Removes a key that the system does not read, in every section where it can be stated."""
    section, _, key = path.rpartition(".")
    places = tree["jobs"] if section == "jobs[]" else [tree[section]]
    if section == "workload":
        places += [job["workload"] for job in tree["jobs"]]
    for place in places:
        place.pop(key, None)


def _section(values: Any) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for item in fields(values):
        value, key = getattr(values, item.name), key_of(item)
        if key and "many" in item.metadata:
            tree[key.name] = [key.kind.write(entry) for entry in value] or None
        elif key:
            tree[key.name] = None if value is None else key.kind.write(value)
        elif "section" in item.metadata:
            tree[yaml_name(item)] = None if value is None else _section(value)
        elif "items" in item.metadata:
            tree[yaml_name(item)] = [_section(entry) for entry in value]
    return tree


def _dump(tree: dict[str, Any]) -> str:
    return yaml.safe_dump(_plain(tree), sort_keys=False, allow_unicode=True, width=100)


def _plain(value: Any) -> Any:
    """Returns the value without keys that are not set. Fractions become numbers that read back the
    same."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items() if v is not None}
    return [_plain(v) for v in value] if isinstance(value, list) else value
