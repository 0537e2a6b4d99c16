"""The checks that may catch a fault: the unit tests, the schedule search, and the shipped
scenarios. Each runs in a workspace and reports what noticed the fault."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agglab.verification.mutants.catalogue import EXPLORE, SCENARIO, UNIT
from agglab.verification.mutants.workspace import Ended, Workspace

SCHEDULES = 2000
LIMITS_S = {UNIT: 900.0, EXPLORE: 900.0, SCENARIO: 300.0}
"""The time limit of each check. It is many times the time that the check takes without a fault on
two busy processors, so a check that reaches it hangs."""
COMPILE_LIMIT_S = 120.0
TEXT_MAX = 90

PYTEST = ("-m", "pytest", "-x", "-q", "--no-header", "--tb=no", "-rfE", "--hypothesis-seed=0")
PLACE = r"(?:(?:toolchain/)?tests|systems/\w+/tests)/"
"""Where tests lie."""
FAILED = re.compile(rf"^(FAILED|ERROR) ({PLACE}\S+?::.+?)(?: - .*)?$", re.MULTILINE)
COLLECTION = re.compile(rf"^ERROR ({PLACE}\S+\.py)(?: - (.*))?$", re.MULTILINE)
NODE = re.compile(rf"{PLACE}\S+?\.py::.+")
INCLUDE = re.compile(r'^#include "(.+)"', re.MULTILINE)
CRASHED_IN = re.compile(rf'File "[^"]*?/({PLACE}[^"]+)", line \d+ in (test_\w+)')


@dataclass(frozen=True)
class Found:
    """What a check found out about a fault. by: the test, schedule or scenario that caught the
    fault, or None. invalid: the reason why no check can judge the fault, if there is one."""

    by: str | None = None
    invalid: str | None = None


def validity(workspace: Workspace, file: str) -> Found:
    """Compiles the file that was changed. If it does not compile, the answer's `invalid` says
    why."""
    for words in _compile_words(workspace, file):
        done = workspace.python(words, COMPILE_LIMIT_S)
        if done.code != 0:
            return Found(invalid=f"does not compile: {_last_line(done.output)}")
    return Found()


BUILD_SYSTEM = "from agglab.systems.{} import endpoint; endpoint.build()"
BUILDS = {
    "hosts": "from agglab.hosts.library import built; built()",
    "toolchain": "from p4native.switch import loop_library; loop_library()",
    "testbed": (
        "from agglab.testbed.systems.summing import native as sums;"
        "from agglab.testbed.virtual import native; native.load(); sums.load()"
    ),
}
"""The code that compiles the C files below a top-level folder, or in the folder of a system."""


def _compile_words(workspace: Workspace, file: str) -> Iterator[list[str]]:
    """Yields the commands that compile a file. If P4 programs include the file, the commands
    compile all these programs."""
    suffix = Path(file).suffix
    if suffix == ".p4":
        out = workspace.folder / "build" / "mutant.json"
        out.parent.mkdir(exist_ok=True)
        for name in programs_with(workspace.folder / "p4", Path(file).name):
            sizes = ["-DLANES=6", "-DSLOTS=8"]
            yield ["-m", "p4native.compiler", f"p4/{name}", *sizes, "-o", str(out)]
    elif suffix in (".c", ".h"):
        part, name, *_ = Path(file).parts
        yield ["-c", BUILD_SYSTEM.format(name) if part == "systems" else BUILDS[part]]
    else:
        assert suffix == ".py", file
        yield ["-m", "py_compile", file]


def programs_with(folder: Path, name: str) -> list[str]:
    """Returns the P4 programs in a folder that have this name or include a file of this name."""
    programs = sorted(folder.glob("*.p4"))
    return [program.name for program in programs if name in _read_by(program)]


def _read_by(source: Path) -> set[str]:
    """Returns the names of all P4 files that a compiler reads for this program, including the
    program's own."""
    found = {source.name}
    for include in INCLUDE.findall(source.read_text(encoding="utf-8")):
        found |= _read_by(source.parent / include)
    return found


