"""The target for scenarios in which lines and values were changed."""

from __future__ import annotations

import contextlib
import random
import re
import tempfile
from pathlib import Path

from agglab.testbed.base.paths import SCENARIO_FOLDER
from agglab.testbed.scenario import ScenarioError, load
from p4native.verification.corpus import Corpus
from p4native.verification.fuzz import Target

VALUE_TEXT = """1 0 -1 1e9 1mbit 5ms 1% true auto rack x [] {} [1,2] {a:1} null 0x10 1_000 .nan
2026-01-01 99999999999999999999999 "" *a &a !!python/object:os.system"""


class ScenarioTarget(Target):
    """The target for scenarios in which lines and values were changed."""

    name = "scenario"
    inputs = 1000
    VALUES = VALUE_TEXT.split()

    def __init__(self, corpus: Corpus) -> None:
        super().__init__(corpus)
        self.texts = [path.read_text() for path in sorted(SCENARIO_FOLDER.glob("*.yaml"))]

    def draw(self, rng: random.Random) -> str:
        lines = rng.choice(self.texts).splitlines()
        for _ in range(rng.randrange(1, 5)):
            at = rng.randrange(len(lines))
            key, colon, _ = lines[at].partition(":")
            which = rng.randrange(5)
            if which == 0:
                lines[at] = f"{key}{colon} {rng.choice(self.VALUES)}"
            elif which == 1:
                del lines[at]
            elif which == 2:
                lines.insert(at, rng.choice(rng.choice(self.texts).splitlines()))
            elif which == 3:
                lines[at] = " " * rng.randrange(6) + lines[at].strip()
            else:
                lines[at] = re.sub(
                    r"\d+", lambda m: rng.choice([m[0] + "0", "0", "-" + m[0]]), lines[at]
                )
            if not lines:
                break
        return "\n".join(lines) + "\n"

    def survive(self, text: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "fuzz.yaml"
            path.write_bytes(text.encode(errors="surrogateescape"))
            with contextlib.suppress(ScenarioError):
                load(path)
