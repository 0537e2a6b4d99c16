"""ESA: jobs share all slots, and chunks with a higher priority take slots over from others
(docs/systems/esa.md)."""

from agglab.testbed.systems.esa.system import Esa

SYSTEM = Esa
