"""Parameter servers with switches that sum hot keys (docs/systems/libra.md)."""

from agglab.testbed.systems.libra.system import Libra

SYSTEM = Libra
"""What the registry of systems finds."""
