"""The declarations and answers of SwitchML as a System."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from agglab.hosts import wire
from agglab.hosts.fixed_point import COUNTERS as FIXED_POINT_COUNTERS
from agglab.testbed.scenario import ResolvedScenario, Scenario
from agglab.testbed.scenario.jobs import Finding, Job
from agglab.testbed.scenario.trust import Trust
from agglab.testbed.systems.base import (
    SHARED_KEYS,
    Abilities,
    ActiveJob,
    Agent,
    Choices,
    Combine,
    Source,
    TruthOf,
    everywhere,
)
from agglab.testbed.systems.common import meanings, with_settings
from agglab.testbed.systems.summing import trees
from agglab.testbed.systems.summing.attack import Aim
from agglab.testbed.systems.summing.base import Summing
from agglab.testbed.systems.summing.bounds import Load
from agglab.testbed.systems.summing.sizes import Sizes
from agglab.testbed.systems.switchml import attack, fixed_point, halves


class SwitchML(Summing):
    name = "switchml"
    summary = (
        "switches on a tree sum chunks in slots; floats travel as integers with a shared exponent"
    )
    is_default = True
    choose_when = (
        "Take it for dense tensors where switches can sum: a link carries a tensor once in "
        "each direction, however many workers there are."
    )
    abilities = Abilities(keys=frozenset(SHARED_KEYS), dtypes=("float32", "int32", halves.DTYPE))
    endpoints = "agglab.hosts.systems.switchml"
    options = fixed_point.SwitchmlKeys
    host_counters = meanings(FIXED_POINT_COUNTERS)
    sizes = Sizes(wire.HEADER_BYTES)

    def check(self, scenario: Scenario, trust: Trust) -> Iterator[Finding]:
        yield from super().check(scenario, trust)
        yield from halves.check(scenario, trust)
        yield from fixed_point.check(scenario, trust)

    def lanes(self, scenario: Scenario) -> int:
        lanes = super().lanes(scenario)
        return halves.even(lanes) if halves.used(scenario) else lanes

    def resolve(self, scenario: Scenario, slowest_bps: int) -> Choices:
        if halves.used(scenario):
            lanes = self.lanes(scenario)
            scenario = replace(scenario, switch=replace(scenario.switch, lanes=lanes))
        return super().resolve(scenario, slowest_bps)

    def chunks(self, scenario: Scenario, job: Job) -> int:
        return -(-job.elements // halves.values_per_chunk(self.lanes(scenario), job.dtype))

    def memory_bytes(self, resolved: ResolvedScenario) -> int:
        sums = super().memory_bytes(resolved)
        return sums + halves.FACTOR * sums if halves.used(resolved.scenario) else sums

    def sources(self, scenario: Scenario) -> Mapping[str, Source]:
        parameters = {"LANES": self.lanes(scenario), "SLOTS": scenario.switch.slots}
        if halves.used(scenario):
            parameters["FLOAT16"] = 1
        return everywhere(Source(self.name, parameters))

    def agents(self, resolved: ResolvedScenario, job: ActiveJob) -> Sequence[Agent]:
        own, plain = fixed_point.keys_of(resolved.scenario), super().agents(resolved, job)
        if own == fixed_point.PLAIN:
            return plain
        number = job.job.number
        return [
            with_settings(
                agent,
                {"fixed_point": fixed_point.settings(own, resolved.seed, number, agent.rank)},
            )
            for agent in plain
        ]

    def truth(self, resolved: ResolvedScenario, job: ActiveJob, combine: Combine | None) -> TruthOf:
        if job.job.dtype == halves.DTYPE:
            return halves.truth_of(trees.tree_of(resolved.graph, job), job)
        own = fixed_point.keys_of(resolved.scenario)
        if own != fixed_point.PLAIN:
            return fixed_point.truth_of(own, resolved.lanes, resolved.seed, job)
        return super().truth(resolved, job, combine)

    def load(self, resolved: ResolvedScenario, job: ActiveJob, number: int) -> Load:
        """Returns the load. Every chunk crosses each link once in each direction, however many
        workers are below the link. So does an OPENING; for floats, one for each slot in use."""
        window, chunks = job.job.window, resolved.chunks(job.job)
        openings = min(chunks, window) if job.job.dtype == "float32" else 1
        size = chunks * self.sizes.full(resolved.lanes) + openings * self.sizes.opening
        directions = trees.directions(trees.tree_of(resolved.graph, job))
        return Load(dict.fromkeys(directions, size), chunks, -(-chunks // window))

    def forge(self, aim: Aim, result: int, overhead: int) -> bytes:
        return attack.forge(aim, result, overhead)
