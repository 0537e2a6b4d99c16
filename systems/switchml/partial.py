"""Sums that do not wait for everybody (docs/partial-sums.md): checks of a scenario that has a
deadline, the settings of its agents and switches, its counters, and the right results.

The right results are computed from the inputs and from what workers say of who is in each sum. No
code is shared with the step in C.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from agglab.hosts import wire
from agglab.hosts.endpoint import PRESENCE
from agglab.hosts.slots import MAX_PRESENT
from agglab.systems.switchml import scaling
from agglab.systems.switchml.presence import COUNTERS as PRESENCE_COUNTERS
from agglab.systems.switchml.scaling import SwitchmlKeys, keys_of
from agglab.testbed.scenario.graph import bare
from agglab.testbed.scenario.job_list import hosts_of
from agglab.testbed.schema.jobs import Finding, stated, stated_workloads
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.schema.trust import Trust
from agglab.testbed.schema.workload_section import Workload
from agglab.testbed.systems.base import (
    ActiveJob,
    Array,
    Cells,
    Counter,
    HostCounter,
    PresenceMismatch,
    Results,
    Truth,
    TruthOf,
    as_int32,
)
from agglab.testbed.systems.plan import Tree
from agglab.testbed.systems.received_arrays import Received
from agglab.testbed.systems.summing.sizes import Sizes
from agglab.testbed.systems.summing.truth import chunk_scales

PROGRAM = "switchml_deadline"
"""The name of the P4 program."""
SIZES = Sizes(wire.HEADER_BYTES + wire.PRESENCE_BYTES)
"""The sizes of packets that say who is in a sum."""
PLAIN_SETS = 2
WORKLOADS = ("allreduce", "sparse_allreduce", "embedding_allreduce", "layers", "sgd", "torch")
CLOCK_S = 1e-6
"""The unit of the switches' clocks."""
DTYPES = ("float32", "int32")
CELLS_MAX = 65536
COUNTERS: dict[str, Counter] = {
    "late": Counter(
        "contribution_late",
        "contributions to a chunk that was closed without their worker, which got the sum instead",
    ),
    "held": Counter(
        "contribution_held",
        "contributions dropped because their slot still had a result that some worker lacked",
    ),
    "closed_early": Counter(
        "chunk_closed_early", "chunks closed at the deadline, without some worker"
    ),
}
"""The counters that the program has only if the scenario has a deadline."""
ARRIVALS = ("late", "held")
HOST_COUNTERS: dict[str, HostCounter] = {
    name: HostCounter(unit, meaning, explains_repeats=name == "asked")
    for name, (unit, meaning) in PRESENCE_COUNTERS.items()
}


def used(scenario: Scenario) -> bool:
    """Returns whether switches close chunks at a deadline."""
    return keys_of(scenario).deadline_s is not None


def sets_of(scenario: Scenario) -> int:
    """Returns how many sets a slot has."""
    return keys_of(scenario).sets if used(scenario) else PLAIN_SETS


def parameters(scenario: Scenario) -> Mapping[str, int]:
    """Returns the parameters of the P4 program, in addition to those of every program."""
    own = keys_of(scenario)
    if own.deadline_s is None:
        return {}
    return {"DEADLINE": round(own.deadline_s * 1e6), "SETS": own.sets}


def settings(own: SwitchmlKeys) -> dict[str, Any]:
    """Returns the settings of a worker."""
    if own.deadline_s is None:
        return {}
    return {"deadline_ns": round(own.deadline_s * 1e9), "sets": own.sets}


def check(scenario: Scenario, trust: Trust) -> Iterator[Finding]:
    """Yields the problems of a scenario with a deadline."""
    if not trust("switchml") or not used(scenario):
        return
    own = keys_of(scenario)
    if own.wire_bits != scaling.FULL_BITS:
        yield "switchml.wire_bits", "a deadline needs sums of 32-bit lanes", "32, or no deadline"
    if trust("switch.partition") and scenario.switch.partition == "dynamic":
        what = "with a deadline, exponents depend on the window, which must not change in a run"
        yield "switch.partition", what, "static, or no deadline"
    if trust("switch.slots") and scenario.switch.slots * own.sets > CELLS_MAX:
        what = f"{scenario.switch.slots} slots of {own.sets} sets are too many"
        yield "switchml.sets", what, f"at most {CELLS_MAX} sets in all"
    for path, work in stated_workloads(scenario):
        yield from _workload(path, work, trust)
    if trust("topology", "jobs"):
        yield from _network(scenario)


def _workload(path: str, work: Workload, trust: Trust) -> Iterator[Finding]:
    kind, dtype = work.kind, work.dtype
    if trust(f"{path}.kind") and kind not in WORKLOADS:
        what = f"results of {kind} cannot be verified if workers may be missing from them"
        yield f"{path}.kind", what, f"{', '.join(WORKLOADS)}, or no deadline"
    if trust(f"{path}.dtype") and dtype not in DTYPES:
        what = f"{dtype} cannot be used with a deadline"
        yield f"{path}.dtype", what, f"{' or '.join(DTYPES)}, or no deadline"
    if trust(f"{path}.worker") and work.worker:
        what = "a worker of your own does not know what a deadline changes in packets"
        yield f"{path}.worker", what, "leave it out"


