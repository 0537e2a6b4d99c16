"""The declaration of a service: its methods, and for each method the primitives that the switch
performs on its argument (README.md, "A service"). The declaration determines the stubs
that an application calls (stubs.py), the packets, and the entries of the switch's table of methods.

    class WordCount(Service):
        add = method(Map, add_to=True)
        get = method(Map, get=True)

        def run(self, call, inputs, out):
            yield call.add(inputs["key"], inputs["value"])
            ...

The primitives have the names that they have in the NetRPC paper. This module imports only wire.py
and the loader of users' modules.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

from numpy.typing import NDArray

from agglab.hosts.modules import load_module
from agglab.systems.netrpc.wire import Kind

Nothing, Array, Map = Kind.NOTHING, Kind.ARRAY, Kind.MAP
"""The kinds of argument. Nothing: no argument. Array: as many 32-bit integers as a packet has
lanes, or as many floats, for which all workers use the same scale. Map: pairs of a 64-bit key and a
32-bit integer."""
WORKERS = "workers"
"""A threshold of CntFwd: the number of the job's workers."""
ALL, CALLER = "all", "caller"
"""The receivers of an answer, for CntFwd."""
SHADOW, VALUES, COUNTER = "shadow", "values", "counter"
"""What a method clears. SHADOW: the cells of an array, which are cleared automatically, because a
gather uses two sets of them in turn. VALUES: the values of a map's keys. COUNTER: the counters of
its keys."""

OPEN, AGREE, FIRST_DECLARED = 0, 1, 2
"""The numbers of methods. Every service has the methods OPEN and AGREE. With OPEN all workers meet
at the start of a round. With AGREE they agree on the largest of their words."""


class ServiceError(ValueError):
    """Raised for the declaration of a method that no switch can perform exactly once. The message
    is one line."""


@dataclass(frozen=True)
class CntFwd:
    """The primitive that counts calls and answers when the count reaches a threshold. With ALL and
    the threshold WORKERS, the method is a gather: all workers are answered when all have called.
    With CALLER and the threshold n, each call adds one to the counter of its key. The answer says
    whether the call was the n-th since the counter was cleared."""

    to: str
    threshold: int | str


@dataclass(frozen=True)
class Method:
    """One declared method of a service. number: its number on the wire. name: its name in the
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
        """Whether all workers are answered when all of them have called."""
        return self.forward is not None and self.forward.to == ALL

    @property
    def counts(self) -> bool:
        """Whether the method uses the counter of its key and not the value of the key."""
        return self.clear == COUNTER or (self.forward is not None and self.forward.to == CALLER)

    @property
    def answer(self) -> Kind:
        """The kind of data that follows the headers of an answer."""
        return self.argument if self.get else Nothing


def method(
    argument: Kind = Nothing,
    *,
    add_to: bool = False,
    get: bool = False,
    clear: str = "",
    forward: CntFwd | None = None,
) -> Any:
    """Declares a method of a service, as the value of a class attribute. In an application, the
    attribute of this name is a stub."""
    return Method(argument, add_to, get, clear, forward)


Application = Generator[Any, Any, None]
"""The type of what `Service.run` returns: a generator that yields calls and is sent what they
return (stubs.py)."""


class Service(ABC):
    """The base class of services. A subclass declares methods as class attributes and defines
    `run`, the application."""

    methods: ClassVar[tuple[Method, ...]] = ()
    """The declared methods, in their order. Their numbers begin with FIRST_DECLARED."""

    def __init_subclass__(cls) -> None:
        declared = ((n, m) for n, m in vars(cls).items() if isinstance(m, Method))
        cls.methods = tuple(
            _checked(replace(m, number=number, name=name))
            for number, (name, m) in enumerate(declared, FIRST_DECLARED)
        )

    @abstractmethod
    def run(self, call: Any, inputs: NDArray, out: NDArray) -> Application:
        """Yields the calls of one worker in one round. call: has a stub for each method. inputs:
        the worker's input. out: where to write the result."""

    @classmethod
    def maps(cls) -> bool:
        """Returns whether a method of the service takes keys. If so, keys need places, and the job
        has a server that keeps the keys without a place."""
        return any(m.argument == Map for m in cls.methods)


RESERVED = (
    Method(Array, True, True, SHADOW, CntFwd(ALL, WORKERS), OPEN, "open"),
    Method(Nothing, False, False, "", CntFwd(ALL, WORKERS), AGREE, "agree"),
)
"""The methods that every service has."""


def _checked(declared: Method) -> Method:
    """Returns the method unchanged. Raises ServiceError if it cannot be performed exactly once when
    an answer is lost."""
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
    """Loads and returns a service. reference: the name of a module in services/, or
    `path/to/file.py:Class`, or `module:Class`. Raises ServiceError, and the exceptions of loading
    the module."""
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
        raise ServiceError(
            f"{reference}: the module has no such class, or the class is not derived from Service"
        )
    return found
