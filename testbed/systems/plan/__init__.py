"""Computes from a topology the entries with which every switch's program is filled. It only
computes values and does not touch the kernel.

forwarding(topology) -> entries by switch # plain forwarding, which is part of every program
aggregation_tree(wiring, hosts, index) -> Tree # for systems that sum in switches
"""

from agglab.testbed.systems.plan.entries import CloneSession, Entries, Replica, TableEntry
from agglab.testbed.systems.plan.forwarding import FLOOD_GROUP, forwarding
from agglab.testbed.systems.plan.tree import Branch, Tree, Wiring, aggregation_tree

__all__ = [
    "FLOOD_GROUP",
    "Branch",
    "CloneSession",
    "Entries",
    "Replica",
    "TableEntry",
    "Tree",
    "Wiring",
    "aggregation_tree",
    "forwarding",
]
