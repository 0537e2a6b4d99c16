"""The commands that begin and end faults, which are those of `faults:` in a scenario."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import Field, fields
from typing import Any

from agglab.testbed.base.problems import Where, quote
from agglab.testbed.cli.shell.refused import Refused, not_among
from agglab.testbed.cli.shell.session import Session
from agglab.testbed.scenario.faults import at_once
from agglab.testbed.schema.document import Scalar
from agglab.testbed.schema.fault_kinds import KINDS, WHEN, FaultEntry
from agglab.testbed.schema.key import key_of, yaml_name
from agglab.testbed.schema.kinds import InvalidText

FIELDS = {yaml_name(item): item for item in fields(FaultEntry)}
TIMES = tuple(key for key in WHEN if key != "for")
"""The keys that say when a fault begins or ends; at the prompt it begins at once."""
DOWN, UP, OFF = "down", "up", "off"


def fault(session: Session, words: Sequence[str]) -> None:
    """Begins a fault, ends one, or lists those that were begun here."""
    if not words:
        for number, each in session.asked.items():
            session.say(f"fault {number}: {each.kind} of {session.place(number)}")
        if not session.asked:
            session.say("no fault was begun here that has not ended")
    elif words[0] == OFF:
        _end(session, words[1:])
    else:
        _begin(session, words)


def _begin(session: Session, words: Sequence[str]) -> None:
    entry = entry_of(words)
    if entry.kind == "attack" and not session.resolved.system.attack_kinds:
        raise Refused(f"{session.resolved.system.name} defines no frames for an attack")
    try:
        found = at_once(entry, session.resolved.graph, session.resolved.jobs, session.next_fault)
    except ValueError as error:
        raise Refused(str(error)) from None
    session.begin(found)
    session.tell_news()


def _end(session: Session, words: Sequence[str]) -> None:
    """Ends the fault with the number in `words`, or all faults that were begun here."""
    numbers = [str(number) for number in session.asked]
    if words and words[0] not in numbers:
        known = ", ".join(numbers) or "none"
        raise Refused(f"no fault {quote(words[0])} was begun here; allowed: {known}")
    for number in words[:1] or numbers:
        session.lift(int(number))
    session.tell_news()


def entry_of(words: Sequence[str]) -> FaultEntry:
    """Returns the fault that words such as `loss h1-s1 5%` describe: the kind, the target, then the
    values that the kind needs, in their order, or `key=value`. Raises Refused."""
    kind = KINDS.get(words[0])
    if kind is None:
        raise not_among("no such fault", words[0], KINDS)
    form = " ".join([words[0], kind.target.upper(), *(key.upper() for key in kind.needs)])
    usage = f"write `fault {form}`"
    needed = [kind.target, *kind.needs]
    allowed = [key for key in kind.keys if key not in ("kind", *TIMES)]
    given: dict[str, str] = {}
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if not equals:
            waiting = [key for key in needed if key not in given]
            if not waiting:
                raise Refused(f"{quote(word)} is too much: {usage}")
            name, value = waiting[0], word
        if name not in allowed:
            raise Refused(f"{words[0]} has no key {quote(name)}; allowed: {', '.join(allowed)}")
        given[name] = value
    if missing := [key for key in needed if key not in given]:
        raise Refused(f"{words[0]} needs {', '.join(missing)}: {usage}")
    values = {FIELDS[name].name: _value(FIELDS[name], text) for name, text in given.items()}
    return FaultEntry(kind=words[0], **values)


def _value(item: Field[Any], text: str) -> Any:
    """Returns the value of a key of FaultEntry. Raises Refused."""
    key = key_of(item)
    assert key is not None
    many = "many" in item.metadata
    try:
        read = [
            key.kind.read(Scalar(part, False, Where("the prompt")))
            for part in (text.split(",") if many else [text])
        ]
    except InvalidText as error:
        raise Refused(f"{key.name}: {error}; allowed: {key.kind.allowed}") from None
    return tuple(read) if many else read[0]


def link(session: Session, words: Sequence[str]) -> None:
    """Takes a link down or up: `link h1-s1 down`, or as in Mininet `link h1 s1 down`."""
    *ends, state = words
    name = "-".join(ends)
    names = [each.name for each in session.resolved.graph.links]
    turned = "-".join(reversed(name.split("-")))
    name = turned if name not in names and turned in names else name
    if name not in names:
        raise not_among("no such link", name, names)
    if state not in (DOWN, UP):
        raise Refused(f"{quote(state)} is neither `down` nor `up`")
    _switch(session, ["link_down", name], state == DOWN, f"{name} is up already")


def pause(session: Session, words: Sequence[str]) -> None:
    """Suspends the workers of a host, or lets them go on: `pause h2`, `pause h2 off`."""
    if words[1:] not in ([], [OFF], (), (OFF,)):
        raise Refused("write `pause HOST` or `pause HOST off`")
    is_on = len(words) == 1
    _switch(session, ["worker_pause", words[0]], is_on, f"{words[0]} is not paused")


def _switch(session: Session, words: Sequence[str], is_on: bool, otherwise: str) -> None:
    """Begins the fault of these words, or ends it if it was begun here. otherwise: what is said if
    there is none to end."""
    if is_on:
        _begin(session, words)
        return
    kind, target = words
    alike = [n for n, f in session.asked.items() if (f.kind, f.action.target) == (kind, target)]
    if not alike:
        raise Refused(otherwise)
    for number in alike:
        session.lift(number)
    session.tell_news()
