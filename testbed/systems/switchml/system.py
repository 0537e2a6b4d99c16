"""SwitchML's answers to what the testbed asks of a system."""

from __future__ import annotations

from agglab.hosts import wire
from agglab.testbed.scenario import ResolvedScenario
from agglab.testbed.systems.base import SHARED_KEYS, Abilities, ActiveJob
from agglab.testbed.systems.summing import trees
from agglab.testbed.systems.summing.attack import Aim
from agglab.testbed.systems.summing.base import Summing
from agglab.testbed.systems.summing.bounds import Load
from agglab.testbed.systems.summing.sizes import Sizes
from agglab.testbed.systems.switchml import attack


class SwitchML(Summing):
    name = "switchml"
    summary = "switches on a tree sum chunks in slots; floats as integers with a shared exponent"
    is_default = True
    choose_when = (
        "Take it for dense tensors where switches can sum: a link carries a tensor once in each "
        "direction, however many workers there are."
    )
    abilities = Abilities(keys=frozenset(SHARED_KEYS))
    endpoints = "agglab.hosts.systems.switchml"
    sizes = Sizes(wire.HEADER_BYTES)

    def load(self, resolved: ResolvedScenario, job: ActiveJob, number: int) -> Load:
        """Every chunk once over each link, each way, whatever is below, and an OPENING: for floats
        one for each slot in use."""
        window, chunks = job.job.window, resolved.chunks(job.job)
        openings = min(chunks, window) if job.job.dtype == "float32" else 1
        size = chunks * self.sizes.full(resolved.lanes) + openings * self.sizes.opening
        directions = trees.directions(trees.tree_of(resolved.graph, job))
        return Load(dict.fromkeys(directions, size), chunks, -(-chunks // window))

    def forge(self, aim: Aim, result: int, overhead: int) -> bytes:
        return attack.forge(aim, result, overhead)
