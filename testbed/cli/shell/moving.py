"""The commands that let the run go on (round, step, until), and `reload`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agglab.testbed.base.problems import Where, quote
from agglab.testbed.cli.shell.refused import Refused
from agglab.testbed.cli.shell.session import Session
from agglab.testbed.schema.document import Scalar
from agglab.testbed.schema.faults import AtOnce, Fault, SwitchReprogram
from agglab.testbed.schema.kinds import InvalidText, Kind, Whole, duration

STEPS = Whole(1, 1000)
MOMENT = duration()


def round_(session: Session, words: Sequence[str]) -> None:
    """Lets the workers do one round, or the rest of the one under way."""
    session.move()
    session.tell_news()


def step(session: Session, words: Sequence[str]) -> None:
    """Lets the next packets arrive at their nodes, and prints each of them."""
    number = int(read(STEPS, words[0])) if words else 1
    for _ in range(number):
        line = _next_packet(session)
        session.tell_news(line)
        if not line:
            raise Refused("no packet has arrived: all jobs have ended")


def until(session: Session, words: Sequence[str]) -> None:
    """Lets virtual time pass until a moment, or until a packet arrives at a node or in a
    direction."""
    (text,) = words
    if text in session.packets.places:
        _until_packet(session, text)
    else:
        _until_moment(session, round(read(MOMENT, text) * 1e9))


def _until_moment(session: Session, at_ns: int) -> None:
    backend, before = session.virtual, session.packets.arrived
    if at_ns <= backend.now_ns():
        now = f"{backend.now_ns() / 1e6:.3f} ms"
        raise Refused(f"it is {now} already: `back` leads to an earlier time")
    backend.clock.at(at_ns, lambda _: backend.halt(), None)
    _go_until(session, lambda: backend.now_ns() >= at_ns)
    session.tell_news()
    arrived = session.packets.arrived - before
    session.say(f"{backend.now_ns() / 1e6:.3f} ms  {arrived} packets have arrived meanwhile")


def _until_packet(session: Session, place: str) -> None:
    others = 0
    while (line := _next_packet(session)) and place not in session.packets.last_places:
        others += 1
    session.tell_news(
        f"{line}\n          after {others} other packets" if line and others else line
    )
    if not line:
        raise Refused(f"no packet has come to {quote(place)}: all jobs have ended")


def _next_packet(session: Session) -> str:
    """Lets one packet arrive. Returns a line about it; empty if none comes before all jobs have
    ended."""
    with session.packets.one() as has_come:
        _go_until(session, has_come)
    return session.packets.told()


def _go_until(session: Session, is_reached: Callable[[], bool]) -> None:
    """Goes on until something is reached, or until all jobs have ended. Begins rounds that are
    due."""
    moves = session.moves()
    while not is_reached() and not session.is_over:
        if next(moves, True):
            moves = session.moves()


def reload(session: Session, words: Sequence[str]) -> None:
    """Compiles the programs again and loads them into the switches, whose registers are then empty.
    The tables are filled again."""
    session.recompile()
    for switch in session.switches:
        number = session.next_fault
        session.begin([Fault(number, "switch_reprogram", SwitchReprogram(switch), AtOnce())])
    session.news.forget()
    sources = {str(program.source) for program in session.prepared.programs.values()}
    session.say(f"{', '.join(sorted(sources))}: reloaded; registers and counters are empty")


def read(kind: Kind, text: str) -> float | int:
    """Returns the value of a word, as the kind of a scenario's key reads it. Raises Refused."""
    try:
        value: float | int = kind.read(Scalar(text, False, Where("the prompt")))
        return value
    except InvalidText as error:
        raise Refused(f"{error}; allowed: {kind.allowed}") from None
