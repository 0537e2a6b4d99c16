"""What a valid scenario means: units, defaults, overrides, sweeps, and writing it back."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agglab.testbed.base.problems import Where
from agglab.testbed.scenario import find, load, names, suite_to_yaml, to_yaml
from agglab.testbed.schema.document import Scalar
from agglab.testbed.schema.expectations import Expectation
from agglab.testbed.schema.kinds import Fraction, Whole, duration, rate, size
from agglab.topologies import Drop


def read(kind, text: str):
    return kind.read(Scalar(text, False, Where("test")))


def scenario(tmp_path: Path, text: str, *settings: str):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    return load(path, settings)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (rate(), "100mbit", 100_000_000),
        (rate(), "1.5 Gbit", 1_500_000_000),
        (rate(), "64kbit/s", 64_000),
        (rate(), "12_000bit", 12_000),
        (duration(), "250us", 250e-6),
        (duration(), "3µs", 3e-6),
        (duration(), "0", 0.0),
        (duration(), "2min", 120.0),
        (size(), "64KiB", 65_536),
        (size(), "64kB", 64_000),
        (size(), "1.5MiB", 1_572_864),
        (Fraction(), "0.1%", 0.001),
        (Fraction(), "0.25", 0.25),
        (Fraction(), "0", 0.0),
        (Whole(0, 10**9), "1_000_000", 1_000_000),
        (Whole(0, 10**9), "1e6", 1_000_000),
    ],
)
def test_units(kind, text: str, value: float) -> None:
    assert read(kind, text) == pytest.approx(value, rel=1e-12)


@given(st.integers(8_000, 400 * 10**9))
def test_a_rate_is_written_so_that_it_reads_back(bps: int) -> None:
    assert read(rate(), str(rate().write(bps))) == bps


@given(st.floats(0, 3600))
def test_a_time_is_written_so_that_it_reads_back(seconds: float) -> None:
    assert read(duration(), str(duration().write(seconds))) == seconds


def test_defaults_are_the_quickstart(tmp_path: Path) -> None:
    (point,) = scenario(tmp_path, "seed: 5").points
    s = point.resolved.scenario
    assert (s.name, s.seed, s.topology.workers) == ("mine", 5, 4)
    assert (s.links.rate_bps, s.links.mtu_bytes, s.links.loss) == (100_000_000, 1500, 0.0)
    assert (s.switch.lanes, s.switch.slots, s.workload.elements) == (365, 128, 1_000_000)
    assert point.resolved.programs["s1"].path.name == "switchml.p4"


@pytest.mark.parametrize(("mtu", "lanes"), [(576, 134), (1500, 365), (9000, 2240)])
def test_auto_lanes_fill_the_packet(tmp_path: Path, mtu: int, lanes: int) -> None:
    (point,) = scenario(tmp_path, f"links: {{mtu: {mtu}}}").points
    assert point.resolved.scenario.switch.lanes == lanes
    assert 40 + 4 * lanes <= mtu < 40 + 4 * (lanes + 1)


def test_a_program_is_found_beside_its_scenario(tmp_path: Path) -> None:
    (tmp_path / "own.p4").write_text("")
    (point,) = scenario(tmp_path, "switch: {program: own.p4}").points
    assert point.resolved.programs["s1"].path == tmp_path / "own.p4"


def test_settings_win_over_the_file(tmp_path: Path) -> None:
    suite = scenario(tmp_path, "links: {loss: 1%}", "links.loss=2%", "workload.rounds=7")
    assert suite.points[0].resolved.scenario.links.loss == 0.02
    assert suite.points[0].resolved.scenario.workload.rounds == 7


def test_a_setting_below_expect_names_a_metric_with_its_dots(tmp_path: Path) -> None:
    setting = "expect.totals.other_drops=3"
    (expected,) = scenario(tmp_path, "seed: 1", setting).points[0].resolved.scenario.expect
    assert (expected.metric, expected.equals) == ("totals.other_drops", 3)


def test_overrides_change_the_links_they_match(tmp_path: Path) -> None:
    text = """
