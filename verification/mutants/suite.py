"""Runs the checks of all mutants. Several mutants run at a time, each in a separate workspace."""

from __future__ import annotations

import queue
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from agglab.verification.mutants import checks
from agglab.verification.mutants.catalogue import (
    CHECKS,
    EXPLORE,
    SCENARIO,
    UNIT,
    CatalogueError,
    Mutant,
)
from agglab.verification.mutants.checks import Found, Selection
from agglab.verification.mutants.workspace import Workspace

CONTROL = "control"
NO_HINTS: Mapping[str, Mapping[str, str]] = {}


@dataclass(frozen=True)
class Result:
    """What the checks found out about one mutant."""

    mutant: Mutant
    found: Mapping[str, Found] = field(default_factory=dict)
    invalid: str | None = None

    @property
    def survived(self) -> tuple[str, ...]:
        """The checks that had to catch the mutant and did not."""
        return tuple(check for check, found in self.found.items() if found.by is None)

    @property
    def good(self) -> bool:
        return self.invalid is None and not self.survived

    def __str__(self) -> str:
        if self.invalid:
            return f"{self.mutant.id}: INVALID, {self.invalid}"
        said = [found.by or f"SURVIVED {check}" for check, found in self.found.items()]
        return f"{self.mutant.id}: {'; '.join(said)}"


Keep = Callable[[Result], None]


def ignore(result: Result) -> None:
    """Does nothing with a result. Callers that only need the list of all results pass this function
    as `keep`."""


class ControlFailed(Exception):
    """Raised if a check already fails on the unchanged code, and so could not show that it catches
    a mutant."""


class Suite:
    """Runs the checks of many mutants. wanted: the checks to run. out: receives a line for each
    mutant when it ends. hints: for each mutant and check, what caught the mutant in an earlier run,
    so that it can be tried first."""

    def __init__(
        self,
        repository: Path,
        wanted: Sequence[str],
        jobs: int,
        out: TextIO | None,
        hints: Mapping[str, Mapping[str, str]] = NO_HINTS,
    ) -> None:
        self._repository = repository
        self._wanted = [check for check in CHECKS if check in wanted]
        self._jobs = jobs
        self._out = out
        self._hints = hints
        self._begun_s = time.monotonic()
        self._spaces: queue.SimpleQueue[Workspace] = queue.SimpleQueue()

    def run(self, mutants: Sequence[Mutant], keep: Keep = ignore) -> list[Result]:
        """Runs the mutants and returns their results in the catalogue's order. Each result is
        passed to `keep` when it is available.

        Raises ControlFailed and NoRepository. If an exception or interrupt ends this method, no
        further mutant begins, running processes have been ended, and the copies of the repository
        have been removed.
        """
        with tempfile.TemporaryDirectory(prefix="mut-") as folder:
            root = Path(folder)
            spaces = [
                Workspace(self._repository, root / str(number), root / "cache")
                for number in range(self._jobs)
            ]
            for space in spaces:
                self._spaces.put(space)
            with ThreadPoolExecutor(self._jobs) as pool:
                try:
                    self._control(pool, mutants)
                    return self._all(pool, mutants, keep)
                except BaseException:
                    for space in spaces:
                        space.stop()
                    pool.shutdown(cancel_futures=True)
                    raise

    def _control(self, pool: ThreadPoolExecutor, mutants: Sequence[Mutant]) -> None:
        """Runs each needed check once on the unchanged code. Raises ControlFailed."""
        tests = list(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
        judged = [mutant for mutant in mutants if SCENARIO in mutant.checks]
        scenarios = list(dict.fromkeys(name for mutant in judged for name in mutant.scenarios))
        searched = sorted({mutant.system for mutant in mutants if EXPLORE in mutant.checks})
        needed = [c for c in self._wanted if any(c in mutant.checks for mutant in mutants)]
        shares = [tests[n :: self._jobs] for n in range(min(self._jobs, len(tests)))]
        parts = {
            UNIT: [Selection(share, "", []) for share in shares],
            EXPLORE: [Selection([], system, []) for system in searched],
            SCENARIO: [Selection([], "", scenarios)],
        }
        work = {
            pool.submit(self._one_control, check, part): check
            for check in needed
            for part in parts[check]
        }
        for future in as_completed(work):
            found = future.result()
            if why := found.by or found.invalid:
                raise ControlFailed(f"without any fault, {work[future]}: {why}")
        self._say(f"{CONTROL}: {', '.join(needed)} pass without a fault")

    def _one_control(self, check: str, part: Selection) -> Found:
        space = self._spaces.get()
        try:
            return checks.run(check, space, part)
        finally:
            self._spaces.put(space)

    def _all(self, pool: ThreadPoolExecutor, mutants: Sequence[Mutant], keep: Keep) -> list[Result]:
        work = [pool.submit(self._one, mutant) for mutant in mutants]
        begun_s = time.monotonic()
        for number, future in enumerate(as_completed(work), 1):
            left_s = (time.monotonic() - begun_s) / number * (len(work) - number)
            self._say(f"{number} of {len(work)}, {left_s:.0f} s left: {future.result()}")
            keep(future.result())
        return [future.result() for future in work]

    def _one(self, mutant: Mutant) -> Result:
        space = self._spaces.get()
        try:
            with space.mutated(mutant):
                invalid = checks.validity(space, mutant.file).invalid
                return Result(mutant, invalid=invalid) if invalid else self._checked(space, mutant)
        except CatalogueError as error:
            return Result(mutant, invalid=str(error))
        finally:
            self._spaces.put(space)

    def _checked(self, space: Workspace, mutant: Mutant) -> Result:
        found: dict[str, Found] = {}
        hints = self._hints.get(mutant.id, {})
        selection = Selection(mutant.tests, mutant.system, mutant.scenarios)
        for check in self._wanted:
            if check in mutant.checks:
                told = hints.get(check, "")
                found[check] = checks.run(check, space, selection, told)
                if found[check].invalid:
                    return Result(mutant, invalid=found[check].invalid)
        return Result(mutant, found)

    def _say(self, text: str) -> None:
        if self._out:
            print(f"{time.monotonic() - self._begun_s:4.0f} s  {text}", file=self._out, flush=True)
