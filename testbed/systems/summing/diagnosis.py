"""Finds who is missing in a round that does not end, from what workers wait for and what switches
hold.

A worker waits for the result of a chunk in a slot with a tag. At each switch of the job's tree, the
cell of that slot and set shows whose contributions have arrived. A missing contribution was never
sent, or never arrived. If none is missing at the root, the waiting workers never received the
result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from agglab.testbed.plan import Branch, Tree
from agglab.testbed.systems.base import MissingChunks, Registers

Waiting = tuple[int, ...]
"""A chunk, its slot and its tag. If slots have more than two sets, their number follows; a switch
then keeps a result until it knows (`informed`) that all workers have it."""


def diagnose(
    source: Registers, tree: Tree, first_slot: int, waiting: Mapping[str, Iterable[Waiting]]
) -> dict[str, MissingChunks]:
    """Returns what each host or switch owes; the one that owes most comes first. waiting: what the
    workers on each host wait for."""
    found: dict[str, MissingChunks] = {}
    hosts: dict[Waiting, list[str]] = {}
    for host, entries in waiting.items():
        for entry in entries:
            hosts.setdefault(entry, []).append(host)
    present = _present(source, tree, first_slot, list(hosts))
    if present is None:
        return {}
    for entry, waiters in hosts.items():
        missing = list(_missing(tree, tree.branches[tree.root], entry, present))
        for name in missing:
            found.setdefault(name, MissingChunks()).never_sent.add(entry[0])
        if not missing:
            for host in waiters:
                found.setdefault(host, MissingChunks()).never_heard.add(entry[0])
    return dict(sorted(found.items(), key=lambda item: -item[1].count))


Present = Mapping[tuple[str, Waiting], int]
"""The children whose contributions have arrived, as bits, by (switch, what is waited for)."""


def _present(
    source: Registers, tree: Tree, first_slot: int, entries: Sequence[Waiting]
) -> Present | None:
    cells = [_cell(first_slot, entry, entry[2]) for entry in entries]
    present: dict[tuple[str, Waiting], int] = {}
    for switch in tree.branches:
        tags = source.registers(switch, "tags", cells)
        bitmaps = source.registers(switch, "contributors", cells)
        if tags is None or bitmaps is None:
            return None
        for entry, tag, bitmap in zip(entries, tags, bitmaps, strict=True):
            present[switch, entry] = bitmap if tag == entry[2] else 0
            if len(entry) > 3 and tag == (entry[2] - entry[3]) % 2**32:
                present[switch, entry] = _informed(source, switch, first_slot, entry)
    return present


def _cell(first_slot: int, entry: Waiting, tag: int) -> int:
    sets = entry[3] if len(entry) > 3 else 2
    return (first_slot + entry[1]) * sets + tag % sets


def _informed(source: Registers, switch: str, first_slot: int, entry: Waiting) -> int:
    """Returns who is known to have the result that the cell of an awaited packet still holds."""
    earlier = [(entry[2] - distance) % 2**32 for distance in range(1, entry[3] + 1)]
    cells = [_cell(first_slot, entry, tag) for tag in earlier]
    tags = source.registers(switch, "tags", cells) or []
    informed = source.registers(switch, "informed", cells) or []
    found = 0
    for wanted, tag, workers in zip(earlier, tags, informed, strict=True):
        found |= workers if tag == wanted else 0
    return found


def _missing(tree: Tree, branch: Branch, entry: Waiting, present: Present) -> Iterator[str]:
    """Yields the lowest nodes of the tree whose contribution is missing at the switch above
    them."""
    bitmap = present[branch.switch, entry]
    for bit, (_, node) in enumerate(branch.children):
        if bitmap >> bit & 1:
            continue
        below = tree.branches.get(node)
        lower = list(_missing(tree, below, entry, present)) if below else []
        yield from lower or [node]
