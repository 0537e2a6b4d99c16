"""ATP: all jobs share the switch's slots, a server sums what finds none (docs/systems/atp.md)."""

from agglab.testbed.systems.atp.system import Atp

SYSTEM = Atp
