"""ESA: slots that all jobs share, and that a higher priority takes over (docs/systems/esa.md)."""

from agglab.testbed.systems.esa.system import Esa

SYSTEM = Esa
