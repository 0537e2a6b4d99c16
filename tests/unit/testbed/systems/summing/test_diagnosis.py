"""Who is missing: told from registers written by hand."""

import pytest

from agglab.testbed.systems.base import MissingChunks, spans
from agglab.testbed.systems.summing.diagnosis import diagnose
from agglab.testbed.systems.summing.plan import PlacedJob, plan
from agglab.topologies import fabrics, rack

FIRST_SLOT = 8


class Registers:
    """contributions: switch -> (slot, tag) -> bitmap."""

    def __init__(self, contributions: dict[str, dict[tuple[int, int], int]]) -> None:
        self._cells = {
            switch: {(FIRST_SLOT + s) << 1 | t & 1: (t, b) for (s, t), b in cells.items()}
            for switch, cells in contributions.items()
        }

    def registers(self, switch: str, register: str, indices: list[int]) -> list[int]:
        which = {"tags": 0, "contributors": 1}[register]
        return [self._cells.get(switch, {}).get(index, (0, 0))[which] for index in indices]


def tree(graph):
    return plan(graph, [PlacedJob(1, tuple(h.name for h in graph.hosts), FIRST_SLOT, 4)]).trees[1]


def test_who_never_sent_is_told_from_who_never_heard() -> None:
    """Slot 0: all there but h3. Slot 1: all there, and h2 still waits. Slot 2: an older tag."""
    source = Registers({"s1": {(0, 5): 0b011, (1, 6): 0b111, (2, 3): 0b111}})
    waiting = {"h1": [(10, 0, 5), (12, 2, 5)], "h2": [(10, 0, 5), (11, 1, 6), (12, 2, 5)]}
    found = diagnose(source, tree(rack(3)), FIRST_SLOT, waiting)
    assert found == {
        "h3": MissingChunks({10, 12}),
        "h1": MissingChunks({12}),
        "h2": MissingChunks({12}, {11}),
    }
    assert list(found) == ["h3", "h2", "h1"]
    assert str(found["h2"]) == "never sent chunk 12 and never heard the sum of chunk 11"


def test_in_a_tree_the_lowest_that_is_missing_is_named() -> None:
    """s1: h1 and h2, s2: h3 and h4, root s3. h4 is missing for chunk 0; for chunk 1 s1 has both of
    its own, and its partial sum never arrived at the root."""
    source = Registers(
        {
            "s1": {(0, 1): 0b11, (1, 1): 0b11},
            "s2": {(0, 1): 0b01, (1, 1): 0b11},
            "s3": {(0, 1): 0b01, (1, 1): 0b10},
        }
    )
    waiting = {"h1": [(0, 0, 1), (1, 1, 1)], "h3": [(1, 1, 1)]}
    found = diagnose(source, tree(fabrics.two_tier(2, 2)), FIRST_SLOT, waiting)
    assert found == {"h4": MissingChunks({0}), "s1": MissingChunks({1})}


def test_without_registers_nothing_is_known() -> None:
    class Silent:
        def registers(self, switch: str, register: str, indices: list[int]) -> None:
            return None

    assert diagnose(Silent(), tree(rack(2)), 0, {"h1": [(0, 0, 1)]}) == {}


@pytest.mark.parametrize(
    ("chunks", "text"),
    [
        ([7], "chunk 7"),
        ([9, 7, 8], "chunks 7-9"),
        ([1, 3, 4, 9], "chunks 1, 3-4, 9"),
        (range(0, 40, 2), "chunks 0, 2, 4, 6, 8, 10, 12, 14 and 12 more ranges"),
    ],
)
def test_spans(chunks, text: str) -> None:
    assert spans(chunks) == text
