"""Walks: a walk is a small world, set up from a seed, that is moved by randomly drawn steps. Each
system defines its own worlds, which consist, for example, of switches and workers. A world raises
FaultFound when something is wrong.

Each step is a kind and a number, from which the world draws the details. Therefore, steps can be
left out of a failing walk to make it smaller. In each walk, some kinds of steps are frequent and
others are absent. Thus, combinations that are rare on average are frequent in some walks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

STEPS_MIN, STEPS_MAX = 10, 120
FAVOURS = (0.0, 0.25, 1.0, 1.0, 4.0)


class FaultFound(Exception):
    """Raised if a world has found a fault. kind: one or two words that tell kinds of faults
    apart."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind, self.text = kind, text


class Step(NamedTuple):
    """One event of a walk."""

    kind: str
    number: int


class World(Protocol):
    """The state that a walk changes step by step. The methods raise FaultFound."""

    told: list[str] | None
    """A list that receives descriptions of what happens, or None if nobody needs them."""

    def begin(self) -> None:
        """Starts the world, before the first step."""

    def do(self, step: Step) -> None: ...

    def finish(self) -> None:
        """Completes everything that was begun, while nothing more goes wrong from outside."""

    def close(self) -> None: ...


S = TypeVar("S")


class System(Protocol[S]):
    """What a search needs of a system: how its worlds are drawn, built and simplified. S: the class
    of a world's settings, a frozen dataclass of plain values."""

    def setting(self, chance: Random) -> S: ...

    def kinds(self, setting: S) -> Mapping[str, float]:
        """Returns the kinds of steps and the weight of each."""

    def world(self, setting: S) -> World: ...

    def simpler(self, setting: S) -> Iterator[S]:
        """Yields settings of slightly smaller worlds."""

    def from_values(self, values: Mapping[str, Any]) -> S:
        """Returns the setting that has these fields. Raises KeyError, TypeError or ValueError."""


@dataclass(frozen=True)
class Walk(Generic[S]):
    """A walk: its steps, and the setting of the world in which they are taken."""

    setting: S
    steps: tuple[Step, ...]


def draw(seed: int, system: System[S]) -> Walk[S]:
    """Returns the walk of a seed."""
    chance = Random(seed)
    setting = system.setting(chance)
    weights = {kind: w * chance.choice(FAVOURS) for kind, w in system.kinds(setting).items()}
    if not any(weights.values()):
        weights = dict(system.kinds(setting))
    count = chance.randint(STEPS_MIN, STEPS_MAX)
    kinds = chance.choices(list(weights), list(weights.values()), k=count)
    return Walk(setting, tuple(Step(kind, chance.getrandbits(32)) for kind in kinds))


def attempt(walk: Walk[S], system: System[S], told: list[str] | None = None) -> FaultFound | None:
    """Takes the steps of a walk and returns what was wrong, or None. told: a list to which the
    world adds descriptions of what happens."""
    world = system.world(walk.setting)
    world.told = told
    try:
        world.begin()
        for step in walk.steps:
            world.do(step)
        world.finish()
    except FaultFound as wrong:
        return wrong
    except Exception as error:  # whatever it is, it must not be
        return FaultFound("error", f"{type(error).__name__}: {error} ({place(error)})")
    finally:
        world.close()
    return None


def place(error: BaseException) -> str:
    """Returns the file and line where an exception was raised."""
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    if trace is None:
        return "nowhere"
    return f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"


def shrink(walk: Walk[S], system: System[S], kind: str) -> Walk[S]:
    """Returns a smaller walk that is wrong in the same way and from which no more steps can be left
    out."""

    def fails(each: Walk[S]) -> bool:
        wrong = attempt(each, system)
        return wrong is not None and wrong.kind == kind

    while True:
        walk = _fewer_steps(walk, fails)
        smaller = (replace(walk, setting=each) for each in system.simpler(walk.setting))
        found = next((each for each in smaller if fails(each)), None)
        if found is None:
            return walk
        walk = found


def _fewer_steps(walk: Walk[S], fails: Callable[[Walk[S]], bool]) -> Walk[S]:
    size = len(walk.steps)
    while size:
        at = 0
        while at < len(walk.steps):
            shorter = replace(walk, steps=walk.steps[:at] + walk.steps[at + size :])
            if fails(shorter):
                walk = shorter
            else:
                at += size
        size //= 2
    return walk


def to_json(walk: Walk[Any]) -> str:
    """Returns the walk as the text of a file that `explore --replay` reads."""
    content = {"setting": asdict(walk.setting), "steps": [list(step) for step in walk.steps]}
    return json.dumps(content, indent=1) + "\n"


def from_json(text: str, make: Callable[[Mapping[str, Any]], S]) -> Walk[S]:
    """Returns the walk that the text describes. Raises ValueError if the text describes none. make:
    a function that returns a setting from its values."""
    try:
        content = json.loads(text)
        steps: Iterable[Any] = content["steps"]
        return Walk(make(content["setting"]), tuple(Step(str(k), int(n)) for k, n in steps))
    except (KeyError, TypeError) as error:
        raise ValueError(f"no walk: {error}") from None


def read(path: Path, make: Callable[[Mapping[str, Any]], S]) -> Walk[S]:
    """Returns the walk in a file. Raises ValueError and OSError."""
    return from_json(path.read_text(encoding="utf-8"), make)
