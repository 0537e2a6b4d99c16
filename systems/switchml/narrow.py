"""Floats that travel to the switch as integers of 16, 8 or 4 bits (docs/numbers.md): checks of a
scenario that uses them, and the sizes of their packets.

Sums have twice as many bits. What the sums must be does not depend on these sizes: see
scaling.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agglab.hosts import wire
from agglab.systems.switchml.scaling import DTYPE, FULL_BITS, keys_of
from agglab.testbed.scenario.graph import bare
from agglab.testbed.scenario.job_list import hosts_of
from agglab.testbed.schema.jobs import Finding, stated
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.schema.trust import Trust
from agglab.testbed.systems.base import ByteRange
from agglab.testbed.systems.plan import Tree
from agglab.testbed.systems.summing.bounds import Widths
from agglab.testbed.systems.summing.sizes import Sizes

PROGRAM = "switchml_narrow"
"""The name of the P4 program."""


def bits_of(scenario: Scenario) -> int | None:
    """Returns the number of bits of a value in a contribution, or None if the contributions are not
    narrow."""
    bits = keys_of(scenario).wire_bits
    return None if bits == FULL_BITS else bits


def parameters(scenario: Scenario) -> Mapping[str, int]:
    """Returns the parameters of the P4 program, in addition to those of every program."""
    bits = bits_of(scenario)
    return {} if bits is None else {"WIRE_BITS": bits}


def values_per_chunk(scenario: Scenario, lanes: int, dtype: str) -> int | None:
    """Returns how many values a packet carries, or None if the contributions are not narrow."""
    bits = bits_of(scenario)
    return wire.narrow_values(lanes, bits) if bits and dtype == DTYPE else None


def check(scenario: Scenario, trust: Trust) -> Iterator[Finding]:
    """Yields the problems of a scenario with narrow contributions."""
    bits = bits_of(scenario)
    if bits is None or not trust("switchml"):
        return
    own, lanes = keys_of(scenario), scenario.switch.lanes
    if own.bits is not None and own.bits > bits:
        what = f"an integer of {own.bits} bits does not fit in the {bits} of `wire_bits`"
        yield "switchml.bits", what, f"at most {bits}, or auto"
    if trust("switch.lanes") and lanes is not None and lanes % 2:
        what = f"{lanes} is odd, but contributions of {bits} bits have half as many bytes as sums"
        yield "switch.lanes", what, "an even number"
    if trust("topology", "jobs"):
        yield from _workers(scenario, bits)


def _workers(scenario: Scenario, bits: int) -> Iterator[Finding]:
    """Yields a problem for each job whose sums might not fit into twice the bits."""
    try:
        graph = bare(scenario.topology)
    except ValueError:
        return  # which is reported where the topology is checked
    most = 2**bits + 1
    for job in stated(scenario):
        workers = len(hosts_of(job, graph))
        if workers > most:
            what = f"the sum of {workers} workers does not fit in {2 * bits} bits"
            yield "switchml.wire_bits", what, f"at most {most} workers, or more bits"


def sent(tree: Tree, full_bytes: int, sizes: Sizes, lanes: int, chunks: int) -> Mapping[str, int]:
    """Returns the bytes of a round by direction. full_bytes: the bytes of a direction that carries
    sums."""
    saved = chunks * (sizes.full(lanes) - narrow_frame_bytes(sizes, lanes))
    found = {}
    for switch, branch in tree.branches.items():
        for _, node in branch.children:
            is_worker = node not in tree.branches
            found[f"{node}->{switch}"] = full_bytes - saved if is_worker else full_bytes
            found[f"{switch}->{node}"] = full_bytes
    return found


def widths(tree: Tree, sizes: Sizes, lanes: int, bits: int) -> Mapping[str, Widths]:
    """Returns the bytes of a value and of a frame in each direction of the tree."""
    up = Widths(bits / 8, narrow_frame_bytes(sizes, lanes))
    others = Widths(2 * bits / 8, sizes.full(lanes))
    found = {}
    for switch, branch in tree.branches.items():
        for _, node in branch.children:
            found[f"{node}->{switch}"] = others if node in tree.branches else up
            found[f"{switch}->{node}"] = others
    return found


def narrow_frame_bytes(sizes: Sizes, lanes: int) -> int:
    """Returns the length of the Ethernet frame, without its checksum, of a contribution."""
    return sizes.full(lanes) - wire.datagram_bytes(lanes) + wire.narrow_datagram_bytes(lanes)


def answers(sizes: Sizes, lanes: int, packets: int, size: int) -> ByteRange:
    """Returns how many bytes a switch sent in answer to repeated packets, given their number and
    bytes. The answer to a worker's contribution is longer than the contribution; the answer to an
    opening is as long as the opening."""
    longer = sizes.full(lanes) - narrow_frame_bytes(sizes, lanes)
    return ByteRange(size, size + packets * longer)
