"""The frames that systems send on links, recorded from small runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from random import Random
from typing import Any, cast

from agglab.testbed.run.assembly import conductor
from agglab.testbed.run.programs.prepare import prepare
from agglab.testbed.scenario import ResolvedScenario
from agglab.testbed.virtual import VirtualBackend, built
from agglab.verification.foreign.scenario import resolved
from agglab.verification.trial import Silent

FRAMES_MAX = 300
ELEMENTS = 4000


@cache
def recorded(system: str) -> Sequence[bytes]:
    """Returns at most FRAMES_MAX frames of a run of this system. Every call returns the same
    frames."""
    frames = _sent_in(resolved(system, ELEMENTS, seed=1))
    return Random(f"recorded {system}").sample(frames, min(FRAMES_MAX, len(frames)))


def _sent_in(run: ResolvedScenario) -> list[bytes]:
    silent = cast(Any, Silent())
    jsons = {switch: program.json for switch, program in prepare(run).programs.items()}
    frames: list[bytes] = []
    with VirtualBackend(run.graph, run.seed, built(jsons)) as backend:
        backend.tap(lambda _, frame: frames.append(frame))
        outcome = conductor(run, backend, silent, silent).run()
        assert not any(result.failure for result in outcome.jobs), run.system.name
        return frames
