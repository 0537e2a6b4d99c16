"""Scenarios end to end: a real network, real packets, sums that are right."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from own_program import AGGREGATION, EGRESS, own_program

from agglab.testbed.judge.fidelity import OF_THE_MACHINE
from agglab.testbed.judge.verdicts import CODES, UNDECIDED, verdict_of
from agglab.testbed.real import drop_numbers
from agglab.testbed.results.side_by_side import runs_of
from agglab.testbed.scenario import find, load, names

pytestmark = pytest.mark.root

TIME = ("link_bound_ratio", "allreduce.time_s.median", "step_s.median", "fidelity.verdict")
ABOUT_TIME = re.compile(rf"expected (growth\.|ratio\.)?(\w+\.)*({'|'.join(TIME)}) ")
SMALL = """
name: small
topology: {workers: 3}
links: {rate: 100mbit}
switch: {lanes: 64, slots: 16}
workload: {elements: 40_000, rounds: 2}
"""


AT_FULL_SIZE = ("thousand-workers", "ten-thousand-workers")
"""Scenarios of virtual time that tests/unit/testbed/judge/test_findings.py runs with smaller
networks. It runs the others of virtual time as they are."""


SUMS_NOTHING = ("train-sharded",)
"""Scenarios all of whose collectives go by Gloo, so that no sum is judged."""


def of_this_part() -> list[str]:
    """The shipped scenarios that run on real links, and those AT_FULL_SIZE."""
    texts = {name: yaml.safe_load(find(name).read_text()) for name in names()}
    is_virtual = {name: text.get("backend") == "virtual" for name, text in texts.items()}
    return [name for name in names() if not is_virtual[name] or name in AT_FULL_SIZE]


def expects_time(name: str) -> bool:
    """Whether a shipped scenario expects anything of times that others on the machine change."""
    text = yaml.safe_load(find(name).read_text())
    is_about_time = any(ABOUT_TIME.match(f"expected {key} ") for key in text["expect"])
    return is_about_time and text.get("backend") != "virtual"


SHIPPED = [
    pytest.param(name, marks=[pytest.mark.alone] if expects_time(name) else [])
    for name in of_this_part()
]


def missed(metrics: dict) -> list[str]:
    """Failed expectations; those about time only if the machine is not to blame by its verdict.
    What cannot be judged on a busy machine has not failed."""
    if verdict_of(metrics) == UNDECIDED:
        return []
    reasons = metrics["reason"].split("; ") if metrics["reason"] else []
    runs = [run.metrics for run in runs_of(metrics)]
    if all(run["fidelity"]["verdict"] not in OF_THE_MACHINE for run in runs):
        return reasons
    return [text for text in reasons if not ABOUT_TIME.search(text)]


@pytest.mark.every
@pytest.mark.long(but=["attack", "parameter-server"])
@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_scenarios_hold(scenario, name: str) -> None:
    ended = scenario.run(name)
    metrics = ended.metrics
    assert metrics["exact"] is (None if name in SUMS_NOTHING else True), ended.err
    assert missed(metrics) == []
    assert ended.code == CODES[verdict_of(metrics)]
    assert ended.err == ""
    assert verdict_of(metrics).upper() in ended.out
    assert str(ended.folder) in ended.out


@pytest.mark.long(but=["sparse-small-True"])
@pytest.mark.parametrize(
    ("name", "predicted"),
    [
        ("sparse-small", True),
        ("sparse-racks", True),
        ("sparse-overlap", True),
        ("calls-all-reduce", True),
        ("locks", None),
    ],
)
def test_scenarios_of_virtual_time_hold_on_real_links(
    scenario, name: str, predicted: bool | None
) -> None:
    """All but what they expect of times, which are those of this machine here."""
    metrics = scenario.run(name, "--set", "backend=mininet").metrics
    reasons = metrics["reason"].split("; ") if metrics["reason"] else []
    assert [text for text in reasons if not ABOUT_TIME.search(text)] == []
    runs = [run.metrics for run in runs_of(metrics)]
    assert all(run["exact"] for run in runs)
    assert {run["links_as_predicted"] for run in runs} == {predicted}


@pytest.mark.long
def test_a_replica_takes_over_on_real_links(scenario) -> None:
    expected = "expect={exact: true, restarts: 0, training.updates: 40}"
    given = ("--set", "backend=mininet", "--set", expected)
    ended = scenario.run("mlfabric-server-killed", *given)
    assert ended.code == 0, ended.out + ended.err
    assert ended.metrics["servers"]["2"]["takeovers"] == 1
    assert ended.metrics["training"]["divergence"] <= 0.5


@pytest.mark.long
def test_contenders_take_turns_on_one_network(scenario) -> None:
    text = SMALL.replace("rounds: 2", "rounds: 3") + (
        "compare: {sum: {}, ring: {system: ring}, ps: {system: ps}}\n"
        "expect: {exact: true, ratio.ring.sum.link_bound_s: {min: 1.2, max: 1.4}}\n"
    )
    ended = scenario.run(scenario.write(text))
    assert ended.code == 0, ended.out + ended.err
    spans = []
    for name in ended.metrics["contenders"]:
        log = [json.loads(line) for line in (ended.folder / name / "events.jsonl").open()]
        begun = [event["t_ns"] for event in log if event["event"] == "round_begin"]
        judged = [event["t_ns"] for event in log if event["event"] == "verified"]
        spans += [(begin, end, name) for begin, end in zip(begun, judged, strict=True)]
    spans.sort()
    assert [name for *_, name in spans] == ["sum", "ring", "ps"] * 3
    assert all(a[1] < b[0] for a, b in itertools.pairwise(spans)), "one at a time"


@pytest.mark.long
@pytest.mark.parametrize(
    ("workers", "elements", "dtype", "lanes", "slots"),
    [
        (1, 1000, "float32", 32, 4),
        (2, 1, "int32", 1, 1),
        (5, 4097, "float32", 365, 8),
        (3, 63, "int32", 64, 2),
        (7, 20_000, "int32", 100, 33),
    ],
)
def test_shapes_that_do_not_divide(
    scenario, workers: int, elements: int, dtype: str, lanes: int, slots: int
) -> None:
    ended = scenario.run(
        scenario.write(
            f"topology: {{workers: {workers}}}\n"
            f"switch: {{lanes: {lanes}, slots: {slots}}}\n"
            f"workload: {{elements: {elements}, dtype: {dtype}, rounds: 3}}\n"
            "expect: {exact: true, totals.other_drops: 0}\n"
        )
    )
    assert ended.code == 0, ended.out + ended.err
    if dtype == "float32":
        assert ended.metrics["error"]["within"]


def test_the_result_folder_describes_itself(scenario) -> None:
    lossy = ("--set", "links.loss=5%")  # workers.vl.json is written where something was sent twice
    ended = scenario.run(scenario.write(SMALL), "--set", "switch.pcap=true", *lossy)
    assert ended.code == 0, ended.err
    assert {path.name for path in ended.folder.iterdir()} >= {
        *("scenario.yaml", "manifest.json", "metrics.json", "events.jsonl", "drops.json"),
        *("logs", "pcap", "report.html", "time.vl.json", "workers.vl.json"),
    }
    again = load(ended.folder / "scenario.yaml").points[0].resolved.scenario
    assert (again.switch.lanes, again.workload.elements, again.seed) == (64, 40_000, 1)
    manifest = ended.json("manifest.json")
    assert manifest["seed"] == 1
    assert len(manifest["programs"][0]["json_sha256"]) == 64
    times = [event["t_ns"] for event in map(json.loads, (ended.folder / "events.jsonl").open())]
    assert times == sorted(times)
    assert len(list((ended.folder / "pcap").iterdir())) >= 3
    assert all(path.stat().st_size > 0 for path in (ended.folder / "pcap").iterdir())
    assert not list(ended.folder.rglob("*.npy"))


def test_what_is_counted_agrees(scenario) -> None:
    """Without losses: 625 chunks, 16 exponents, 3 workers, 2 rounds. A busy machine may make a
    timer expire; what is sent again for that is counted as such everywhere."""
    metrics = scenario.run(scenario.write(SMALL)).metrics
    frames = 2 * (625 + 16)
    workers = metrics["workers"].values()
    for worker in workers:
        assert worker["sent"] - worker["retransmitted"] == frames
        assert worker["received"] - worker["duplicates"] - worker["late"] == frames
        assert worker["malformed"] == 0
    packets = metrics["switches"]["s1"]["packets"]
    assert packets["new"] == 3 * frames
    assert packets["complete"] == frames
    again = sum(worker["retransmitted"] for worker in workers)
    assert packets["duplicate"] + packets["stale"] == again
    assert packets["refused"] == 0
    assert metrics["links_as_predicted"] is True
    for link in metrics["links"].values():
        for way in link.values():
            assert way["seen"] >= frames
            assert way["dropped"] == 0


LOSSY = SMALL.replace("name: small", "name: lossy").replace("100mbit}", "100mbit, loss: 2%}")


def test_losses_are_those_of_the_seed(scenario) -> None:
    """The kernel's drops, the Python twin's, and the counts in the result are the same."""
    ended = scenario.run(scenario.write(LOSSY), "--set", "seed=11")
    metrics, drops = ended.metrics, ended.json("drops.json")
    assert metrics["exact"] is True
    total = 0
    for link, ways in metrics["links"].items():
        for direction, way in ways.items():
            twin = drop_numbers(11, link, direction, 0.02, way["seen"])
            assert drops[direction]["numbers"] == twin.tolist()
            assert drops[direction]["count"] == way["dropped"] == twin.size > 0
            total += twin.size
    assert metrics["totals"]["injected_drops"] == total
    assert metrics["totals"]["retransmitted"] > 0


@pytest.mark.long
def test_the_same_seed_drops_the_same_packets(scenario) -> None:
    runs = [scenario.run(scenario.write(LOSSY), "--set", f"seed={s}") for s in (5, 5, 6)]
    assert all(ended.metrics["exact"] for ended in runs)
    first, second, other = (
        {d: np.array(v["numbers"]) for d, v in ended.json("drops.json").items()} for ended in runs
    )
    for direction in first:
        shared = min(first[direction].max(), second[direction].max())
        one, two = (n[direction][n[direction] <= shared] for n in (first, second))
        assert one.tolist() == two.tolist()
        assert one.size > 3
        assert first[direction][:3].tolist() != other[direction][:3].tolist()


@pytest.mark.long
def test_losses_on_one_link_stay_there(scenario) -> None:
    text = SMALL + "expect: {exact: true}\n"
    text = text.replace("100mbit}", "100mbit, overrides: [{match: h2-s1, loss: 3%}]}")
    metrics = scenario.run(scenario.write(text)).metrics
    dropped = {d: way["dropped"] for ways in metrics["links"].values() for d, way in ways.items()}
    assert metrics["ok"]
    assert {d for d, count in dropped.items() if count} == {"h2->s1", "s1->h2"}


@pytest.mark.alone
def test_an_expectation_that_fails_is_exit_code_1(scenario) -> None:
    ended = scenario.run(scenario.write(SMALL), "--set", "expect.link_bound_ratio={max: 0.5}")
    assert ended.code == 1
    assert ended.metrics["ok"] is False
    assert ended.metrics["exact"] is True
    assert "expected link_bound_ratio <= 0.5, got" in ended.out


@pytest.mark.long
def test_a_sweep_has_a_row_and_a_folder_a_point(scenario) -> None:
    text = SMALL + "sweep: {topology.workers: [1, 2]}\nexpect: {growth.link_bound_s: 1}\n"
    ended = scenario.run(scenario.write(text))
    assert ended.code == 0, ended.out + ended.err
    folder = next((scenario.results / "small").glob("2*"))
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["ok"] is metrics["exact"] is True
    assert metrics["growth"] == {"link_bound_s": 1.0}
    workers = [len(point["metrics"]["workers"]) for point in metrics["points"]]
    assert workers == [1, 2]
    assert (folder / "point-1/report.html").is_file()
    assert sum(line.startswith("  topology.workers") for line in ended.out.splitlines()) == 2


@pytest.mark.long
def test_a_users_own_program_is_used(scenario, tmp_path: Path) -> None:
    """A copy of ours beside the scenario, in which results are sent with another TTL."""
    own = own_program(tmp_path, (EGRESS, "hdr.ipv4.ttl = 64;", "hdr.ipv4.ttl = 99;"))
    text = SMALL.replace("{lanes", f"{{program: {own}, pcap: true, lanes")
    ended = scenario.run(scenario.write(text))
    assert ended.metrics["exact"] is True, ended.err
    captured = b"".join(path.read_bytes() for path in (ended.folder / "pcap").iterdir())
    assert b"\x63\x11" in captured  # TTL 99, protocol UDP


@pytest.mark.long
def test_a_program_that_sends_no_results_is_found_out_on_any_machine(
    scenario, tmp_path: Path
) -> None:
    """Every worker has to ask again for every result, and every sum is right."""
    own = own_program(tmp_path, (AGGREGATION, "standard_metadata.mcast_grp = meta.group;", ""))
    ended = scenario.run(scenario.write(SMALL.replace("{lanes", f"{{program: {own}, lanes")))
    assert (ended.code, ended.metrics["exact"]) == (1, True)
    assert "lost-in-switch" in {finding["kind"] for finding in ended.metrics["findings"]}
    assert ended.metrics["fidelity"]["verdict"] == "waiting"
    assert ended.metrics["fidelity"]["waited_for"] == "timers"
