"""From a topology and its jobs to what every switch is filled with: pure values, no kernel.

plan(topology, jobs) -> Plan        # entries per switch, a tree per job
job_entries(topology, switch, jobs) # one switch's part of it
"""

from agglab.testbed.plan.entries import (
    FLOOD_GROUP,
    MAX_JOBS,
    CloneSession,
    Entries,
    Job,
    Plan,
    Replica,
    TableEntry,
    job_entries,
    job_trees,
    plan,
)
from agglab.testbed.plan.tree import Branch, Tree, Wiring, aggregation_tree

__all__ = [
    "FLOOD_GROUP",
    "MAX_JOBS",
    "Branch",
    "CloneSession",
    "Entries",
    "Job",
    "Plan",
    "Replica",
    "TableEntry",
    "Tree",
    "Wiring",
    "aggregation_tree",
    "job_entries",
    "job_trees",
    "plan",
]
