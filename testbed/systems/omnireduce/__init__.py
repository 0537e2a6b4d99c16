"""OmniReduce: workers send only the blocks that are not zero (docs/systems/omnireduce.md)."""

from agglab.testbed.systems.omnireduce.system import OmniReduce

SYSTEM = OmniReduce
