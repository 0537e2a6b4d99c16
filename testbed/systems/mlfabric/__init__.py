"""MLfabric: asynchronous training whose transfers a scheduler orders (docs/systems/mlfabric.md)."""

from agglab.testbed.systems.mlfabric.system import Mlfabric

SYSTEM = Mlfabric
