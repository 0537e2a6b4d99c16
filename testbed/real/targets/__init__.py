"""The kinds of switch that a scenario can choose (targets). Each Target starts a program, and its
Control writes the program's entries."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agglab.testbed.real.targets import bmv2, bridge, native
from agglab.testbed.real.targets.base import (
    Control,
    RunningSwitch,
    SwitchSetting,
    Target,
    start_switch,
)
from agglab.testbed.real.targets.bmv2 import Bmv2Target
from agglab.testbed.real.targets.native import NativeTarget

TARGETS: Mapping[str, Any] = {
    "native": native,
    "bmv2": bmv2,
    "bridge": bridge,
}
"""The module of each `switch.target`. A module has TARGET, a subclass of Target; `installed()`,
which raises MachineLacks if the target is not installed; and `facts()`, which returns what
manifest.json says about the target."""


def choose(name: str, program_json: Path, p4info: Path, log: str) -> Target:
    """Returns the target with the name of `switch.target`. log: the value of `switch.log`."""
    target: Target = TARGETS[name].TARGET(program_json, p4info, log)
    return target


def require(name: str) -> None:
    """Raises MachineLacks if a target is not installed."""
    TARGETS[name].installed()


def facts(name: str) -> dict[str, object]:
    """Returns what manifest.json says about a target. Raises MachineLacks if it is not
    installed."""
    found: dict[str, object] = TARGETS[name].facts()
    return found


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
