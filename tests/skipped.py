"""A plugin of pytest: it records which tests this machine could not run, ends with a table of what
they need, and runs these tests alone another time.

`--skipped-to FILE` records every skipped test with its reason. `--skipped-table` then prints the
table, which covers what other runs of pytest have recorded in the same folder. `--skipped-from
FILE`, which may be given several times, runs only the tests that a record names, and skips those at
once whose need is still not met; without such a file it runs all. `--skipped-or-long` runs, besides
these, all tests marked long. `--skipped-fail` makes a skip a failure if CI has what the test needs
(needs.py).
"""

from __future__ import annotations

import json
from collections import ChainMap, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from tests.needs import is_met_in_ci, is_still_missing, need_and_remedy

FOLDERS_SHOWN = 2
NO_TESTS = pytest.ExitCode.NO_TESTS_COLLECTED
Skips = Mapping[str, str]
"""Reasons by the id of a test, or by the path of a file that is skipped whole."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("skipped tests")
    group.addoption("--skipped-to", type=Path)
    group.addoption("--skipped-from", type=Path, action="append", default=[])
    group.addoption("--skipped-or-long", action="store_true")
    group.addoption("--skipped-table", action="store_true")
    group.addoption("--skipped-fail", action="store_true")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("skipped_fail"):
        config.pluginmanager.register(SkipsFail(), "skips-fail")
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if config.getoption("skipped_to") and terminal and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(config, terminal), "skips-recorder")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    records = [record for record in config.getoption("skipped_from") if record.is_file()]
    if not records:
        return
    skips = ChainMap(*(dict(read(record)) for record in records))
    reasons = {item: reason_for(item.nodeid, skips) for item in items}
    is_long_too = config.getoption("skipped_or_long")
    chosen = {item for item in items if reasons[item] or (is_long_too and is_long(item))}
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]
    lacking = {reason for reason in {*reasons.values()} if reason and is_still_missing(reason)}
    for item in items:
        reason = reasons[item]
        if reason in lacking:
            item.add_marker(pytest.mark.skip(reason=reason))


def is_long(item: pytest.Item) -> bool:
    """Whether `make test-long` runs this test."""
    return bool(item.get_closest_marker("long") and not item.get_closest_marker("undrawn"))


def reason_for(test: str, skips: Skips) -> str | None:
    """Why this test, or the whole file that it is in, was skipped; None if it was not."""
    return skips.get(test, skips.get(test.partition("::")[0]))


def read(record: Path) -> Skips:
    """The skips of one run."""
    skips: Skips = json.loads(record.read_text(encoding="utf-8"))
    return skips


class Recorder:
    """Collects skips, also those of pytest-xdist's other processes, and tells them at the end."""

    def __init__(self, config: pytest.Config, terminal: Any) -> None:
        self._record: Path = config.getoption("skipped_to")
        self._prints_table: bool = config.getoption("skipped_table")
        self._terminal = terminal
        self._skips: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self._skips[report.nodeid] = reason_of(report)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Writes the record, unless the run ended early: it would lack tests."""
        is_whole = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, NO_TESTS)
        if is_whole and not session.shouldfail and not session.shouldstop:
            self._record.parent.mkdir(parents=True, exist_ok=True)
            self._record.write_text(json.dumps(self._skips, indent=1), encoding="utf-8")

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_terminal_summary(self) -> Iterator[None]:
        """The table is the last that is printed before pytest's closing line."""
        yield
        records = sorted(self._record.parent.glob("*.json")) if self._prints_table else []
        skips = ChainMap(*(dict(read(record)) for record in records))
        if skips:
            self._terminal.section("skipped, because this machine lacks something")
            for line in table(skips):
                self._terminal.write_line(line)


class SkipsFail:
    """Makes a skip a failure if CI has what the test needs."""

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self) -> Iterator[None]:
        outcome: Any = yield
        fail(outcome.get_result())

    @pytest.hookimpl(hookwrapper=True)
    def pytest_make_collect_report(self) -> Iterator[None]:
        outcome: Any = yield
        fail(outcome.get_result())


def fail(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turns the report of such a skip into that of a failure, and leaves all others alone."""
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = reason_of(report)
        if is_met_in_ci(reason):
            report.outcome = "failed"
            report.longrepr = f"skipped, although CI has what it needs: {reason}"


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Why the test was skipped."""
    assert isinstance(report.longrepr, tuple)
    return str(report.longrepr[2]).removeprefix("Skipped: ")


def table(skips: Skips) -> Iterator[str]:
    """One line for each need, the most tests first: how many, what they need, how to get it, and
    where they are."""
    tests = defaultdict(list)
    for test, reason in skips.items():
        tests[need_and_remedy(reason)].append(test)
    by_number = sorted(tests.items(), key=lambda item: (-len(item[1]), item[0]))
    rows = [(counted(ids), *need, folders(ids)) for need, ids in by_number]
    rows.insert(0, ("skipped", "need", "how to get it", "folders"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(map(str.ljust, row, widths)).rstrip()


def folders(ids: Sequence[str]) -> str:
    """The folders of these tests, but not of more than a line can hold."""
    every = sorted({str(PurePosixPath(test.partition("::")[0]).parent) for test in ids})
    return ", ".join([*every[:FOLDERS_SHOWN], *(["..."] if every[FOLDERS_SHOWN:] else [])])


def counted(ids: Sequence[str]) -> str:
    """How many tests, and how many files are skipped whole."""
    files = sum("::" not in test for test in ids)
    parts = [str(len(ids) - files)] if len(ids) > files else []
    return " + ".join(parts + ([f"{files} file{'s' * (files > 1)}"] if files else []))
