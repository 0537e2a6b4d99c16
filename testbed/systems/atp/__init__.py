"""ATP: all jobs share the switch's slots, and a server sums the chunks that find no free slot
(docs/systems/atp.md)."""

from agglab.testbed.systems.atp.system import Atp

SYSTEM = Atp
