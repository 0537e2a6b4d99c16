"""Kinds of switch a scenario can choose; each starts a program and is filled over P4Runtime."""

from testbed.network.targets.base import RunningSwitch, SwitchSetting, Target, start_switch
from testbed.network.targets.native import NativeTarget

__all__ = ["NativeTarget", "RunningSwitch", "SwitchSetting", "Target", "start_switch"]
