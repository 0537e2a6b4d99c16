"""Implements `agglab systems --measure`, which runs every system on every case."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from agglab.testbed import systems
from agglab.testbed.base.exit_codes import FAILED, PASSED
from agglab.testbed.base.terminal import put
from agglab.testbed.cli.survey.cases import cases
from agglab.testbed.cli.survey.measure import measure, scenario_text, usable
from agglab.testbed.cli.survey.page import markdown, page
from agglab.testbed.scenario import load
from p4native.common.printable import plain


def main(settings: Sequence[str], out: Path | None) -> int:
    """Measures all systems. out: the file for the page; if it is None, the tables are printed.
    Returns PASSED, FAILED if a run did not end as it should, or INVALID if the page cannot be
    written. Raises ScenarioError for wrong settings."""
    scenario = scenario_text(settings)
    _check(scenario)
    tables = []
    known = usable(systems.names(), _tell)
    asked = [case for case in cases() if case.on_page or out is None]
    for table in measure(known, asked, settings, _tell):
        tables.append(table)
        if out is None:
            print(plain(f"{table.case.title}\n\n{markdown(table)}\n"), flush=True)
    if out is not None:
        if code := put(page(known, tables, scenario), out):
            return code
        print(plain(str(out)))
    return FAILED if any(row.broken for table in tables for row in table.rows) else PASSED


def _check(scenario: str) -> None:
    """Raises ScenarioError if the scenario is wrong for every system."""
    with tempfile.TemporaryDirectory(prefix="agglab-survey-") as folder:
        file = Path(folder) / "survey.yaml"
        file.write_text(scenario)
        load(file)


def _tell(line: str) -> None:
    print(plain(line), file=sys.stderr, flush=True)
