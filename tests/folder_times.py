"""A plugin of pytest: it names each failure as it happens and ends with how long each folder took.

With pytest-xdist, it speaks only in the process that collects the other processes' reports."""

from __future__ import annotations

from collections import defaultdict
from pathlib import PurePosixPath
from typing import Any

import pytest


class FolderTimes:
    """Counts the tests of each folder and the seconds of their set-up, call and clean-up."""

    def __init__(self, terminal: Any) -> None:
        self._terminal = terminal
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._tests: defaultdict[str, set[str]] = defaultdict(set)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        folder = str(PurePosixPath(report.nodeid.split("::")[0]).parent)
        self._tests[folder].add(report.nodeid)
        self._seconds[folder] += report.duration
        if report.failed:
            self._terminal.write(f"\nFAILED in {report.when}: {report.nodeid}\n", red=True)

    def pytest_terminal_summary(self) -> None:
        """The table, slowest folder first. Seconds of processes side by side add up."""
        self._terminal.section("seconds of each folder")
        self._terminal.write_line(f"{'folder':<40} {'tests':>6} {'seconds':>9}")
        for folder, seconds in sorted(self._seconds.items(), key=lambda item: -item[1]):
            count = len(self._tests[folder])
            self._terminal.write_line(f"{folder:<40} {count:>6} {seconds:>9.1f}")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(FolderTimes(terminal), "folder-times")
