"""The fixture `scenario` with real runs."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.root
pytest_plugins = ["pytester"]

TESTS = """
SMALL = {"topology": {"workers": 2}, "switch": {"lanes": 32, "slots": 4},
         "workload": {"elements": 3000, "rounds": 2}, "expect": {"exact": True}}

def test_sums(scenario):
    result = scenario(SMALL)
    assert result.metrics["exact"] and result.folder.is_dir()
    assert len(result.events("verified")) == 2

def test_missed(scenario):
    scenario({**SMALL, "expect": {"totals.retransmitted": {"min": 1000}}})

def test_invalid(scenario):
    scenario("topology: {wrokers: 2}")

def test_too_slow(scenario):
    scenario(SMALL, timeout_s=0.01)
"""


@pytest.mark.long
def test_runs_end_as_their_tests_should(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TESTS)
    done = pytester.runpytest_inprocess()
    done.assert_outcomes(passed=1, failed=3)
    done.stdout.fnmatch_lines(
        [
            *("*expected totals.retransmitted*(exit code 1)", "*/results/test_missed-1/*"),
            "*did you mean 'workers'?*(exit code 2)",
            "*took more than 0.01 s*",
        ]
    )
