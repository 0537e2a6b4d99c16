"""The system SwitchML: the values and methods that the testbed asks of a System."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial as bound

from agglab.hosts import wire
from agglab.systems.switchml import attack, halves, narrow, partial, scaling
from agglab.systems.switchml.fixed_point import COUNTERS as FIXED_POINT_COUNTERS
from agglab.testbed.schema.jobs import Finding, Job
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.schema.trust import Trust
from agglab.testbed.systems.base import (
    SHARED_KEYS,
    Abilities,
    ActiveJob,
    Agent,
    ByteRange,
    Cells,
    Choices,
    Combine,
    Counter,
    HostCounter,
    ResolvedScenario,
    RightResults,
    SlotMeter,
    Source,
    SwitchWork,
    everywhere,
)
from agglab.testbed.systems.common import meanings, with_settings
from agglab.testbed.systems.messages import Messages
from agglab.testbed.systems.summing import trees
from agglab.testbed.systems.summing.attack import AttackContext, frames
from agglab.testbed.systems.summing.base import Summing
from agglab.testbed.systems.summing.bounds import Load
from agglab.testbed.systems.summing.counters import COUNTERS
from agglab.testbed.systems.summing.meter import slot_meter
from agglab.testbed.systems.summing.sizes import Sizes


def _takes_pairs_of_lanes(scenario: Scenario) -> bool:
    return bool(halves.used(scenario)) or narrow.bits_of(scenario) is not None


def _program(scenario: Scenario) -> str:
    """Returns the name of the P4 program, one of p4/switchml*.p4. The checks of a scenario refuse
    whatever would need two of them."""
    if types := halves.used(scenario):
        return halves.PROGRAMS[types[0]]
    if narrow.bits_of(scenario) is not None:
        return narrow.PROGRAM
    return partial.PROGRAM if partial.used(scenario) else SwitchML.name


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
    abilities = Abilities(
        keys=frozenset(SHARED_KEYS),
        dtypes=("float32", "int32", *halves.PROGRAMS),
        pieces=("float32", "int32"),
    )
    options = scaling.SwitchmlKeys
    counters: Mapping[str, Counter] = {**COUNTERS, **partial.COUNTERS}
    optional_counters = frozenset(partial.COUNTERS)
    host_counters: Mapping[str, HostCounter] = {
        **meanings(FIXED_POINT_COUNTERS),
        **partial.HOST_COUNTERS,
    }
    sizes = Sizes(wire.HEADER_BYTES)
    messages = Messages(
        wire.HEADER, wire.Kind, ["RESULT"], ["slot", "tag"], {"RESULT": wire.RESULT}
    )

    def check(self, scenario: Scenario, trust: Trust) -> Iterator[Finding]:
        yield from super().check(scenario, trust)
        yield from halves.check(scenario, trust, self.lanes)
        yield from scaling.check(scenario, trust)
        yield from narrow.check(scenario, trust)
        yield from partial.check(scenario, trust)

    def sizes_of(self, scenario: Scenario) -> Sizes:
        return partial.SIZES if partial.used(scenario) else self.sizes

    def lanes(self, scenario: Scenario) -> int:
        lanes = super().lanes(scenario)
        return halves.even(lanes) if _takes_pairs_of_lanes(scenario) else lanes

    def resolve(self, scenario: Scenario, slowest_bps: int, delays_s: float) -> Choices:
        if _takes_pairs_of_lanes(scenario):
            lanes = self.lanes(scenario)
            scenario = replace(scenario, switch=replace(scenario.switch, lanes=lanes))
        return super().resolve(scenario, slowest_bps, delays_s)

    def chunks(self, scenario: Scenario, job: Job) -> int:
        return -(-job.elements // self._values_per_chunk(scenario, self.lanes(scenario), job.dtype))

    def _values_per_chunk(self, scenario: Scenario, lanes: int, dtype: str) -> int:
        plain = halves.values_per_chunk(lanes, dtype)
        return narrow.values_per_chunk(scenario, lanes, dtype) or plain

    def memory_bytes(self, resolved: ResolvedScenario) -> int:
        sums = super().memory_bytes(resolved)
        sums = sums * partial.sets_of(resolved.scenario) // partial.PLAIN_SETS
        return sums + halves.factor(resolved.scenario) * sums

    def sources(self, scenario: Scenario) -> Mapping[str, Source]:
        more = {**narrow.parameters(scenario), **partial.parameters(scenario)}
        return everywhere(self.source(_program(scenario), scenario, **more))

    def agents(self, resolved: ResolvedScenario, job: ActiveJob) -> Sequence[Agent]:
        own, plain = scaling.keys_of(resolved.scenario), super().agents(resolved, job)
        plain = [with_settings(agent, partial.settings(own)) for agent in plain]
        if not scaling.has_own_numbers(own):
            return plain
        number, bits = job.job.number, narrow.bits_of(resolved.scenario)
        shared = {} if bits is None else {"wire_bits": bits}
        return [
            with_settings(
                agent,
                {
                    "fixed_point": scaling.settings(own, resolved.seed, number, agent.rank),
                    **shared,
                },
            )
            for agent in plain
        ]

    def right_results(
        self, resolved: ResolvedScenario, job: ActiveJob, combine: Combine | None
    ) -> RightResults:
        """Returns what results must be. A block is a whole number of chunks for each type."""
        scenario, seed, lanes = resolved.scenario, resolved.seed, resolved.lanes
        block, own = (
            self._values_per_chunk(scenario, lanes, scaling.DTYPE),
            scaling.keys_of(scenario),
        )
        plain = replace(super().right_results(resolved, job, combine), block=block)
        if job.job.dtype in halves.PROGRAMS:
            return replace(plain, truth=halves.truth_of(trees.tree_of(resolved.graph, job), job))
        if partial.used(scenario):
            tree = trees.tree_of(resolved.graph, job)
            return replace(plain, of_received=bound(partial.truth_of, own, tree, job, lanes, seed))
        if scaling.has_own_numbers(own):
            return replace(plain, truth=scaling.truth_of(own, block, seed, job))
        return plain

    def switch_work(self, resolved: ResolvedScenario) -> SwitchWork:
        """Returns what counters tell, those of chunks that a deadline closed included."""
        plain, own = super().switch_work(resolved), scaling.keys_of(resolved.scenario)

        def expected_frames(job: ActiveJob, switch: str, cells: Mapping[str, Cells]) -> int:
            closed = partial.expected_frames(cells, job.index, len(job.members))
            return plain.expected_frames(job, switch, cells) + closed

        arrivals = (*plain.arrivals, *partial.ARRIVALS)
        too_early = bound(partial.too_early, own)
        return replace(
            plain, arrivals=arrivals, expected_frames=expected_frames, too_early=too_early
        )

    def slot_meter(self, resolved: ResolvedScenario) -> SlotMeter | None:
        scenario = resolved.scenario
        return slot_meter(resolved, partial.sets_of(scenario) if partial.used(scenario) else 0)

    def load(self, resolved: ResolvedScenario, job: ActiveJob, number: int) -> Load:
        """Returns the load. Every chunk crosses each link once in each direction, however many
        workers are below the link. So does each OPENING: one in all or, for floats, one for each
        slot in use."""
        window, chunks = job.job.window, resolved.chunks(job.job)
        sizes, on_all = self.sizes_of(resolved.scenario), partial.used(resolved.scenario)
        openings = min(chunks, window) if on_all or job.job.dtype == "float32" else 1
        size = chunks * sizes.full(resolved.lanes) + openings * sizes.opening
        tree, steps = trees.tree_of(resolved.graph, job), -(-chunks // window)
        bits = narrow.bits_of(resolved.scenario)
        if bits is None:
            return Load(dict.fromkeys(trees.directions(tree), size), chunks, steps)
        sent = narrow.sent(tree, size, self.sizes, resolved.lanes, chunks)
        return Load(sent, chunks, steps, narrow.widths(tree, self.sizes, resolved.lanes, bits))

    def extra_bytes(
        self, resolved: ResolvedScenario, job: ActiveJob, host: str, counts: Mapping[str, int]
    ) -> ByteRange:
        if narrow.bits_of(resolved.scenario) is None:
            more = super().extra_bytes(resolved, job, host, counts)
            less = counts["skipped"] * self.chunk_bits(resolved) // 8
            return ByteRange(more.least - less, more.most - less)
        sizes = self.sizes.opening, narrow.narrow_frame_bytes(self.sizes, resolved.lanes)
        return ByteRange(*(counts["retransmitted"] * size for size in sorted(sizes)))

    def answers(self, resolved: ResolvedScenario, packets: int, size: int) -> ByteRange:
        if narrow.bits_of(resolved.scenario) is None:
            return super().answers(resolved, packets, size)
        return narrow.answers(self.sizes, resolved.lanes, packets, size)

    def attack(
        self, key: str, resolved: ResolvedScenario, host: str
    ) -> Iterator[tuple[str, bytes]]:
        bits = narrow.bits_of(resolved.scenario)
        forge = bound(attack.forge, wire_bits=bits, with_presence=partial.used(resolved.scenario))
        return frames(key, resolved, host, forge)

    def forge(self, context: AttackContext, result: int, overhead: int) -> bytes:
        return attack.forge(context, result, overhead)


SYSTEM = SwitchML
