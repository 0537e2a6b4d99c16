"""Ring all-reduce between hosts (docs/systems/ring.md)."""

from agglab.testbed.systems.ring.system import Ring

SYSTEM = Ring
