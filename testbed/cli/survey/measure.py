"""Runs the systems on the cases, one run after the other."""

from __future__ import annotations

import io
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from pathlib import Path

from agglab.testbed import systems
from agglab.testbed.base.errors import CompileError
from agglab.testbed.base.exit_codes import INTERRUPTED
from agglab.testbed.cli.survey.cases import LOSS, SCENARIO, Case
from agglab.testbed.cli.survey.figures import Figures, figures
from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.run.programs.program import source_lines
from agglab.testbed.run.result_folder import RunFolder
from agglab.testbed.scenario import ScenarioError, Suite, load
from agglab.testbed.scenario.load import with_settings
from agglab.testbed.scenario.workloads import KINDS
from agglab.testbed.schema.document import Scalar, changed, nodes_at, parse, written
from agglab.testbed.schema.workload_section import Workload
from agglab.testbed.systems.base import System
from p4native.common.printable import one_line

REASON_MAX = 300
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Row:
    """The results of a system, or of one of its variants, on a case: without losses and with LOSS.
    variant: the variant's name. If the system does not support the dtype of the case, the name
    includes the dtype that was used. lines: the number of lines of code that its switches run; None
    if it could not be determined."""

    system: System
    variant: str
    lossless: Figures
    lossy: Figures
    lines: int | None = None

    @property
    def name(self) -> str:
        return f"{self.system.name}, {self.variant}" if self.variant else self.system.name

    @property
    def broken(self) -> str:
        """Why one of the two runs did not end as it should; empty if both did."""
        return self.lossless.broken or self.lossy.broken


@dataclass(frozen=True)
class Table:
    case: Case
    rows: Sequence[Row]


def usable(names: Sequence[str], tell: Tell) -> list[System]:
    """Returns the systems with these names. Reports each system that cannot be used, in one
    line."""
    found = []
    for name in names:
        try:
            found.append(systems.find(name))
        except systems.UnknownSystem as error:
            tell(f"{name}: skipped, because it cannot be used: {error}")
    return found


def is_measured(system: System) -> bool:
    """Returns whether the system runs in virtual time."""
    return "virtual" in system.abilities.clocks


KIND = ("workload", "kind")


def scenario_text(settings: Sequence[str]) -> str:
    """Returns SCENARIO with these settings, without the keys that its kind of workload does not
    read. Raises ScenarioError."""
    if not settings:
        return SCENARIO
    root = with_settings(parse(SCENARIO, "survey"), settings)
    stated = [node.text for node in nodes_at(root, KIND) if isinstance(node, Scalar)]
    for kind in (KINDS[text] for text in stated if text in KINDS):
        for name in kind.unread:
            root = changed(root, ["workload", name], lambda _: None)
    return written(root)


def measure(
    known: Sequence[System], cases: Sequence[Case], settings: Sequence[str], tell: Tell
) -> Iterator[Table]:
    """Yields a table for each case that a system supports in virtual time. settings: the user's
    settings, applied after those of the case. tell: a function that is called with a line for each
    run. Raises KeyboardInterrupt if a run was interrupted."""
    able = [system for system in known if is_measured(system)]
    for case in cases:
        doing = [system for system in able if _does(system, case)]
        rows = [
            _row(case, system, variant, settings, tell)
            for system in doing
            for variant in system.variants
        ]
        if rows:
            yield Table(case, rows)


def _does(system: System, case: Case) -> bool:
    """Returns whether the system supports the case's kind of workload with at least one dtype."""
    able = system.abilities
    return case.kind in able.workloads and not set(able.dtypes).isdisjoint(KINDS[case.kind].dtypes)


def _row(case: Case, system: System, variant: str, settings: Sequence[str], tell: Tell) -> Row:
    asked = [*case.asked, *settings]
    own = [f"system={system.name}", *system.variants[variant]]
    if (dtype := _dtype(asked)) not in system.abilities.dtypes:
        dtype = system.abilities.dtypes[0]
        own.append(f"workload.dtype={dtype}")
        variant = ", ".join(filter(None, (variant, dtype)))
    found, lines = [], None
    with tempfile.TemporaryDirectory(prefix="agglab-survey-") as name:
        folder = Path(name)
        file = folder / "survey.yaml"
        file.write_text(scenario_text(asked))
        for chance in ("0%", LOSS):
            began = time.monotonic()
            try:
                suite = load(file, [*own, f"links.loss={chance}"])
                lines = _lines(suite)
                found.append(_figures(suite, folder))
            except (ScenarioError, CompileError) as error:
                why = str(error).replace(f"{file}:", "line ")
                found.append(Figures(broken=one_line(why, REASON_MAX)))
            what = f"{case.kind}, {system.name}{variant and f', {variant}'}, {chance} loss"
            tell(f"{what}: {_outcome(found[-1])} ({time.monotonic() - began:.1f} s)")
    lossless, lossy = found
    return Row(system, variant, lossless, lossy, lines)


def _dtype(settings: Sequence[str]) -> str:
    """Returns the dtype for which the scenario asks, or the default."""
    found = nodes_at(with_settings(parse(SCENARIO, "survey"), settings), ["workload", "dtype"])
    if not found:
        return Workload().dtype
    return found[0].text if isinstance(found[0], Scalar) else ""


def _lines(suite: Suite) -> int:
    """Returns the number of lines of code of all programs on a run's switches."""
    programs = {program.path for program in suite.points[0].resolved.programs.values()}
    return sum(map(source_lines, programs))


def _figures(suite: Suite, folder: Path) -> Figures:
    with redirect_stderr(io.StringIO()):  # its metrics say what went wrong
        code = run(suite, folder, (), io.StringIO())
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    metrics = RunFolder(folder / suite.name / "latest", new=False).metrics()
    return figures(metrics, suite.points[0].resolved.jobs)


def _outcome(found: Figures) -> str:
    time_ms = "" if found.time_s is None else f"{found.time_s * 1e3:.1f} ms, "
    return f"{time_ms}{found.broken or ('exact' if found.exact else 'NOT EXACT')}"
