"""Draws the slots of a switch from the registers of its program: who has contributed, the tag, the
sum, and who is waited for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agglab.testbed.cli.shell.refused import Refused
from agglab.testbed.cli.shell.session import Session
from agglab.testbed.schema.jobs import Job
from agglab.testbed.systems.summing.trees import tree_of

BITMAPS = ("contributors", "seen")
"""The names of registers with a bit for each worker, or switch below, that is in a sum."""
TAGS = ("tags", "rounds", "groups")
"""The names of registers that say which chunk a cell sums."""
SUM = "sum"
"""How the names of registers with sums begin."""
CELLS_MAX, SHOWN_MAX, LANES_SHOWN, LANE_BITS = 8192, 32, 4, 32


@dataclass(frozen=True)
class Layout:
    """The registers with the cells of slots, by full name. sets: how many cells a slot has."""

    bitmap: str
    tag: str | None
    sums: tuple[tuple[str, int], ...]
    size: int
    sets: int


def slot_lines(session: Session, switch: str) -> Iterator[str]:
    """Yields a line for each cell of a switch that somebody has contributed to. Raises Refused if
    its program has no bitmaps."""
    layout = _layout(session, switch)
    cells = list(range(min(layout.size, CELLS_MAX)))
    bitmaps = session.registers(switch, layout.bitmap, cells)
    used = [cell for cell in cells if bitmaps[cell]]
    if not used:
        yield f"{switch}: no slot has been used ({layout.size // layout.sets} slots)"
        return
    tags = session.registers(switch, layout.tag, used) if layout.tag else None
    sums = _sums(session, switch, layout, used[:SHOWN_MAX])
    for place, cell in enumerate(used[:SHOWN_MAX]):
        slot, own_set = divmod(cell, layout.sets)
        name = f"slot {slot}" + (f" set {own_set}" if layout.sets > 1 else "")
        tag = f"  tag {tags[place]}" if tags else ""
        children = _children(session, switch, slot)
        yield f"{switch} {name}{tag}  {_drawn(bitmaps[cell], children)}  sum {sums[place]}"
    if len(used) > SHOWN_MAX:
        yield f"{switch}: and {len(used) - SHOWN_MAX} more"


def _layout(session: Session, switch: str) -> Layout:
    arrays = session.prepared.programs[switch].description["register_arrays"]
    by_name = {each["name"].rpartition(".")[2]: each for each in arrays}
    bitmap = next((by_name[name] for name in BITMAPS if name in by_name), None)
    if bitmap is None:
        raise Refused(
            f"the program of {switch} has no register called {' or '.join(BITMAPS)}, from which"
            " slots are drawn: use `registers`"
        )
    size = bitmap["size"]
    alike = {name: each for name, each in by_name.items() if each["size"] == size}
    tag = next((alike[name]["name"] for name in TAGS if name in alike), None)
    sums = [(e["name"], e["bitwidth"]) for name, e in alike.items() if name.startswith(SUM)]
    return Layout(bitmap["name"], tag, tuple(sums), size, _sets(session, size))


def _sets(session: Session, size: int) -> int:
    """Returns how many cells a slot has, which take turns."""
    slots = session.resolved.scenario.switch.slots
    return size // slots if slots and size % slots == 0 else 1


def _sums(session: Session, switch: str, layout: Layout, cells: list[int]) -> list[str]:
    """Returns the first lanes of the sums in these cells."""
    lanes: list[list[int]] = [[] for _ in cells]
    for name, bits in layout.sums:
        for own, value in zip(lanes, session.registers(switch, name, cells), strict=True):
            shifts = range(max(bits - LANE_BITS, 0), -1, -LANE_BITS)
            own += [value >> shift & (1 << LANE_BITS) - 1 for shift in shifts]
        if len(lanes[0]) > LANES_SHOWN:
            break
    return [_lanes(own) for own in lanes]


def _lanes(values: Sequence[int]) -> str:
    shown = " ".join(map(str, values[:LANES_SHOWN]))
    return f"{shown} ..." if len(values) > LANES_SHOWN else shown


def _children(session: Session, switch: str, slot: int) -> Sequence[str]:
    """Returns who has which bit of a slot's bitmap: the workers, or the switches, below this
    switch in the job that has the slot; empty if that is not known."""
    job = _job_of(session, slot)
    if job is None:
        return ()
    try:
        tree = tree_of(session.resolved.graph, session.conductor.active(job))
    except ValueError:  # the system has no such trees
        return ()
    branch = tree.branches.get(switch)
    return [node for _, node in branch.children] if branch else ()


def _job_of(session: Session, slot: int) -> Job | None:
    """Returns the job that has a slot for the whole run; None if jobs share the slots."""
    jobs = session.resolved.jobs
    if len(jobs) == 1:
        return jobs[0]
    having = (job for job in jobs if job.first_slot <= slot < job.first_slot + job.slots)
    is_shared = session.resolved.scenario.switch.partition == "dynamic"
    return None if is_shared else next(having, None)


def _drawn(bitmap: int, children: Sequence[str]) -> str:
    """Returns a bitmap as a picture: `[h1 -- h3] waits for h2`. Without names there are the numbers
    of the bits, and nothing is said about those that are missing."""
    if not children:
        bits = [str(bit) for bit in range(bitmap.bit_length()) if bitmap >> bit & 1]
        return f"[bits {' '.join(bits)}]"
    given = [bool(bitmap >> bit & 1) for bit in range(len(children))]
    shown = [name if has else "-" * len(name) for name, has in zip(children, given, strict=True)]
    missing = [name for name, has in zip(children, given, strict=True) if not has]
    state = f"waits for {', '.join(missing)}" if missing else "complete"
    return f"[{' '.join(shown)}] {state}"
