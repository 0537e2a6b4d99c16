"""The sweep of all systems over losses: what it runs, what it reports and what it must not find."""

from __future__ import annotations

from pathlib import Path

import pytest

from agglab.testbed import systems
from agglab.testbed.base.exit_codes import FAILED, INVALID, PASSED
from agglab.verification.__main__ import main
from agglab.verification.sweep.points import LOSSES, SIZES, TOPOLOGIES, Point, points
from agglab.verification.sweep.trial import Subject

RACK, RACKS = TOPOLOGIES["rack"], TOPOLOGIES["two_tier"]


def kinds(seeds: range, *settings: str) -> list[str]:
    """The kinds of everything that runs with these settings and seeds report."""
    point = Point("", "", "", "", "", ("backend=virtual", "links.rate=100mbit", *settings))
    return [red.kind for red in Subject(point).outcomes(seeds).reds]


def test_every_system_in_virtual_time_is_swept() -> None:
    names = systems.in_virtual_time(systems.built_in())
    swept = list(points(names, list(TOPOLOGIES), list(SIZES), LOSSES, ()))
    for name in names:
        own = [point for point in swept if f"system={name}" in point.settings]
        assert {(p.topology, p.size, p.loss) for p in own} == {
            (t, s, loss) for t in TOPOLOGIES for s in SIZES for loss in LOSSES
        }


@pytest.mark.long(but=["topology={kind: rack, workers: 4, servers: 4}"])
@pytest.mark.parametrize("topology", [RACK, RACKS])
def test_acknowledgements_behind_a_window_of_data_are_not_taken_for_lost(topology: str) -> None:
    """Seeds 1 to 3 reported up to 28 packets that were sent again for no reason."""
    sizes = ("workload.elements=120_000", "workload.rounds=4", "links.loss=0.05%")
    assert kinds(range(1, 4), "system=ring", topology, *sizes) == []
    assert kinds(range(1, 3), "system=ring", topology, *sizes[:2], "links.loss=0.1%") == []


@pytest.mark.parametrize("seed", [1, 2, 6])
def test_an_answer_of_a_server_to_a_request_for_the_aggregator_may_be_lost(seed: int) -> None:
    (point,) = points(["libra"], ["rack"], ["small"], ["0.1%"], ["workload.rounds=12"])
    reds = Subject(point).outcomes(range(seed, seed + 1)).reds
    assert "sent-again" not in [red.kind for red in reds]


@pytest.mark.long(but=["libra-rack-small-0.2%-4"])
@pytest.mark.parametrize(
    ("system", "topology", "size", "loss", "seed"),
    [
        # Repairs of short openings made the round trip seem shorter than that of values.
        ("omnireduce", "rack", "large", "0.2%", 6),
        # Overtaken answers came ever later, each one just after its packet had been sent again.
        ("omnireduce", "two_tier", "large", "0.05%", 15),
        # A request to a server on the worker's own host crosses the switch.
        ("libra", "rack", "small", "0.2%", 4),
        ("libra", "rack", "large", "0.05%", 1),
        # Three workers waited for one that waited for the answer that all must have first.
        ("netrpc", "rack", "small", "0.5%", 6),
        # Where workers wait for each other's critical sections, no link bounds the time.
        ("netrpc", "rack", "small", "0%", 20),
        # A worker's last request came after the run, and nobody answered it.
        ("mlfabric", "rack", "small", "0.2%", 6),
    ],
)
def test_correct_systems_are_not_reported(
    system: str, topology: str, size: str, loss: str, seed: int
) -> None:
    for point in points([system], [topology], [size], [loss], ()):
        assert Subject(point).outcomes(range(seed, seed + 1)).reds == ()


@pytest.mark.long(but=["atp"])
@pytest.mark.parametrize("system", ["atp", "esa", "ps", "ring", "switchml"])
def test_a_round_of_few_packets_is_not_slow_because_of_its_round_trips(system: str) -> None:
    for point in points([system], list(TOPOLOGIES), ["small"], ["0%"], ()):
        assert Subject(point).outcomes(range(1, 2)).reds == ()


WRONG_TIMER = ("--set", "links.delay=500us", "--set", "workload.first_timeout=200us")
ONE_POINT = ("--system", "switchml", "--topology", "rack", "--size", "small", "--loss", "0%")


def test_what_is_wrong_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """A first timeout that is shorter than a round trip makes every worker ask again."""
    assert main(["sweep", *ONE_POINT, "--seeds", "2", *WRONG_TIMER]) == FAILED
    out = capsys.readouterr().out
    assert out.startswith("sent-again: 2 runs of switchml, allreduce\n  rack, small, 0% loss, seed")
    assert out.endswith("2 runs of 1 points: 2 red\n")


def test_a_sweep_goes_on_from_its_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = ("--seeds", "1", "--record", str(tmp_path / "record.jsonl"))
    assert main(["sweep", *ONE_POINT, *record]) == PASSED
    assert main(["sweep", *ONE_POINT, "0.5%", *record]) == PASSED
    said = capsys.readouterr()
    assert said.err.count("1 of 1 points") == 2
    assert said.out.endswith("2 runs of 2 points: 0 red\n")


def test_a_wrong_setting_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", *ONE_POINT, "--seeds", "1", "--set", "links.los=1%"]) == INVALID
    assert "links.los" in capsys.readouterr().err
