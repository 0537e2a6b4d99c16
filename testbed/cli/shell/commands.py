"""The commands of the prompt, as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from agglab.testbed.cli.shell import faulting, looking, moving, programs
from agglab.testbed.cli.shell.session import Session
from agglab.testbed.schema.fault_kinds import KINDS

Run = Callable[[Session, Sequence[str]], None]


def _nothing(session: Session) -> Iterable[str]:
    return ()


@dataclass(frozen=True)
class Command:
    """A command. usage: the words after its name. least, most: how many there may be. offered: the
    words that the prompt completes. is_kept: whether `back` does the command again, because it
    changes what will happen. moves: whether it lets the run go on."""

    run: Run
    usage: str
    help: str
    least: int = 0
    most: int = 0
    offered: Callable[[Session], Iterable[str]] = _nothing
    is_kept: bool = False
    moves: bool = False


def _switches(session: Session) -> Iterable[str]:
    return session.switches


def _links(session: Session) -> Iterable[str]:
    return [*(link.name for link in session.resolved.graph.links), *session.hosts, "down", "up"]


def _registers(session: Session) -> Iterable[str]:
    programs = session.prepared.programs.values()
    names = [each["name"] for p in programs for each in p.description["register_arrays"]]
    return [*session.switches, *dict.fromkeys(name.rpartition(".")[2] for name in names)]


def _targets(session: Session) -> Iterable[str]:
    return [*KINDS, *_links(session), *session.switches, "off"]


def _interfaces(session: Session) -> Iterable[str]:
    return [end.interface for link in session.resolved.graph.links for end in (link.a, link.b)]


COMMANDS: Mapping[str, Command] = {
    "nodes": Command(looking.nodes, "", "the hosts and switches"),
    "links": Command(looking.links, "", "the links: their ends, rates, frames and losses"),
    "net": Command(looking.links, "", "the same"),
    "table": Command(looking.table, "[SWITCH] [TABLE]", "the entries of tables", 0, 2, _switches),
    "counters": Command(
        looking.counters,
        "[SWITCH] [NAME...]",
        "the counters that have counted something",
        0,
        99,
        _switches,
    ),
    "registers": Command(
        looking.registers,
        "[SWITCH] [NAME[A..B]...]",
        "cells of registers, or the registers that there are",
        0,
        99,
        _registers,
    ),
    "slots": Command(
        looking.slots,
        "[SWITCH]",
        "the slots in use: who is in the sum, its tag, the sum, who is waited for",
        0,
        1,
        _switches,
    ),
    "round": Command(moving.round_, "", "let the workers do one round", is_kept=True, moves=True),
    "step": Command(
        moving.step,
        "[N]",
        "let the next packet arrive, or the next N (virtual time)",
        0,
        1,
        is_kept=True,
        moves=True,
    ),
    "until": Command(
        moving.until,
        "TIME | NODE | h1->s1",
        "let time pass until then, or until a packet arrives there (virtual time)",
        1,
        1,
        lambda session: [*session.hosts, *session.switches],
        is_kept=True,
        moves=True,
    ),
    "fault": Command(
        faulting.fault,
        "[KIND TARGET VALUE... | off [N]]",
        "begin a fault as `faults:` has them, end it, or list those begun here",
        0,
        99,
        _targets,
        is_kept=True,
    ),
    "link": Command(
        faulting.link, "LINK down|up", "take a link down or up", 2, 3, _links, is_kept=True
    ),
    "pause": Command(
        faulting.pause,
        "HOST [off]",
        "suspend a host's workers, or let them go on",
        1,
        2,
        lambda session: [*session.hosts, "off"],
        is_kept=True,
    ),
    "reload": Command(moving.reload, "", "compile the P4 program again and load it", is_kept=True),
    "pingall": Command(programs.pingall, "", "let each host ping each other one (real links)"),
    "xterm": Command(
        programs.xterm,
        "NODE...",
        "open a terminal at a node (real links)",
        1,
        99,
        lambda session: [*session.hosts, *session.switches],
    ),
    "wireshark": Command(
        programs.wireshark,
        "INTERFACE",
        "open Wireshark on a port, such as s1-eth1",
        1,
        1,
        _interfaces,
    ),
}
NODE_COMMAND = Command(
    programs.run, "COMMAND...", "run a program at that node (real links)", 0, 999
)
"""The command whose name is a node's."""