def unit(workspace: Workspace, tests: Sequence[str], hint: str = "") -> Found:
    """Finds the first test that fails, hangs or crashes. hint: the test that caught the fault in an
    earlier run, if any. It is tried first and alone."""
    if NODE.fullmatch(hint) and (found := _tested(workspace, [hint])).by:
        return found
    return _tested(workspace, tests)


def _tested(workspace: Workspace, tests: Sequence[str]) -> Found:
    done = workspace.python([*PYTEST, *tests], LIMITS_S[UNIT])
    if done.code == 0:
        return Found()
    if failed := FAILED.search(done.output):
        return Found(by=failed[2])
    if broken := COLLECTION.search(done.output):
        return Found(invalid=f"{broken[1]} cannot be read: {_shortened(broken[2] or '')}")
    if crashed := CRASHED_IN.search(done.output):
        return Found(by=f"{crashed[1]}::{crashed[2]} (the interpreter crashed)")
    if done.code is None:
        return Found(by=_timeout(UNIT))
    return Found(invalid=f"pytest ended with {done.code}: {_last_line(done.output)}")


def explore(workspace: Workspace, system: str, schedules: int = SCHEDULES) -> Found:
    """Finds the first seed for which a schedule of faults makes the system fail."""
    words = ["-m", "agglab.verification.mutants.first_finding", system, str(schedules)]
    done = workspace.python(words, LIMITS_S[EXPLORE])
    if done.code is None:
        return Found(by=_timeout(EXPLORE))
    try:
        told = json.loads(_last_line(done.output, len(done.output)))
    except ValueError:
        return Found(by=f"the search ended with {done.code}: {_last_line(done.output)}")
    if told["seed"] is None:
        return Found()
    return Found(by=f"seed {told['seed']}: {_shortened(told['finding'])}")


def scenario(workspace: Workspace, names: Sequence[str], hint: str = "") -> Found:
    """Finds the first scenario that does not pass in virtual time. hint: what caught the fault in
    an earlier run. If it was one of these scenarios, that scenario is tried first."""
    results = workspace.folder / "results"
    for name in sorted(names, key=lambda name: not hint.startswith(f"{name}: ")):
        setting = ["--set", "backend=virtual", "--results", str(results)]
        done = workspace.python(["-m", "agglab.testbed", "run", name, *setting], LIMITS_S[SCENARIO])
        if done.code is None:
            return Found(by=f"{name}: {_timeout(SCENARIO)}")
        if done.code:
            return Found(by=f"{name}: {_why(results / name, done)}")
    return Found()


def _why(results: Path, done: Ended) -> str:
    """Returns the reason that a failed run wrote into its results or, without one, its exit
    code."""
    try:
        metrics = json.loads((results / "latest" / "metrics.json").read_text(encoding="utf-8"))
        return _shortened(metrics["reason"] or f"exit code {done.code}")
    except (OSError, ValueError, KeyError):
        return f"exit code {done.code}: {_last_line(done.output)}"


def _timeout(check: str) -> str:
    return f"timeout of {LIMITS_S[check]:.0f} s"


def _last_line(text: str, most: int = TEXT_MAX) -> str:
    lines = text.strip().splitlines() or ["nothing was printed"]
    return _shortened(lines[-1], most)


def _shortened(text: str, most: int = TEXT_MAX) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"


@dataclass(frozen=True)
class Selection:
    """The checks to run: tests, the system whose schedules are searched, and scenarios."""

    tests: Sequence[str]
    system: str
    scenarios: Sequence[str]


def run(check: str, workspace: Workspace, selection: Selection, hint: str = "") -> Found:
    """Runs one check by its name. hint: what caught the fault in an earlier run of this check, or
    an empty string."""
    if check == UNIT:
        return unit(workspace, selection.tests, hint)
    if check == EXPLORE:
        return explore(workspace, selection.system)
    return scenario(workspace, selection.scenarios, hint)
