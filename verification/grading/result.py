"""What grading a submission comes to: plain values, which a judging process sends as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from agglab.verification.grading.lab import COMPILES, Lab, Part


@dataclass(frozen=True)
class Judged:
    """The verdict on one case. story: lines about what went wrong. seed: of the schedule that went
    wrong. replay: the command that shows it again. remark: the id of what is said instead of the
    case's own diagnosis; empty if nothing is."""

    case: str
    passed: bool
    story: tuple[str, ...] = ()
    seed: int | None = None
    replay: str = ""
    remark: str = ""

    @property
    def message(self) -> str:
        """The id of what is said to it if it is not passed."""
        return self.remark or self.case

    def line(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def of(line: str) -> Judged:
        values = json.loads(line)
        return Judged(**{**values, "story": tuple(values["story"])})


@dataclass(frozen=True)
class PartResult:
    """The points of a part. failed: the ids of its cases that did not pass."""

    name: str
    points: float
    of: float
    failed: tuple[str, ...]


@dataclass(frozen=True)
class Grade:
    """The grade of one submission. judged: the verdicts by case; a case that is absent was not
    judged, which counts as failed. ended: why judging ended early; empty if it did not."""

    lab: Lab
    submission: str
    judged: Mapping[str, Judged]
    ended: str = ""

    @property
    def parts(self) -> list[PartResult]:
        return [self._part(part) for part in self.lab.parts]

    @property
    def points(self) -> float:
        return round(sum(part.points for part in self.parts), 4)

    @property
    def is_full(self) -> bool:
        return all(not part.failed for part in self.parts)

    @property
    def failed(self) -> str:
        """The id of the first case that did not pass; empty if all passed."""
        return next((case for part in self.parts for case in part.failed), "")

    @property
    def says(self) -> str:
        """The diagnosis: what the exercise says to the first case that did not pass."""
        is_unread = self.failed == COMPILES and self.ended
        return "" if is_unread else self.said_to(self.failed)

    def said_to(self, case: str) -> str:
        """Returns what the exercise says to a submission that a case does not pass; empty for a
        case that does not exist."""
        verb = "does not compile" if self.lab.kind == ".p4" else "cannot be used"
        texts = {**self.lab.texts, COMPILES: f"{self.lab.file} {verb}."}
        return texts.get(self.verdict(case).message, "")

    def verdict(self, case: str) -> Judged:
        """Returns the verdict on a case, also if it was not judged."""
        return self.judged.get(case, Judged(case, False, (self.ended or "It was not judged.",)))

    def _part(self, part: Part) -> PartResult:
        failed = tuple(name for name in part.names if not self.verdict(name).passed)
        share = 1 - len(failed) / len(part.names)
        return PartResult(part.name, round(part.points * share, 4), part.points, failed)
