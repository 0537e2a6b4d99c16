"""A plugin of pytest: it names each failure as it happens, ends with how long each folder took, and
names the tests that took too much of the processors for `make test`.

CPU seconds are those of the test's process and of all processes that it has waited for; they hardly
change when other programs keep the machine busy. With pytest-xdist, the plugin speaks only in the
process that collects the other processes' reports."""

from __future__ import annotations

import json
import resource
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

BUDGET_CPU_S = 3.0
ROOT_BUDGET_CPU_S = 10.0
"""What a test of `make test` may take, and one that needs root: it starts a network's programs. One
that takes more is to be made cheaper or marked long."""


@dataclass
class Spent:
    """What set-up, call and clean-up of a test took. budget_cpu_s: None for a long test."""

    cpu_s: float = 0.0
    wall_s: float = 0.0
    budget_cpu_s: float | None = None


def cpu_s() -> float:
    """CPU seconds of this process and of those that it has waited for."""
    processes = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(sum(resource.getrusage(each)[:2]) for each in processes)


class Meter:
    """Adds to the report of each step of a test what the step has taken, in the test's process."""

    def __init__(self) -> None:
        self._before_s = cpu_s()

    def pytest_runtest_logstart(self) -> None:
        self._before_s = cpu_s()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Iterator[None]:
        outcome: Any = yield
        now_s = cpu_s()
        properties = [("cpu_s", now_s - self._before_s), ("budget_cpu_s", budget_cpu_s(item))]
        outcome.get_result().user_properties += properties
        self._before_s = now_s


def budget_cpu_s(test: pytest.Item) -> float | None:
    """What the test may take; None if it is long."""
    if test.get_closest_marker("long"):
        return None
    return ROOT_BUDGET_CPU_S if test.get_closest_marker("root") else BUDGET_CPU_S


class FolderTimes:
    """Sums up what the tests took, and prints tables of it. record: where to write it, as JSON."""

    def __init__(self, terminal: Any, record: Path | None) -> None:
        self._terminal = terminal
        self._record = record
        self._spent: defaultdict[str, Spent] = defaultdict(Spent)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        measured: dict[str, Any] = dict(report.user_properties)
        spent = self._spent[report.nodeid]
        spent.cpu_s += measured.get("cpu_s", 0)  # a process that crashed sends none
        spent.wall_s += report.duration
        spent.budget_cpu_s = measured.get("budget_cpu_s")
        if report.failed:
            self._terminal.write(f"\nFAILED in {report.when}: {report.nodeid}\n", red=True)

    def pytest_sessionfinish(self) -> None:
        if self._record is not None:
            self._record.parent.mkdir(parents=True, exist_ok=True)
            spent = {test: vars(each) for test, each in self._spent.items()}
            self._record.write_text(json.dumps(spent, indent=0), encoding="utf-8")

    def pytest_terminal_summary(self) -> None:
        """Prints the tables. Seconds of processes side by side add up."""
        self._print_folders()
        self._print_over_budget()

    def _print_folders(self) -> None:
        folders: defaultdict[str, list[Spent]] = defaultdict(list)
        for test, spent in self._spent.items():
            folders[str(PurePosixPath(test.split("::")[0]).parent)].append(spent)
        rows = [(name, len(each), *total(each)) for name, each in folders.items()]
        rows.sort(key=lambda row: -row[2])
        rows.append(("all", len(self._spent), *total(self._spent.values())))
        self._terminal.section("seconds of each folder")
        self._terminal.write_line(f"{'folder':<40} {'tests':>6} {'CPU':>9} {'wall':>9}")
        for name, tests, cpu, wall in rows:
            self._terminal.write_line(f"{name:<40} {tests:>6} {cpu:>9.1f} {wall:>9.1f}")

    def _print_over_budget(self) -> None:
        over = [(each.cpu_s, test) for test, each in self._spent.items() if is_over_budget(each)]
        if over:
            self._terminal.section("over the budget of CPU seconds: make cheaper, or mark long")
        for seconds, test in sorted(over, reverse=True):
            self._terminal.write_line(f"{seconds:>9.1f} {test}")


def is_over_budget(spent: Spent) -> bool:
    """Whether a test of `make test` took more than it may."""
    return spent.budget_cpu_s is not None and spent.cpu_s > spent.budget_cpu_s


def total(spent: Iterable[Spent]) -> tuple[float, float]:
    """The sums of CPU seconds and of seconds."""
    each = list(spent)
    return sum(one.cpu_s for one in each), sum(one.wall_s for one in each)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("times").addoption("--times-to", type=Path)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Meter(), "test-meter")
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and not hasattr(config, "workerinput"):
        record = config.getoption("times_to")
        config.pluginmanager.register(FolderTimes(terminal, record), "folder-times")
