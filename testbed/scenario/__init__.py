"""Reads and checks a scenario file completely before a run begins (docs/scenarios.md)."""

from agglab.testbed.base.problems import Problem, ScenarioError, Where
from agglab.testbed.scenario.load import Point, Suite, load
from agglab.testbed.scenario.resolved import resolve
from agglab.testbed.scenario.write import suite_to_yaml, to_yaml
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.schema.shipped_scenarios import find, names
from agglab.testbed.systems.base import ResolvedScenario

__all__ = [
    "Point",
    "Problem",
    "ResolvedScenario",
    "Scenario",
    "ScenarioError",
    "Suite",
    "Where",
    "find",
    "load",
    "names",
    "resolve",
    "suite_to_yaml",
    "to_yaml",
]