links:
  rate: 10mbit
  loss: 1%
  overrides:
  - {match: "h[12]-s1", rate: 5mbit}
  - {match: h2-s1, loss: 0, delay: 3ms}
"""
    graph = scenario(tmp_path, text).points[0].resolved.graph
    rates = {link.name: link.a_to_b.rate_bps for link in graph.links}
    assert rates == {"h1-s1": 5e6, "h2-s1": 5e6, "h3-s1": 10e6, "h4-s1": 10e6}
    assert [link.b_to_a.impairments for link in graph.links] == [
        (Drop(0.01),),
        (),
        *[(Drop(0.01),)] * 2,
    ]
    assert graph.link("h2-s1").a_to_b.delay_us == 3000


def test_a_sweep_is_the_product_of_its_axes(tmp_path: Path) -> None:
    suite = scenario(
        tmp_path,
        "sweep: {topology.workers: [2, 3], links.loss: [0, 1%]}\n"
        "expect: {exact: true, growth.link_bound_s: {max: 1.5}}",
    )
    scenarios = [point.resolved.scenario for point in suite.points]
    points = [(each.topology.workers, each.links.loss) for each in scenarios]
    assert points == [(2, 0.0), (2, 0.01), (3, 0.0), (3, 0.01)]
    assert suite.points[3].settings == (("topology.workers", "3"), ("links.loss", "1%"))
    assert [e.metric for e in suite.growth] == ["growth.link_bound_s"]
    assert [e.metric for e in suite.points[0].resolved.scenario.expect] == ["exact"]


def test_a_point_of_a_sweep_over_jobs_has_the_first_of_them(tmp_path: Path) -> None:
    text = """
jobs: [{name: a, workers: h1}, {name: b, workers: h3, start: 1s}, {workers: h2}]
sweep: {jobs: [3, 1, 2], switch.slots: [8]}
expect: {jobs.a.exact: true, growth.jobs.a.completion_s: {max: 2}}
"""
    suite = scenario(tmp_path, text)
    jobs = [[job.name for job in point.resolved.jobs] for point in suite.points]
    assert jobs == [["a", "b", "job3"], ["a"], ["a", "b"]]
    assert [point.resolved.jobs[0].slots for point in suite.points] == [3, 8, 4]
    assert suite.points[2].label == "jobs 2, slots 8"
    assert len({point.resolved.graph for point in suite.points}) == 1
    again = tmp_path / "again.yaml"
    again.write_text(suite_to_yaml(suite))
    assert load(again).points == suite.points


@pytest.mark.long(only=["million-values", "ten-thousand-workers"])
@pytest.mark.parametrize("name", names())
def test_shipped_scenarios_are_valid_and_survive_writing(tmp_path: Path, name: str) -> None:
    suite = load(find(name))
    assert suite.name == name
    assert suite.description
    again = tmp_path / "again.yaml"
    again.write_text(suite_to_yaml(suite))
    assert load(again).points == suite.points
    for point in suite.points:
        again.write_text(to_yaml(point.resolved))
        (same,) = load(again).points
        assert same.resolved == point.resolved


def test_the_scenarios_the_issue_names_exist() -> None:
    wanted = {"quickstart", "loss", "scaling", "int-exact", "mtu9000", "one-gigabit"}
    assert wanted <= set(names())


@pytest.mark.parametrize(
    ("expectation", "value", "holds"),
    [
        (Expectation("exact", equals=True), True, True),
        (Expectation("exact", equals=True), 1, False),
        (Expectation("exact", equals=True), None, False),
        (Expectation("x", equals=1), 1.0, True),
        (Expectation("x", equals=0), False, False),
        (Expectation("x", maximum=1.3), 1.3, True),
        (Expectation("x", maximum=1.3), 1.31, False),
        (Expectation("x", minimum=2, maximum=3), 1.9, False),
        (Expectation("x", maximum=1.3), None, False),
        (Expectation("x", minimum=0), True, False),
        (Expectation("x", maximum=1.3), float("nan"), False),
        (Expectation("fidelity.verdict", equals="starved"), "starved", True),
    ],
)
def test_expectations(expectation: Expectation, value: object, holds: bool) -> None:
    assert expectation.holds(value) is holds
