"""OmniReduce: only blocks that are not zero travel (docs/systems/omnireduce.md)."""

from agglab.testbed.systems.omnireduce.system import OmniReduce

SYSTEM = OmniReduce
