"""The runs of one point of a suite, and whether an earlier run of the suite has finished them."""

from __future__ import annotations

import json
from dataclasses import dataclass

from agglab.testbed.prepare import Prepared
from agglab.testbed.record import RunFolder
from agglab.testbed.scenario import Point

DONE = "done.json"
"""In the folder of a point that is finished: what it was made of. Written last."""


@dataclass(frozen=True)
class Group:
    """One point: its runs with what their switches are given, and where they go. number: from 0."""

    number: int
    label: str
    runs: tuple[tuple[Point, Prepared], ...]
    folder: RunFolder
    key: str

    @property
    def is_done(self) -> bool:
        """Whether it was finished with the same scenario, programs and code."""
        try:
            done = json.loads((self.folder.path / DONE).read_text())
        except (OSError, ValueError):
            return False
        return isinstance(done, dict) and done.get("key") == self.key

    def finish(self) -> None:
        """Its results are all there."""
        self.folder.write_json(DONE, {"key": self.key})
