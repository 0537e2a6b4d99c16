"""The runs of one point of a suite, and whether an earlier run of the suite has finished them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from agglab.testbed.base.exit_codes import FAILED
from agglab.testbed.run.programs.prepare import Prepared
from agglab.testbed.run.result_folder import RunFolder
from agglab.testbed.scenario import Point

DONE = "done.json"
"""The name of a file in the folder of a finished point. It is written last, and has hashes of the
point's inputs and of its results."""


@dataclass(frozen=True)
class Group:
    """One point of a suite. runs: its runs, each with the programs and entries of its switches.
    folder: the folder for its results. number: the point's number, counted from 0. key: a hash of
    everything on which the results depend."""

    number: int
    label: str
    runs: tuple[tuple[Point, Prepared], ...]
    folder: RunFolder
    key: str

    @property
    def is_done(self) -> bool:
        """Whether the point was finished with the same scenario, programs and code, and its results
        have not changed since."""
        try:
            done = json.loads((self.folder.path / DONE).read_text())
            return bool(done == self._done())
        except (OSError, ValueError):
            return False

    def finish(self) -> None:
        """Marks the point as finished. All its results must have been written."""
        self.folder.write_json(DONE, self._done())

    def fail(self, reason: str) -> None:
        """Writes into the folder of each unfinished run of the point why it has no result."""
        for point, _ in self.runs:
            folder = RunFolder(self.folder.path / point.contender, new=False)
            if folder.path.is_dir():
                folder.fail(reason)

    def _done(self) -> dict[str, object]:
        """Returns the content of the file DONE, which marks the point as finished. Raises OSError
        if a run has no results."""
        names = [point.contender for point, _ in self.runs]
        return {"key": self.key, "metrics_sha256": {name: self._sha256(name) for name in names}}

    def _sha256(self, name: str) -> str:
        metrics = self.folder.path / name / "metrics.json"
        return hashlib.sha256(metrics.read_bytes()).hexdigest()


def ends_sweep(code: int) -> bool:
    """Returns whether no further point is begun after one with this exit code. That is the case if
    the machine lacks something, or the user interrupts the sweep. A point that was aborted for a
    reason of its own does not keep the others from running."""
    return code > FAILED


def progress_text(ended: int, left: int, left_s: float) -> str:
    """Returns a text with how many points of a sweep have ended, and how long the others will take:
    `3 of 10, about 20 s left`."""
    more = f", about {left_s:.0f} s left" if left else ""
    return f"{ended} of {ended + left}{more}"
