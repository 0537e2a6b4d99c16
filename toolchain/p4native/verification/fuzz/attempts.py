"""Tries inputs of one kind, one after the other, in one process. An input that fails is saved."""

from __future__ import annotations

import random
import signal
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from p4native.verification.corpus import Corpus
from p4native.verification.fuzz.target import Target

HANG_S = 30


class Hang(Exception):
    """Raised if an input takes longer than HANG_S seconds."""


@dataclass(frozen=True)
class Attempts:
    """What became of some inputs of one kind. inputs: their number. troubles: one text for each
    finding."""

    inputs: int
    troubles: tuple[str, ...]


_targets: dict[type[Target], Target] = {}
"""The targets of this process, set up once."""


def attempt(
    kind: type[Target], corpus: Corpus, seed: int, numbers: Iterable[int], results: Path
) -> Attempts:
    """Tries the inputs with these numbers. If an input fails, it is saved in the folder `results`
    with the traceback."""
    signal.signal(signal.SIGALRM, _hangs)
    if kind not in _targets:
        _targets[kind] = kind(corpus)
    tried = [_attempt_one(_targets[kind], seed, number, results) for number in numbers]
    return Attempts(len(tried), tuple(trouble for trouble in tried if trouble))


def _attempt_one(target: Target, seed: int, number: int, results: Path) -> str:
    """Returns what was wrong, or an empty string."""
    text = target.draw(random.Random(f"{target.name} {seed} {number}"))
    try:
        target.prepare(text)
        signal.alarm(HANG_S)
        target.survive(text)
    except Exception as error:
        path = results / f"{target.name}-{seed}-{number}.txt"
        path.write_bytes(text.encode(errors="surrogateescape"))
        path.with_suffix(".trace").write_text(traceback.format_exc())
        return f"{path}: {type(error).__name__}: {str(error)[:300]}"
    finally:
        signal.alarm(0)
    return ""


def _hangs(_signal: int, _frame: FrameType | None) -> None:
    raise Hang(f"more than {HANG_S} s")
