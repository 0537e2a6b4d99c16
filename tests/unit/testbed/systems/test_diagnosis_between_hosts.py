"""Who is missing where hosts add: told from what workers and servers wait for, written by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agglab.hosts.agent_core import WAITING_MAX
from agglab.systems.ring.system import Ring
from agglab.testbed.base.traffic_counters import (
    DirectionStatistics,
    NetworkStatistics,
    SwitchStatistics,
)
from agglab.testbed.scenario import resolve
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.systems.base import ActiveJob, MissingChunks
from agglab.testbed.systems.servers import diagnose
from agglab.testbed.systems.withheld import REFUSED, Merging, blame_switches

DECLARED = resolve(Scenario()).jobs[0]
HOSTS = DECLARED.hosts


def job(servers: tuple[str, ...] = (), members: tuple[int, ...] = (0, 1, 2, 3)) -> ActiveJob:
    return ActiveJob(replace(DECLARED, servers=servers), 0, members)


def each_waits(*chunks: int, but: str = "", servers: int = 1) -> dict[str, Any]:
    return {h: [[chunk, chunk % servers] for chunk in chunks] for h in HOSTS if h != but}


# Parameter servers: [chunk, server]; [chunk, rank, ...].


def test_a_worker_whose_values_one_server_lacks_is_named() -> None:
    found = diagnose(job(("p1",)), each_waits(7, 8), {"p1": [[7, 2], [8, 2]]})
    assert list(found) == ["h3", "p1"] and found["h3"] == MissingChunks({7, 8})


def test_a_server_that_lacks_everybodys_values_is_named() -> None:
    """It had the values of some workers, and has served a chunk whose result nobody has heard."""
    lists = {"p1": [[8, 1, 2, 3], [9, 0, 2, 3]], "p2": []}
    waiting = each_waits(6, 8, but="h2", servers=2) | {"h1": [[10, 0]], "h2": [[8, 0], [6, 0]]}
    found = diagnose(job(("p1", "p2")), waiting, lists)
    assert next(iter(found)) == "p1" and found["p1"] == MissingChunks({6, 8, 10})


def test_who_waits_for_what_another_owes_is_no_evidence() -> None:
    found = diagnose(job(("p1",)), each_waits(7), {"p1": [[7, 1]]})
    assert set(found) == {"h2", "p1"} and "h1" not in found


def test_a_host_that_is_cut_off_counts_as_worker_and_as_server() -> None:
    """Each host serves a chunk: h2 hears nobody, and nobody hears h2."""
    waiting = each_waits(1, servers=4) | {"h2": [[0, 0], [2, 2], [3, 3]]}
    lists = {"h1": [[0, 1]], "h2": [[1, 0, 2, 3]], "h3": [[2, 1]], "h4": []}
    found = diagnose(job(HOSTS), waiting, lists)
    assert next(iter(found)) == "h2"
    assert found["h2"] == MissingChunks({0, 2}, {3})


def test_the_dead_owe_whatever_servers_lack_of_them() -> None:
    found = diagnose(job(("p1",)), each_waits(7, but="h4"), {"p1": [[7, 3], [9, 3]]})
    assert next(iter(found)) == "h4" and found["h4"] == MissingChunks({7, 9})


def test_ranks_are_those_of_the_members_that_are_left() -> None:
    found = diagnose(job(("p1",), (0, 2, 3)), {"h1": [[7, 0]], "h3": [[7, 0]]}, {"p1": [[7, 2]]})
    assert next(iter(found)) == "h4"


@pytest.mark.parametrize(("length", "told"), [(WAITING_MAX - 1, ["h2", "p1"]), (WAITING_MAX, [])])
def test_a_full_list_may_leave_out_what_is_asked_for(length: int, told: list[str]) -> None:
    listed = [[100 + n, 0] for n in range(length)]
    found = diagnose(job(("p1",)), {h: [] for h in HOSTS} | {"h2": [[5, 0]]}, {"p1": listed})
    assert list(found) == told


# Rings: [rank, first, last] of packets before, then of acknowledgements behind.


class Switch:
    """A switch s1 between h1 and h2, by its counts. later: packets that come and
    go between two readings. counters: what its program counts, by the counter's name."""

    def __init__(
        self,
        received: int,
        sent: int,
        later: int = 0,
        counters: dict[str, int] | None = None,
        ring_drops: int = 0,
        **lost: int,
    ) -> None:
        self._received, self._sent, self._later, self._lost = received, sent, later, lost
        self._ring_drops = ring_drops
        self._counters = dict.fromkeys(REFUSED, 0) if counters is None else counters

    def counters(self, switch: str, counter: str) -> dict[int, tuple[int, int]] | None:
        count = self._counters.get(counter)
        return None if count is None else {0: (count, 0)}

    def statistics(self) -> NetworkStatistics:
        up = DirectionStatistics("h1-s1", "h1->s1", 900, 0, self._received, 0, 0)
        down = DirectionStatistics("h2-s1", "s1->h2", self._sent, 0, 900, 0, 0)
        self._sent += self._later
        self._received += self._later
        switch = SwitchStatistics("s1", 0, self._ring_drops)
        return NetworkStatistics((replace(up, **self._lost), down), (switch,), {})


