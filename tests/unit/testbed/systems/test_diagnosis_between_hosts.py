"""Who is missing where hosts add: told from what workers and servers wait for, written by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agglab.hosts.agent_core import WAITING_MAX
from agglab.testbed.scenario import resolve
from agglab.testbed.scenario.schema import Scenario
from agglab.testbed.systems.base import ActiveJob, MissingChunks
from agglab.testbed.systems.ring import Ring
from agglab.testbed.systems.servers import diagnose

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


def ring(waiting: dict[str, Any]) -> list[str]:
    graph: Any = None
    return list(Ring().diagnose(graph, graph, job(), waiting, {}))


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
