"""Says which part of a figure's relation a run did not test, because contenders were left out that
its clock or its machine cannot run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agglab.testbed.results.recorded_scenario import RecordedScenario


@dataclass(frozen=True)
class Untested:
    """What a run left out of a figure. contenders: names. expectations: the metrics about them that
    the figure expects, such as `growth.gloo.allreduce.time_s.median`."""

    contenders: tuple[str, ...] = ()
    expectations: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.contenders or self.expectations)

    def __str__(self) -> str:
        without = f"the run was made without {' and '.join(self.contenders)}"
        if not self.expectations:
            return without
        return f"{', '.join(self.expectations)} ({without})"


EVERYTHING_TESTED = Untested()


def untested(file: Path, folder: Path) -> Untested:
    """Returns what the figure in `file` states and the run in `folder` left out. Raises OSError."""
    figure, run = (
        RecordedScenario(path.read_text(encoding="utf-8", errors="replace")).tree
        for path in (file, folder / "scenario.yaml")
    )
    return Untested(_only_in(figure, run, "compare"), _only_in(figure, run, "expect"))


def _only_in(figure: Mapping[str, Any], run: Mapping[str, Any], section: str) -> tuple[str, ...]:
    wanted, kept = (tree.get(section) for tree in (figure, run))
    known = kept if isinstance(kept, Mapping) else {}
    names = wanted if isinstance(wanted, Mapping) else {}
    return tuple(str(name) for name in names if name not in known)
