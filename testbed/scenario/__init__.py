"""A scenario file, read and checked completely before anything happens (docs/scenarios.md)."""

from testbed.scenario.errors import Problem, ScenarioError, Where
from testbed.scenario.load import Point, Suite, find, load, names
from testbed.scenario.schema import Scenario
from testbed.scenario.write import suite_to_yaml, to_yaml

__all__ = [
    "Point",
    "Problem",
    "Scenario",
    "ScenarioError",
    "Suite",
    "Where",
    "find",
    "load",
    "names",
    "suite_to_yaml",
    "to_yaml",
]
