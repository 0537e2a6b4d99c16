"""Kinds of switch a scenario can choose; each starts a program and is filled by a Control."""

from pathlib import Path

from agglab.testbed.network.targets import bmv2
from agglab.testbed.network.targets.base import (
    Control,
    RunningSwitch,
    SwitchSetting,
    Target,
    start_switch,
)
from agglab.testbed.network.targets.bmv2 import Bmv2Target
from agglab.testbed.network.targets.native import NativeTarget


def choose(name: str, program_json: Path, p4info: Path, log: str) -> Target:
    """The target that `switch.target` and `switch.log` ask for."""
    if name == "bmv2":
        return Bmv2Target(program_json, p4info, log)
    return NativeTarget(program_json, p4info, log)


def require(name: str) -> None:
    """Raise MachineLacks if a target is not installed."""
    if name == "bmv2":
        bmv2.installed()


def facts(name: str) -> dict[str, object]:
    """What manifest.json says of a target; MachineLacks if it is not installed."""
    return bmv2.facts() if name == "bmv2" else {}


__all__ = [
    "Bmv2Target",
    "Control",
    "NativeTarget",
    "RunningSwitch",
    "SwitchSetting",
    "Target",
    "choose",
    "facts",
    "require",
    "start_switch",
]
