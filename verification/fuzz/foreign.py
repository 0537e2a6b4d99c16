"""Foreign packets during a system's run, as a kind of input of the fuzzer. Each input is one run of
one system."""

from __future__ import annotations

import json
import random

from agglab.testbed import systems
from agglab.verification.foreign.recorded import recorded
from agglab.verification.foreign.scenario import names
from agglab.verification.foreign.trial import attempt, build
from p4native.verification.corpus import Corpus
from p4native.verification.fuzz import Target

FRAMES = 2000
"""The number of foreign frames in one run."""
RUNS_OF_EACH = 8
"""The average number of runs of each system, which therefore gets 10,000 frames and more."""
RUNS = RUNS_OF_EACH * len(systems.in_virtual_time(systems.built_in()))


class ForeignTarget(Target):
    """The target for runs in which a host outside the job, the outsider, sends frames. No sum may
    change, and each frame must be counted."""

    name = "foreign"
    inputs = RUNS

    def __init__(self, corpus: Corpus) -> None:
        super().__init__(corpus)
        for name in names():
            recorded(name)  # before anybody waits for an input

    def draw(self, rng: random.Random) -> str:
        return json.dumps({"system": rng.choice(names()), "seed": rng.randrange(1 << 32)})

    def prepare(self, text: str) -> None:
        drawn = json.loads(text)
        build(drawn["system"], FRAMES, drawn["seed"])

    def survive(self, text: str) -> None:
        drawn = json.loads(text)
        troubles = attempt(drawn["system"], FRAMES, drawn["seed"]).troubles
        if troubles:
            raise AssertionError("; ".join(troubles))
