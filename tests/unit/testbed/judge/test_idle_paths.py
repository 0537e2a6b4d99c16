"""Links between switches that carry nothing although they could: a warning that comes first and
fails no run, in every graph that has equal paths, and in none that has not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agglab.testbed.cli import main
from agglab.testbed.systems.forwarding import Flow, bytes_by_direction, spread_bytes
from agglab.topologies.fabrics import fat_tree, leaf_spine

TEXT = """
name: racks
backend: virtual
system: ps
topology: {kind: leaf_spine, racks: 4, workers: 4, spines: 4}
links: {rate: 100mbit}
workload: {elements: 8000, rounds: 1}
"""
DIAMOND = """
name: racks
backend: virtual
system: ps
topology:
  kind: custom
  switches: [left, right, upper, lower, spur]
  links: [left-upper, left-lower, upper-right, lower-right, right-spur,
    h1-left, h2-left, h3-left, h4-right, h5-right, h6-right]
links: {rate: 100mbit}
workload: {elements: 6000, rounds: 1}
"""
Ran = tuple[int, dict[str, Any], str]


def ran(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *settings: str, text: str = TEXT
) -> Ran:
    """Exit code, metrics and summary of a run."""
    file = tmp_path / "racks.yaml"
    file.write_text(text)
    words = [word for setting in settings for word in ("--set", setting)]
    code = main.main(["run", str(file), "--results", str(tmp_path), *words])
    metrics = json.loads((tmp_path / "racks/latest/metrics.json").read_text())
    said = capsys.readouterr().out
    return code, metrics, said[said.index("PASSED" if metrics["ok"] else "FAILED") :]


def warned(metrics: dict[str, Any]) -> dict[str, float] | None:
    """The numbers of the warning; None if there is none."""
    warnings = [each for each in metrics["findings"] if each["kind"] == "idle-paths"]
    return warnings[0]["numbers"] if warnings else None


def test_idle_spines_are_said_first_and_fail_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, metrics, said = ran(tmp_path, capsys)
    assert (code, metrics["ok"]) == (0, True)
    numbers = warned(metrics)
    assert numbers is not None
    assert (numbers["idle"], numbers["usable"]) == (12, 16)
    assert numbers["link_bound_s"] == metrics["link_bound_s"]
    # Each worker sends 15 of 16 parts of the tensor and as many results, over its own cable.
    host_s = metrics["links"]["h1-s1"]["h1->s1"]["bytes"] * 8 / 100e6
    assert numbers["spread_bound_s"] == pytest.approx(host_s)
    text = "idle-paths: traffic takes one of several shortest paths: 12 of 16 links between "
    assert f"  warning   {text}" in "\n".join(said.splitlines()[:5])
    head = (tmp_path / "racks/latest/report.html").read_text().partition("<h2")[0]
    assert f"<p>Warning: {text}" in head


@pytest.mark.parametrize(
    "settings",
    [
        ["topology.spines=1"],
        ["topology={kind: rack, workers: 6}"],
        ["system=ring"],  # whose links to hosts are as busy
        ["system=switchml"],
    ],
)
def test_nothing_is_said_where_no_link_could_have_helped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], settings: list[str]
) -> None:
    assert warned(ran(tmp_path, capsys, *settings)[1]) is None


def test_a_fat_tree_has_idle_paths_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topology = "topology={kind: fat_tree, k: 4, workers: 4}"
    numbers = warned(ran(tmp_path, capsys, topology)[1])
    assert numbers is not None and numbers["spread_bound_s"] < 0.7 * numbers["link_bound_s"]
    assert 0 < numbers["idle"] < numbers["usable"] == 32


def test_a_graph_of_a_user_has_too_and_a_spur_is_not_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, metrics, said = ran(tmp_path, capsys, text=DIAMOND)
    numbers = warned(metrics)
    assert numbers is not None and (numbers["idle"], numbers["usable"]) == (2, 4)
    assert "(left-lower, lower-right)" in said


def test_a_tree_over_slow_spines_is_warned_of_without_a_bound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = "links.overrides=[{match: s1-s5, rate: 50mbit}]"
    numbers = warned(ran(tmp_path, capsys, "system=switchml", slow)[1])
    assert numbers is not None and "spread_bound_s" not in numbers


def test_a_comparison_says_it_before_its_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    contenders = "compare: {sum: {system: switchml}, ps: {system: ps}}\n"
    compared = TEXT.replace("system: ps\n", "") + contenders
    _, metrics, said = ran(tmp_path, capsys, "links.queue=1MB", text=compared)
    assert metrics["ok"] is True
    assert said.splitlines()[1].startswith("  warning   ps: idle-paths: ")


def test_a_warning_can_be_expected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(tmp_path, capsys, "expect={findings: [idle-paths]}")[0] == 0
    code, metrics, _ = ran(tmp_path, capsys, "topology.spines=1", "expect={findings: [idle-paths]}")
    assert (code, metrics["reason"]) == (
        1,
        "expected a finding of kind 'idle-paths', but there was none",
    )


def test_equal_shares_over_all_shortest_paths() -> None:
    spread = spread_bytes(leaf_spine(2, 4, 1), [Flow("h1", "h2", 100), Flow("h2", "h2", 5)])
    assert spread == {
        "h1->s1": 100,
        "s2->h2": 100,
        **{f"s1->s{n}": 25 for n in range(3, 7)},
        **{f"s{n}->s2": 25 for n in range(3, 7)},
    }


def test_shares_of_a_fat_tree_are_halved_twice_and_come_together_again() -> None:
    graph = fat_tree(4, 1)
    flows = [Flow("h1", "h8", 100)]
    spread = spread_bytes(graph, flows)
    by_size = {size: sum(1 for each in spread.values() if each == size) for size in spread.values()}
    assert by_size == {100: 2, 50: 4, 25: 8}
    assert spread.keys() > bytes_by_direction(graph, flows).keys()
