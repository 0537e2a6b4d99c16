"""A small run of each system, in which some packets are lost and come twice. Not of NetRPC, whose
switch writes the time into packets: what it says is not said again."""

from __future__ import annotations

RUN = """
name: recorded
seed: 2
system: {system}
backend: virtual
topology: {{kind: two_tier, racks: 2, workers: 2{servers}}}
links: {{rate: 50mbit, loss: 3%}}
switch: {{lanes: {lanes}}}
workload: {{{workload}, rounds: 2}}
{more}
faults: [{{kind: duplicate, link: "*", probability: 3%}}]
"""
ALL_REDUCE = "kind: allreduce, elements: 200, dtype: int32"
SPARSE = "kind: sparse_allreduce, density: 30%, block: 5, elements: 400, dtype: float32"


def small_run(system: str, workload: str, more: str = "", servers: str = "", lanes: int = 5) -> str:
    return RUN.format(system=system, workload=workload, more=more, servers=servers, lanes=lanes)


RUNS = {
    "switchml": small_run("switchml", ALL_REDUCE),
    "omnireduce": small_run("omnireduce", SPARSE),
    "atp": small_run("atp", ALL_REDUCE),
    "esa": small_run("esa", ALL_REDUCE),
    "libra": small_run(
        "libra", "kind: push_pull, elements: 60", 'libra: {servers: "p*", hot: 12}', ", servers: 1"
    ),
    "ps": small_run("ps", ALL_REDUCE),
}
