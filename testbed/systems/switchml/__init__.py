"""SwitchML: switches on a tree sum chunks in slots (docs/protocol.md)."""

from agglab.testbed.systems.switchml.system import SwitchML

SYSTEM = SwitchML
