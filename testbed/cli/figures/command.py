"""Implements `agglab figures`, which runs these scenarios and writes one page of what they show."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from agglab.testbed.base import terminal
from agglab.testbed.base.errors import MachineLacks
from agglab.testbed.base.exit_codes import (
    FAILED,
    INTERRUPTED,
    LACKING,
    PASSED,
    UNDECIDED,
    together,
)
from agglab.testbed.cli import arguments
from agglab.testbed.cli.figures.page import ShownFigure, page
from agglab.testbed.cli.figures.tested import Untested, untested
from agglab.testbed.cli.figures.variants import Variant, find, names, variant
from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.run.result_folder import ResultsError
from agglab.testbed.scenario import load
from p4native.common.printable import plain

PAGE = "index.html"
ENDINGS = {
    LACKING: "this machine lacks something that the figure needs",
    UNDECIDED: "UNDECIDED",
}
"""What is said about a figure that did not pass, by exit code. All others have failed."""


def main(words: Sequence[str]) -> int:
    """Runs `agglab figures`. Returns 0 if every relation that the figures expect was tested as a
    whole on one of the clocks and holds, and 1 if one does not hold. Otherwise returns the exit
    code of the first run that did not pass, or 3 if a relation was not tested as a whole."""
    options = arguments.parse("figures", arguments.figures, words)
    out = terminal.outlet(sys.stdout)
    files = [find(name) for name in options.names or names()]
    clocks = arguments.CLOCKS if options.clock == "both" else (options.clock,)
    chosen = [variant(file, clock, options.long) for file in files for clock in clocks]
    root = Path(options.results)
    codes: dict[Variant, int] = {}
    for each in () if options.draw else chosen:
        print(f"figure {each.name}, {each.clock}", file=out, flush=True)
        codes[each] = _run(each, root, out)
        if codes[each] == INTERRUPTED:
            return INTERRUPTED
    shown = [ShownFigure(each.name, each.clock, latest(root, each), each.file) for each in chosen]
    written = root / PAGE
    written.write_text(page(shown), encoding="utf-8")
    missed = _not_tested(codes, root)
    for line in [*_endings(codes), *missed]:
        print(plain(line), file=out)
    print(plain(f"page  {written}"), file=out)
    return together([*codes.values(), *(LACKING for _ in missed)])


def _not_tested(codes: Mapping[Variant, int], root: Path) -> list[str]:
    """Returns a line for each figure whose runs passed without testing its whole relation."""
    passed = [each for each, code in codes.items() if code == PASSED]
    left_out: dict[str, list[Untested]] = {}
    for each in passed:
        left_out.setdefault(each.name, []).append(untested(each.file, latest(root, each)))
    return [
        f"figure {name}: the relation was not tested as a whole: {of_runs[0]}"
        for name, of_runs in left_out.items()
        if all(of_runs)
    ]


def _endings(codes: Mapping[Variant, int]) -> Iterator[str]:
    """Yields a line for each figure that was run and did not pass. The lines remind of reasons that
    were printed far above."""
    for each, code in codes.items():
        if code != PASSED:
            yield f"figure {each.name}, {each.clock}: {ENDINGS.get(code, 'FAILED')} (see above)"


def latest(root: Path, chosen: Variant) -> Path:
    """Returns the folder of the last run of a figure on its clock."""
    return root / chosen.clock / chosen.name / "latest"


def _run(chosen: Variant, root: Path, out: TextIO) -> int:
    folder = root / chosen.clock
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{chosen.name}.yaml"
        file.write_text(chosen.text, encoding="utf-8")
        return run(load(file, chosen.settings), folder, chosen.settings, out)
    except MachineLacks as error:
        print(plain(str(error)), file=sys.stderr)
        return LACKING
    except (OSError, ResultsError) as error:
        print(plain(f"cannot write results: {error}"), file=sys.stderr)
        return FAILED
