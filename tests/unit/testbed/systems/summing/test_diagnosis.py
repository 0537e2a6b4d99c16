"""Who is missing: told from registers written by hand."""

import pytest

from agglab.testbed.base.traffic_counters import DirectionStatistics, NetworkStatistics
from agglab.testbed.systems.base import MissingChunks, spans
from agglab.testbed.systems.summing.diagnosis import diagnose
from agglab.testbed.systems.summing.plan import PlacedJob, plan
from agglab.topologies import fabrics, rack

FIRST_SLOT = 8


class Registers:
    """contributions: switch -> (slot, tag) -> bitmap. final_at: the switches whose sums are final.
    lost: packets that links have lost."""

    def __init__(
        self,
        contributions: dict[str, dict[tuple[int, int], int]],
        final_at: tuple[str, ...] = (),
        **lost: int,
    ) -> None:
        self._lost, self._final_at = lost, final_at
        self._cells = {
            switch: {(FIRST_SLOT + s) << 1 | t & 1: (t, b) for (s, t), b in cells.items()}
            for switch, cells in contributions.items()
        }

    def registers(self, switch: str, register: str, indices: list[int]) -> list[int]:
        if register == "finals":
            return [int(switch in self._final_at)] * len(indices)
        which = {"tags": 0, "contributors": 1}[register]
        return [self._cells.get(switch, {}).get(index, (0, 0))[which] for index in indices]

    def statistics(self) -> NetworkStatistics:
        lost = {name.replace("_", "->"): count for name, count in self._lost.items()}
        directions = [
            DirectionStatistics("", name, 0, 0, 0, count, 0) for name, count in lost.items()
        ]
        return NetworkStatistics(tuple(directions), (), {})


def told(found: dict[str, MissingChunks]) -> dict[str, str]:
    return {name: str(missing) for name, missing in found.items()}


def tree(graph):
    return plan(graph, [PlacedJob(1, tuple(h.name for h in graph.hosts), FIRST_SLOT, 4)]).trees[1]


def test_who_never_sent_is_told_from_who_never_heard() -> None:
    """Slot 0: all there but h3. Slot 1: all there, and h2 still waits. Slot 2: an older tag."""
    source = Registers({"s1": {(0, 5): 0b011, (1, 6): 0b111, (2, 3): 0b111}}, h1_s1=9, h2_s1=9)
    waiting = {"h1": [(10, 0, 5, 1), (12, 2, 5, 1)], "h2": [(10, 0, 5), (11, 1, 6), (12, 2, 5)]}
    found = diagnose(source, tree(rack(3)), FIRST_SLOT, waiting)
    assert told(found) == {
        "h3": "never sent chunks 10, 12",
        "h2": "never delivered chunk 12 and never heard the sum of chunk 11",
        "h1": "never delivered chunk 12",
    }
    assert list(found) == ["h3", "h2", "h1"]
    assert found["h3"].slot == "slot 0 of s1 holds 2 of 3 contributions to chunk 10 (tag 5, not h3)"


def test_who_waits_for_the_chunk_before_owes_nothing_of_the_next() -> None:
    """In slot 0, h2 waits for chunk 10, whose sum the switch holds; h1 has it and waits for 14."""
    source = Registers({"s1": {(0, 5): 0b11, (0, 6): 0b01}})
    waiting = {"h1": [(14, 0, 6, 3)], "h2": [(10, 0, 5, 3)]}
    found = diagnose(source, tree(rack(2)), FIRST_SLOT, waiting)
    assert told(found) == {"s1": "holds the sum and gives no valid answer for chunk 10"}
    assert found["s1"].of("job1") == (
        "holds the sum and gives no valid answer for chunk 10 of job1; slot 0 of s1 holds 2 of 2 "
        "contributions to chunk 10 (tag 5), h2 asked for the sum 3 times and got no answer; "
        "1 chunk waits behind it"
    )


@pytest.mark.parametrize(
    ("lost", "wanted"),
    [
        ({}, {"s1": "holds the sum and gives no valid answer for chunk 10"}),
        ({"h2_s1": 2}, {"s1": "holds the sum and gives no valid answer for chunk 10"}),
        ({"h2_s1": 2, "s1_h2": 1}, {"h2": "never heard the sum of chunk 10"}),
        ({"s1_h2": 3}, {"h2": "never heard the sum of chunk 10"}),
    ],
)
def test_a_switch_is_blamed_only_if_links_lost_less_than_was_asked(lost, wanted) -> None:
    source = Registers({"s1": {(0, 5): 0b11}}, **lost)
    found = diagnose(source, tree(rack(2)), FIRST_SLOT, {"h1": [], "h2": [(10, 0, 5, 3)]})
    assert told(found) == wanted


def test_a_contribution_that_came_and_is_not_there_is_the_switchs_fault() -> None:
    source = Registers({"s1": {(0, 5): 0b01}}, h2_s1=2)
    waiting = {"h1": [(10, 0, 5, 9)], "h2": [(10, 0, 5, 2)]}
    found = diagnose(source, tree(rack(2)), FIRST_SLOT, waiting)
    assert told(found) == {"s1": "received and does not hold chunk 10"}


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
    assert told(found) == {"h4": "never sent chunk 0", "s1": "never delivered chunk 1"}


@pytest.mark.parametrize(
    ("host", "wanted"),
    [
        ("h1", {"s3": "holds the sum and gives no valid answer for chunk 0"}),
        ("h2", {"h2": "never heard the sum of chunk 0"}),
    ],
)
def test_a_switch_asks_the_root_only_for_its_first_child(host: str, wanted) -> None:
    source = Registers({"s1": {(0, 1): 0b11}, "s2": {(0, 1): 0b11}, "s3": {(0, 1): 0b11}})
    graph = tree(fabrics.two_tier(2, 2))
    assert told(diagnose(source, graph, FIRST_SLOT, {host: [(0, 0, 1, 4)]})) == wanted


@pytest.mark.parametrize(
    ("final_at", "blamed", "end"),
    [((), "s3", "h1 asked for the sum 4 times"), (("s1",), "s1", " and the final sum, h1 asked")],
)
def test_the_slot_says_whether_a_switch_has_the_final_sum(final_at, blamed, end: str) -> None:
    """The sum ended at s1, or the root's answers never came there."""
    bits = {switch: {(0, 1): 0b11} for switch in ("s1", "s2", "s3")}
    graph = tree(fabrics.two_tier(2, 2))
    found = diagnose(Registers(bits, final_at), graph, FIRST_SLOT, {"h1": [(0, 0, 1, 4)]})
    assert list(found) == [blamed] and end in found[blamed].slot
    assert ("and the final sum" in found[blamed].slot) == bool(final_at)


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
