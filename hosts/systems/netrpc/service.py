"""What a service is declared with: methods, and for each which primitives the switch performs on
its argument (docs/systems/netrpc.md, "A service"). From the declaration follow the stubs that an
application calls (stubs.py), the packets, and the entries of the switch's table of methods.

    class WordCount(Service):
        add = method(Map, add_to=True)
        get = method(Map, get=True)

        def run(self, call, inputs, out):
            yield call.add(inputs["key"], inputs["value"])
            ...

The names of the primitives are the paper's. Imports wire.py and the loader of users' modules only.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

from numpy.typing import NDArray

from agglab.hosts.own_worker import load_module
from agglab.hosts.systems.netrpc.wire import Kind

Nothing, Array, Map = Kind.NOTHING, Kind.ARRAY, Kind.MAP
"""Arguments: none; as many 32-bit integers as a packet has lanes, or floats that all workers scale
alike; pairs of a 64-bit key and a 32-bit integer."""
WORKERS = "workers"
"""The threshold of CntFwd that is the number of the job's workers."""
ALL, CALLER = "all", "caller"
"""Whom CntFwd forwards to."""
SHADOW, VALUES, COUNTER = "shadow", "values", "counter"
"""What a method clears: an array's cells by themselves, since a gather has two sets of them, used
in turns; the values of a map's keys; the counters of its keys."""

OPEN, AGREE, FIRST_DECLARED = 0, 1, 2
"""Numbers of methods. Every service has the first two: OPEN, by which all workers meet at the start
of a round, and AGREE, by which they agree on the largest of their words."""


class ServiceError(ValueError):
    """A declaration that no switch can perform exactly once; one line."""


@dataclass(frozen=True)
class CntFwd:
    """Count, and forward at a threshold. To ALL at WORKERS: a gather, answered once all workers
    have called. To CALLER at n: each call raises its key's counter by one, and the answer says
    whether it was the n-th since the counter was cleared."""

    to: str
    threshold: int | str


@dataclass(frozen=True)
class Method:
    """One method as it was declared. number: its number on the wire. name: its name in the
    service."""

    argument: Kind
    add_to: bool = False
    get: bool = False
    clear: str = ""
    forward: CntFwd | None = None
    number: int = 0
    name: str = ""

    @property
    def gathers(self) -> bool:
        """Whether a call is answered to all workers once all of them have called."""
        return self.forward is not None and self.forward.to == ALL

    @property
    def counts(self) -> bool:
        """Is about its key's counter instead of its value."""
        return self.clear == COUNTER or (self.forward is not None and self.forward.to == CALLER)

    @property
    def answer(self) -> Kind:
        """What follows the headers of an answer."""
        return self.argument if self.get else Nothing


def method(
    argument: Kind = Nothing,
    *,
    add_to: bool = False,
    get: bool = False,
    clear: str = "",
    forward: CntFwd | None = None,
) -> Any:
    """Declare a method of a service; in an application it is a stub."""
    return Method(argument, add_to, get, clear, forward)


Application = Generator[Any, Any, None]
"""What `Service.run` is: it yields calls, and is sent what they return (stubs.py)."""


class Service(ABC):
    """To be inherited from. stream: whether the application is an all-reduce: `run` may reduce
    whole arrays, and a round's result is judged as one."""

    methods: ClassVar[tuple[Method, ...]] = ()
    """Those declared, in their order; their numbers begin with FIRST_DECLARED."""

    def __init_subclass__(cls) -> None:
        declared = ((n, m) for n, m in vars(cls).items() if isinstance(m, Method))
        cls.methods = tuple(
            _checked(replace(m, number=number, name=name))
            for number, (name, m) in enumerate(declared, FIRST_DECLARED)
        )

    @abstractmethod
    def run(self, call: Any, inputs: NDArray, out: NDArray) -> Application:
        """One worker's part in one round. call: has a stub for each method. inputs: what the worker
        brings; out: where the result belongs."""

    @classmethod
    def maps(cls) -> bool:
        """Whether keys have to be placed, and a server keeps those that have no place."""
        return any(m.argument == Map for m in cls.methods)


RESERVED = (
    Method(Array, True, True, SHADOW, CntFwd(ALL, WORKERS), OPEN, "open"),
    Method(Nothing, False, False, "", CntFwd(ALL, WORKERS), AGREE, "agree"),
)
"""Of every service."""


def _checked(declared: Method) -> Method:
    """Refuses what cannot be done exactly once if an answer may be lost."""
    for wrong in _mistakes(declared):
        raise ServiceError(f"method {declared.name}: {wrong}")
    return declared


def _mistakes(m: Method) -> Iterator[str]:
    if m.argument == Array and not (m.add_to and m.get and m.gathers and m.clear == SHADOW):
        yield (
            "an Array is added up and given to all: "
            "add_to=True, get=True, clear=SHADOW, forward=CntFwd(ALL, WORKERS)"
        )
    if m.argument == Nothing and (m.add_to or m.get or m.clear or not m.gathers):
        yield "without an argument there is only forward=CntFwd(ALL, WORKERS)"
    if m.gathers and (m.forward is None or m.forward.threshold != WORKERS):
        yield "CntFwd to ALL needs the threshold WORKERS, or who is slow would miss its answer"
    if m.argument != Map:
        return
    if m.gathers:
        yield "a Map is answered to the caller; gather with a method that has no argument"
    if m.clear not in ("", VALUES, COUNTER):
        yield "a Map clears VALUES or COUNTER"
    if m.counts and (m.add_to or m.get):
        yield "counters and values are other methods' each"
    if sum((m.add_to, m.get, bool(m.clear), m.forward is not None)) != 1:
        yield (
            "a method of a Map does one of add_to, get, clear and forward: what it got or counted "
            "while it changed it could not be told again if the answer were lost"
        )


@cache
def load(reference: str) -> type[Service]:
    """A service by the name of a module in services/, or `path/to/file.py:Class` or `module:Class`.
    Raises ServiceError, or what loading
    the module raises."""
    place, _, name = reference.partition(":")
    module = load_module(place if name else f"{__package__}.services.{place}")
    if name:
        found = getattr(module, name, None)
    else:
        own = (
            value
            for _, value in inspect.getmembers(module, inspect.isclass)
            if issubclass(value, Service) and value.__module__ == module.__name__
        )
        found = next(own, None)
    if not (inspect.isclass(found) and issubclass(found, Service)):
        raise ServiceError(f"{reference}: no such class of agglab's Service")
    return found
