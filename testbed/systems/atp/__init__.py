"""ATP: all jobs share the switch's slots, and a server sums chunks that find none
(docs/systems/atp.md)."""

from agglab.testbed.systems.atp.system import Atp

SYSTEM = Atp
