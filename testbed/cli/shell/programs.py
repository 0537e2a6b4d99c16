"""The commands that run programs at the nodes: HOST COMMAND, pingall, xterm, wireshark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence

from agglab.testbed.cli.shell.foreground import in_front
from agglab.testbed.cli.shell.refused import Refused, not_among
from agglab.testbed.cli.shell.session import Session
from agglab.testbed.results.captures import losses, merged

PING_S = 1
PACKAGES = {"xterm": "xterm", "wireshark": "wireshark", "ping": "iputils-ping"}
INTERFACE = re.compile(r"(?P<node>\w+)-eth\d+")


def at_node(session: Session, node: str, words: Sequence[str]) -> int:
    """Runs a program in a node's namespace, with the terminal, and returns its exit code. Names of
    hosts among its arguments become their addresses, as in Mininet."""
    prefix = session.real.enter(node)
    addresses = {host.name: host.ip for host in session.resolved.graph.hosts}
    command = [words[0], *(addresses.get(word, word) for word in words[1:])]
    sys.stdout.flush()
    return in_front([*prefix, *command])


def run(session: Session, words: Sequence[str]) -> None:
    """Runs a program at the node that is the first word."""
    if len(words) < 2:
        raise Refused(f"write the program that is to run at {words[0]}: `{words[0]} ip address`")
    code = at_node(session, words[0], words[1:])
    if code:
        session.say(f"({words[1]} ended with exit code {code})")


def pingall(session: Session, words: Sequence[str]) -> None:
    """Lets each host ping each other one."""
    session.real  # noqa: B018  # refused in virtual time
    _installed("ping")
    sent = received = 0
    for source in session.hosts:
        answers = []
        for host in session.resolved.graph.hosts:
            if host.name != source:
                sent += 1
                came = _pings(session, source, host.ip)
                received += came
                answers.append(host.name if came else "X")
        session.say(f"{source} -> {' '.join(answers)}")
    lost = 100 * (sent - received) / sent if sent else 0
    session.say(f"*** Results: {lost:.0f}% dropped ({received}/{sent} received)")


def _pings(session: Session, source: str, ip: str) -> bool:
    command = [*session.real.enter(source), "ping", "-c", "1", "-W", str(PING_S), ip]
    return not subprocess.run(command, capture_output=True).returncode


def xterm(session: Session, words: Sequence[str]) -> None:
    """Opens a terminal at each of the nodes."""
    for node in words:
        _check_node(session, node)
        prefix = session.real.enter(node)
        _installed("xterm")
        session.open_window(
            ["xterm", "-T", node, "-e", *prefix, os.environ.get("SHELL", "/bin/sh")]
        )


def wireshark(session: Session, words: Sequence[str]) -> None:
    """Opens Wireshark on an interface: live on real links, and in virtual time on what has been
    captured so far."""
    (interface,) = words
    match = INTERFACE.fullmatch(interface)
    names = [end.interface for link in session.resolved.graph.links for end in (link.a, link.b)]
    if match is None or interface not in names:
        raise not_among("no such interface", interface, names)
    if session.is_virtual and match["node"] not in session.switches:
        raise Refused("in virtual time only the ports of switches are captured: take the other end")
    _installed("wireshark")
    if not session.is_virtual:
        live = [*session.real.enter(match["node"]), "wireshark", "-k", "-i", interface]
        session.open_window(live)
        return
    session.virtual.flush_recordings()
    folder = session.experiment.folder.path / "pcap"
    ways = session.backend.statistics().directions
    ports = losses.interfaces(session.resolved, ways, folder)
    merged.merge(folder, [port for port in ports if port.name == interface])
    shown = folder / f"{interface}.pcapng"
    (folder / merged.NAME).rename(shown)
    session.open_window(["wireshark", "-r", str(shown)])


def _check_node(session: Session, node: str) -> None:
    known = [*session.hosts, *session.switches]
    if node not in known:
        raise not_among("no such node", node, known)


def _installed(program: str) -> None:
    if not shutil.which(program):
        raise Refused(f"{program} is not installed: apt-get install {PACKAGES[program]}")
