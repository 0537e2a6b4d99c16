"""`agglab report`: writes the report of a result folder again, and its charts as files."""

from __future__ import annotations

import argparse
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agglab.testbed import report
from agglab.testbed.base.exit_codes import INVALID, LACKING, PASSED
from agglab.testbed.base.problems import nearest, quote
from agglab.testbed.report import chart_files, vega
from agglab.testbed.results.recorded_scenario import RecordedScenario
from agglab.testbed.scenario import load
from p4native.common.printable import plain


class WrongWords(Exception):
    """Raised if the command line does not fit the folder. The message is one line."""


def main(options: argparse.Namespace) -> int:
    """Runs `agglab report` and returns its exit code. Raises ScenarioError or MachineLacks."""
    folder = Path(options.folder)
    if options.format:
        vega.check()
    section = _section(options.figure)
    try:
        charts = report.figures(folder, section)
        asked = _asked(charts, options)
        page = report.write(folder, section)
        written = list(chart_files.write(folder, asked, options.format))
    except (report.NoResults, WrongWords) as error:
        return _fail(INVALID, str(error))
    for path in (page, *written):
        print(plain(str(path)))
    if report.formats(folder, section) and not vega.is_installed():
        print(f"note: no files of `figure.format`: {vega.LACK} is missing", file=sys.stderr)
    if options.open and not webbrowser.open(page.resolve().as_uri()):
        return _fail(LACKING, "no browser was found: open the file named above in a browser")
    return PASSED


def _section(file: Path | None) -> Any:
    """Returns the section `figure` of a scenario file as plain values, after the whole file was
    checked; None without a file."""
    if file is None:
        return None
    load(file)
    return RecordedScenario(file.read_text(encoding="utf-8")).tree.get("figure", {})


def _asked(charts: Sequence[report.Figure], options: argparse.Namespace) -> list[report.Figure]:
    """Returns the charts that are to be written as files."""
    if not options.format:
        if options.chart or options.fonts:
            raise WrongWords("--chart and --fonts are about files: add --format pdf, for example")
        return []
    if options.fonts:
        if not options.fonts.is_dir():
            raise WrongWords(f"--fonts {options.fonts}: is not a folder")
        vega.add_fonts(options.fonts)
    names = [chart.name for chart in charts]
    for name in options.chart:
        if name not in names:
            near = nearest(name, names)
            raise WrongWords(f"no chart {quote(name)}{near}; allowed: {', '.join(names)}")
    return [chart for chart in charts if not options.chart or chart.name in options.chart]


def _fail(code: int, text: str) -> int:
    print(plain(text), file=sys.stderr)
    return code