def first_named(switch: Switch) -> str:
    return next(iter(blame_switches(switch, {"h2": MissingChunks({7})})))


def test_a_switch_that_sends_less_than_it_received_is_named() -> None:
    found = blame_switches(
        Switch(90, 70), {"h2": MissingChunks({7}, {8}), "h3": MissingChunks({9})}
    )
    assert list(found) == ["s1", "h2", "h3"] and found["s1"].is_proven
    assert found["s1"].of("job1") == (
        "did not send on packets of chunks 7-8 of job1; "
        "it received 90 packets, and sent or refused 70"
    )


def test_without_anything_missing_nobody_is_named() -> None:
    assert not blame_switches(Switch(90, 70), {})


@pytest.mark.parametrize(
    "honest",
    [
        Switch(90, 90),
        Switch(90, 91),
        Switch(90, 80, later=10),
        Switch(90, 89, dropped_injected=1),
        Switch(90, 89, lost_link_down=1),
        Switch(90, 89, held=1),
        Switch(90, 89, ring_drops=1),
        Switch(90, 70, counters=dict.fromkeys(REFUSED, 0) | {"forged": 12, "unroutable": 8}),
        Switch(90, 70, counters={}),
    ],
)
def test_a_switch_is_not_blamed_for_what_it_may_not_send_on(honest: Switch) -> None:
    assert first_named(honest) == "h2"


@pytest.mark.parametrize(
    "guilty",
    [
        Switch(90, 80, later=9),
        Switch(90, 70, counters=dict.fromkeys(REFUSED, 0) | {"forged": 19}),
        Switch(91, 89, dropped_injected=1),
    ],
)
def test_a_single_packet_that_was_withheld_is_noticed(guilty: Switch) -> None:
    assert first_named(guilty) == "s1"


MERGING = Merging(kept=("new",), released=("complete",), copied="copied", copies={"s1": 4})


@pytest.mark.parametrize(
    ("received", "sent", "counts"),
    [
        (100, 40, {"new": 80, "complete": 20, "copied": 0}),
        (10, 40, {"new": 0, "complete": 0, "copied": 10}),
        (110, 80, {"new": 80, "complete": 20, "copied": 10}),
    ],
)
def test_what_a_switch_sums_and_copies_is_taken_into_account(
    received: int, sent: int, counts: dict[str, int]
) -> None:
    def blamed(sent: int, **more: int) -> bool:
        counters = dict.fromkeys(REFUSED, 0) | counts | more
        switch = Switch(received, sent, counters=counters)
        return "s1" in blame_switches(switch, {"h2": MissingChunks({7})}, MERGING)

    assert not blamed(sent) and blamed(sent - 1)
    assert not blamed(sent - 1, new=counts["new"] + 1)


def test_a_switch_that_does_not_count_what_it_sums_is_not_blamed() -> None:
    switch = Switch(90, 70, counters=dict.fromkeys(REFUSED, 0))
    assert list(blame_switches(switch, {"h2": MissingChunks({7})}, MERGING)) == ["h2"]


def ring(waiting: dict[str, Any]) -> list[str]:
    graph: Any = None
    return list(Ring().diagnose(Switch(90, 90), graph, job(), waiting, {}))


def test_a_host_that_hears_nothing_and_is_not_heard_is_named() -> None:
    """All wait for data from the worker before them; two have sent what was not acknowledged."""
    waiting = {
        "h1": [[3, 9, 12], [1, 10, 14]],
        "h2": [[0, 10, 14], [2, 10, 13]],
        "h3": [[1, 10, 13]],
        "h4": [[2, 10, 13]],
    }
    assert ring(waiting)[0] == "h2"


def test_a_worker_that_says_nothing_is_named() -> None:
    waiting = {"h1": [[3, 9, 12], [1, 10, 14]], "h3": [[1, 10, 13]], "h4": [[2, 10, 13]]}
    assert ring(waiting)[0] == "h2"