def _network(scenario: Scenario) -> Iterator[Finding]:
    """Yields a problem for each job that more than one switch would have to sum."""
    try:
        graph = bare(scenario.topology)
    except ValueError:
        return  # which is reported where the topology is checked
    for job in stated(scenario):
        hosts = hosts_of(job, graph)
        switches = {
            end.node
            for host in hosts
            for link in graph.ports(host).values()
            for end in (link.a, link.b)
            if end.node != host
        }
        if len(switches) > 1:
            what = "a deadline needs a job whose hosts are all at one switch"
            yield "switchml.deadline", what, "such a job, or no deadline"
        if len(hosts) > MAX_PRESENT:
            what = f"a sum cannot say which of {len(hosts)} workers are in it"
            yield "switchml.deadline", what, f"at most {MAX_PRESENT} workers, or no deadline"


def expected_frames(counters: Mapping[str, Cells], index: int, children: int) -> int:
    """Returns the number of frames that a switch sent for chunks that it closed early."""
    return children * counters.get("closed_early", {}).get(index, (0, 0))[0]


def too_early(
    own: SwitchmlKeys, job: ActiveJob, counters: Mapping[str, Cells], ran_s: float
) -> str:
    """Returns what is wrong if a switch closed more chunks early than it can have done after the
    deadline; otherwise nothing. The chunks of a slot come one after the other, and each waits for
    the whole deadline, less what the rounding to the switch's clock may take away."""
    if own.deadline_s is None or own.deadline_s <= 2 * CLOCK_S:
        return ""
    closed = counters.get("closed_early", {}).get(job.index, (0, 0))[0]
    most = int(job.job.window * ran_s / (own.deadline_s - 2 * CLOCK_S))
    if closed <= most:
        return ""
    return (
        f"closed {closed} chunks early in {ran_s:.4g} s, but with a deadline of "
        f"{own.deadline_s * 1e3:g} ms and {job.job.window} slots it can have closed only {most}"
    )


# What results must be.


def truth_of(
    own: SwitchmlKeys,
    tree: Tree,
    job: ActiveJob,
    lanes: int,
    seed: int,
    results: Results,
) -> TruthOf:
    """Returns the truth (see RightResults.of_received)."""
    chunks = -(-job.job.elements // lanes)
    present = _agreed(results.received, chunks, len(job.members))
    nodes = [node for _, node in tree.branches[tree.root].children]
    bits = [nodes.index(host) for host in job.hosts]
    are_in = [np.repeat(present >> np.uint64(bit) & np.uint64(1), lanes) == 1 for bit in bits]
    count = np.repeat(_count(present), lanes)[: job.job.elements]
    if job.job.dtype == "int32":
        return lambda start, block: _integers(are_in, start, block)
    scale = _scales(own, job.job.window, lanes, results.inputs(0, job.job.elements))
    keys = _keys(own, seed, job)

    def truth(start: int, block: Sequence[Array]) -> Truth:
        place = slice(start, start + block[0].size)
        limit = 2.0 ** scaling.value_bits(own, len(block)) - 1
        total = np.zeros(block[0].size)
        for key, is_in, x in zip(keys, are_in, block, strict=True):
            scaled = scaling.rounded(key, start, x.astype(np.float64) * scale[place], x)
            total += np.where(is_in[place], np.clip(scaled, -limit, limit), 0.0)
        values = total / scale[place] * len(block) / count[place]
        return Truth(values.astype(np.float32), None, total.astype(np.int32))

    return truth


def _keys(own: SwitchmlKeys, seed: int, job: ActiveJob) -> list[int]:
    if own.rounding != scaling.STOCHASTIC:
        return [0] * len(job.members)
    return [scaling.noise_key(seed, job.job.number, rank) for rank in job.members]


def _integers(are_in: Sequence[Array], start: int, block: Sequence[Array]) -> Truth:
    place = slice(start, start + block[0].size)
    parts = [
        np.where(is_in[place], x.astype(np.int64), 0)
        for is_in, x in zip(are_in, block, strict=True)
    ]
    total: npt.NDArray[np.int64] = np.sum(parts, axis=0)
    return Truth(as_int32(total))


def _scales(own: SwitchmlKeys, window: int, lanes: int, inputs: Sequence[Array]) -> Array:
    """Returns the factor by which each element is multiplied. All chunks of a slot have the factor
    of the chunk that needs the smallest."""
    size = inputs[0].size
    if own.scale_log2 is not None:
        return np.full(size, 2.0**own.scale_log2)
    scales = chunk_scales(inputs, lanes, scaling.value_bits(own, len(inputs)))
    for slot in range(min(window, scales.size)):
        scales[slot::window] = scales[slot::window].min()
    return np.repeat(scales, lanes)[:size]


def _agreed(received: Sequence[Received], chunks: int, workers: int) -> npt.NDArray[np.uint64]:
    """Returns who is in each chunk, on which all workers must agree. Raises PresenceMismatch."""
    first: Array | None = None
    for rank, one in enumerate(received):
        own = one.more.get(PRESENCE)
        if own is None or (own.dtype, own.shape) != (np.dtype(np.uint64), (chunks,)):
            raise PresenceMismatch(
                rank, f"the workers in each of {chunks} chunks", "another array or none"
            )
        first = own if first is None else first
        if not np.array_equal(own, first):
            at = int(np.flatnonzero(own != first)[0])
            raise PresenceMismatch(
                rank, f"chunk {at} with workers {first[at]:b}", f"workers {own[at]:b}"
            )
    if first is None:
        raise PresenceMismatch(0, "results", "nothing")
    impossible = np.flatnonzero((first == 0) | (first >> np.uint64(workers - 1) > 1))
    if impossible.size:
        at = int(impossible[0])
        raise PresenceMismatch(0, f"some of {workers} workers in chunk {at}", f"{first[at]:b}")
    return first


def _count(present: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    bits = np.unpackbits(present.view(np.uint8).reshape(-1, 8), axis=1)
    return bits.sum(axis=1).astype(np.int64)
