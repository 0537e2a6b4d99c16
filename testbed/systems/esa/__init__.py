"""ESA: slots that all jobs share, and that chunks of a higher priority take over
(docs/systems/esa.md)."""

from agglab.testbed.systems.esa.system import Esa

SYSTEM = Esa
