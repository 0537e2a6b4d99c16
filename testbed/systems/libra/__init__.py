"""Libra: parameter servers with switches that sum hot keys (docs/systems/libra.md)."""

from agglab.testbed.systems.libra.system import Libra

SYSTEM = Libra
"""The system that `testbed.systems` finds."""
