"""The fixture `scenario` for tests of one's own; the runs themselves are replaced."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agglab.testbed.cli import pytest_plugin
from agglab.testbed.cli.pytest_plugin import Scenarios

pytest_plugins = ["pytester"]


class Fake:
    """Stands in for the process: keeps what it was asked, leaves what a run leaves."""

    def __init__(self) -> None:
        self.commands: list[list[str]] = []
        self.answer = (0, "PASSED  fake", "")
        self.texts: list[str] = []

    def run(self, _: Scenarios, command: list[str], timeout_s: float) -> tuple[int, str, str]:
        self.commands.append(command)
        if Path(command[4]).is_file():
            self.texts.append(Path(command[4]).read_text())
        code, out, err = self.answer
        if code in (0, 1, 4):
            folder = Path(command[-1]) / "fake/run-7"
            folder.mkdir(parents=True, exist_ok=True)
            metrics = {"ok": not code, "reason": "it broke" * bool(code), "totals": {"new": 9}}
            (folder / "metrics.json").write_text(json.dumps(metrics))
            lines = [{"event": "round", "round": 4}, {"event": "start"}, {"event": "round"}]
            (folder / "events.jsonl").write_text("".join(f"{json.dumps(x)}\n" for x in lines))
            out += f"\n  results   {folder}\n"
        return code, out, err


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    runs = Fake()
    monkeypatch.setattr(pytest_plugin.Scenarios, "_run", lambda *words: runs.run(*words))
    return runs


def outcome(pytester: pytest.Pytester, body: str, *options: str):
    pytester.makepyfile(f"def test_it(scenario):\n    {body}")
    return pytester.runpytest_inprocess("-rs", *options)


def test_a_run_that_holds_hands_over_metrics_folder_and_events(pytester, fake) -> None:
    body = """r = scenario("quickstart")
    assert r.ok and r.metrics["totals"]["new"] == 9 and (r.folder / "metrics.json").is_file()
    assert [e.get("round") for e in r.events("round")] == [4, None]
    assert r.summary.startswith("PASSED")"""
    outcome(pytester, body).assert_outcomes(passed=1)
    assert fake.commands[0][1:5] == ["-m", "agglab.testbed", "run", "quickstart"]


def test_a_missed_expectation_fails_with_summary_and_folder(pytester, fake) -> None:
    fake.answer = (1, "FAILED  fake\n  reason    expected exact: true, got false", "")
    done = outcome(pytester, 'scenario("loss")')
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["it broke (exit code 1)", "*expected exact: true*", "*fake/run-7*"])


def test_a_missed_expectation_can_be_what_a_test_is_about(pytester, fake) -> None:
    fake.answer = (1, "FAILED  fake", "")
    body = 'r = scenario("loss", check=False)\n    assert not r.ok and not r.metrics["ok"]'
    outcome(pytester, body).assert_outcomes(passed=1)


@pytest.mark.parametrize(("check", "counted"), [(True, "failed"), (False, "passed")])
def test_a_run_that_cannot_be_judged_has_not_passed(pytester, fake, check: bool, counted) -> None:
    fake.answer = (4, "UNDECIDED  fake", "")
    body = f'r = scenario("loss", check={check})\n    assert not r.ok'
    done = outcome(pytester, body)
    done.assert_outcomes(**{counted: 1})
    if check:
        done.stdout.fnmatch_lines(["it broke (exit code 4)", "*UNDECIDED*"])


def test_an_assertion_of_the_test_shows_the_run_too(pytester, fake) -> None:
    done = outcome(pytester, 'assert scenario("loss").metrics["totals"]["new"] == 10')
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*agglab*", "PASSED  fake", "*results*fake/run-7*"])


def test_an_invalid_scenario_fails_with_its_lines(pytester, fake) -> None:
    fake.answer = (2, "", "mine.yaml:3: topology.workers: '65' is too large")
    done = outcome(pytester, 'scenario("topology: {workers: 65}", check=False)')
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*'65' is too large (exit code 2)*"])


def test_a_lack_of_the_machine_skips_and_is_named(pytester, fake) -> None:
    fake.answer = (3, "", "this machine lacks root: run it as root")
    done = outcome(pytester, 'scenario("quickstart")')
    done.assert_outcomes(skipped=1)
    done.stdout.fnmatch_lines(["*this machine lacks root*"])


def test_where_the_machine_must_have_everything_a_lack_fails(pytester, fake) -> None:
    """For CI in containers, where everything skipped would be green."""
    fake.answer = (3, "", "this machine lacks root: run it as root")
    done = outcome(pytester, 'scenario("quickstart")', "--agglab-require")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*this machine lacks root*--agglab-require*"])


@pytest.mark.long
def test_a_run_that_takes_too_long_shows_its_summary_and_folder(pytester) -> None:
    """Really started, on virtual time: stopped once it has begun, it concludes."""
    pytester.makepyfile("""
        import subprocess, time
        SLOW = {"backend": "virtual", "topology": {"workers": 2},
                "switch": {"lanes": 8, "slots": 8},
                "workload": {"elements": 1_000_000, "rounds": 100}}

        def test_slow(scenario, tmp_path, monkeypatch):
            communicate = subprocess.Popen.communicate

            def begun(process, timeout=None):
                \"\"\"Time is over as soon as the run has logged its first round.\"\"\"
                if timeout == 0.5:
                    while process.poll() is None:
                        logs = list(tmp_path.glob("results/*/*/events.jsonl"))
                        if any("round_begin" in log.read_text() for log in logs):
                            raise subprocess.TimeoutExpired(process.args, timeout)
                        time.sleep(0.05)
                return communicate(process, timeout=timeout)

            monkeypatch.setattr(subprocess.Popen, "communicate", begun)
            scenario(SLOW, timeout_s=0.5)
    """)
    done = pytester.runpytest_inprocess()
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            *("*took more than 0.5 s*", "FAILED  test_slow-1", "*interrupted*"),
            "*results */test_slow-1/*",
        ]
    )


@pytest.mark.long
def test_a_comparison_hands_over_each_contender(pytester) -> None:
    pytester.makepyfile("""
        COMPARED = {
            "backend": "virtual",
            "topology": {"workers": 2},
            "workload": {"elements": 1000, "rounds": 2},
            "compare": {"sum": {}, "ring": {"system": "ring"}},
            "expect": {"exact": True, "ratio.ring.sum.rounds": 1},
        }

        def test_it(scenario):
            result = scenario(COMPARED)
            assert result.ok and "ring  " in result.summary
            ring = result.contender("ring")
            assert ring.ok and ring.metrics["rounds"] == len(ring.events("verified")) == 2

        def test_that_it_can_fail(scenario):
            scenario(COMPARED, {"expect.rounds": 3})
    """)
    done = pytester.runpytest_inprocess()
    done.assert_outcomes(passed=1, failed=1)
    assert "sum: expected rounds = 3, got 2; ring: expected rounds = 3" in done.stdout.str()


def test_text_and_mappings_become_files_of_their_own(pytester, fake) -> None:
    body = """scenario("topology: {workers: 3}\\nseed: 5\\n")
    scenario({"topology": {"workers": 2}, "expect": {"exact": True}})"""
    outcome(pytester, body).assert_outcomes(passed=1)
    assert fake.texts[0] == "topology: {workers: 3}\nseed: 5\n"
    assert json.loads(fake.texts[1]) == {"topology": {"workers": 2}, "expect": {"exact": True}}
    assert fake.commands[0][4] != fake.commands[1][4]


def test_a_path_is_looked_for_beside_the_test_then_from_the_root(pytester, fake) -> None:
    (pytester.mkdir("deep") / "test_deep.py").write_text(
        "def test_it(scenario):\n    scenario('a.yaml')\n    scenario('b.yaml')\n"
    )
    for place in ("deep/a.yaml", "a.yaml", "b.yaml"):
        (pytester.path / place).write_text(f"# {place}\n")
    pytester.runpytest_inprocess("deep").assert_outcomes(passed=1)
    assert fake.texts == ["# deep/a.yaml\n", "# b.yaml\n"]


def test_settings_and_results_folder_reach_the_command_line(pytester, fake) -> None:
    body = 'scenario("loss", {"links.loss": "1%", "switch.pcap": True, "expect": {"exact": True}})'
    outcome(pytester, body, "--agglab-results=kept").assert_outcomes(passed=1)
    words = fake.commands[0][5:]
    assert words[:6] == [
        *("--set", "links.loss=1%"),
        *("--set", "switch.pcap=true"),
        *("--set", 'expect={"exact": true}'),
    ]
    assert words[6:] == ["--results", str(pytester.path / "kept")]


def test_paths_in_text_count_from_the_test_and_from_the_root(pytester, monkeypatch) -> None:
    """Really started, and refused: the program that is found does not compile."""
    (pytester.mkdir("tests") / "test_mine.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('name', ['beside.p4', 'p4/mine.p4'])\n"
        "def test_it(scenario, name):\n"
        "    scenario({'backend': 'virtual', 'switch': {'program': name}})\n"
    )
    pytester.mkdir("p4")
    for place in ("tests/beside.p4", "p4/mine.p4"):
        (pytester.path / place).write_text("control\n")
    done = pytester.runpytest_inprocess("--rootdir", str(pytester.path), "tests")
    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines(["*tests/beside.p4:*error:*", "*p4/mine.p4:*error:*"])
