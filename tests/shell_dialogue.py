"""A dialogue at the prompt of `agglab shell` with every command, and what is answered in virtual
time and on real links."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from shell_terminal import Terminal

NO_TIME = "only in virtual time"
NO_HOSTS = "only on real links"


@dataclass(frozen=True)
class Exchange:
    """A line, and regular expressions that the answers contain. real: None for the same answer as
    in virtual time."""

    line: str
    virtual: str
    real: str | None = None

    def answer(self, is_virtual: bool) -> str:
        return self.virtual if is_virtual or self.real is None else self.real


DIALOGUE = (
    Exchange("help", r"round +let the workers do one round"),
    Exchange("nodes", r"hosts: +h1 h2 h3\nswitches: s1"),
    Exchange("net", r"h1-eth0 -> s1-eth1: 100mbit, 0 frames, 0 lost"),
    Exchange("table s1 members", r"s1 members: ingress_port=1 job=1 -> contribute\(job_index=0"),
    Exchange("slots", r"^s1: no slot has been used \(2 slots\)$"),
    Exchange("pingall", NO_HOSTS, r"h1 -> h2 h3\n(.*\n)*.* 0% dropped \(6/6 received\)"),
    Exchange("h1 echo h2 is up", NO_HOSTS, r"^10\.0\.0\.2 is up$"),
    Exchange("xterm h1", NO_HOSTS, r"^xterm -T h1 -e mnexec -a \d+ "),
    Exchange(
        "wireshark s1-eth1",
        r"^wireshark -r .*/s1-eth1\.pcapng$",
        r"^wireshark -k -i s1-eth1$",
    ),
    Exchange(
        "step", r"round 0 of job1 begins\n.* h1 -> s1: aggregation\(.*\n +s1 sends nothing", NO_TIME
    ),
    Exchange("step 2", r"h2 -> s1: .*\n.*\n.*h3 -> s1: .*\n +s1 sends to h1, h2, h3$", NO_TIME),
    Exchange("until s1->h2", r"s1 -> h2: aggregation\(", NO_TIME),
    Exchange("back 2", r"^0\.007 ms  1 commands done again$", NO_TIME),
    Exchange("until 20us", r"^0\.020 ms  \d+ packets have arrived", NO_TIME),
    Exchange("back all", r"^0\.000 ms  nothing has been done$", NO_TIME),
    Exchange(
        "round", r"h3 has the result of round 0; \d+ sent again\n(.*\n)*.*round 0 of job1: right$"
    ),
    Exchange("slots", r"s1 slot 0 set 1  tag \d+  \[h1 h2 h3\] complete  sum -?\d+"),
    Exchange("registers contributors[0..3]", r"^s1 contributors\[0\.\.3\]: 7 7 7 7$"),
    Exchange("counters s1 contribution_new", r"contribution_new\[0\]: 27 packets, 1950 bytes"),
    Exchange("pause h2", r"fault 0, worker_pause of h2, begins$"),
    Exchange("pause h2 off", r"fault 0, worker_pause of h2, ends$"),
    Exchange("link h1-s1 down", r"fault 1, link_down of h1-s1, begins$"),
    Exchange("links", r"h1-s1, down:"),
    Exchange("pingall", NO_HOSTS, r"h1 -> X X\nh2 -> X h3\n"),
    Exchange("link s1 h1 up", r"fault 1, link_down of h1-s1, ends"),
    Exchange("fault loss h2-s1 99%", r"fault 2, loss of h2-s1, begins$"),
    Exchange("fault", r"^fault 2: loss of h2-s1$"),
    Exchange("pingall", NO_HOSTS, r"h1 -> X h3\nh2 -> X X\n"),
    Exchange("fault off 2", r"fault 2, loss of h2-s1, ends"),
    Exchange("pingall", NO_HOSTS, r"0% dropped"),
    Exchange("reload", r"switchml\.p4: reloaded; registers and counters are empty$"),
    Exchange("slots", r"no slot has been used"),
    Exchange("source {folder}/more.txt", r"hosts: +h1 h2 h3"),
    Exchange("trace on", r"^$", r"were started without a trace: use --set switch\.log=trace"),
    Exchange("round", r"round 1 of job1: right$"),
)
WINDOW = '#!/bin/sh\necho "${0##*/} $*" >> $SHOWN\n'


def windows(folder: Path, shown: Path) -> dict[str, str]:
    """Returns an environment in which xterm and Wireshark write their command lines into a file.
    Writes the file that the dialogue reads."""
    programs = folder / "programs"
    programs.mkdir()
    for name in ("xterm", "wireshark"):
        (programs / name).write_text(WINDOW)
        (programs / name).chmod(0o755)
    (folder / "more.txt").write_text("# the nodes\nnodes\n")
    return {"PATH": f"{programs}:{os.environ['PATH']}", "SHOWN": str(shown)}


def play(terminal: Terminal, is_virtual: bool, shown: Path) -> list[str]:
    """Plays the dialogue, and returns what was answered otherwise than expected. shown: the file
    into which programs with windows write."""
    wrong = []
    for each in DIALOGUE:
        answer = terminal.ask(each.line.format(folder=shown.parent)).rstrip("\n")
        if each.line.startswith(("xterm", "wireshark")) and not answer:
            answer = _window(shown)
        if not re.search(each.answer(is_virtual), answer, re.MULTILINE):
            wrong.append(f"{each.line}: {answer}")
    return wrong


def _window(shown: Path) -> str:
    from waiting import until

    until(lambda: shown.is_file() and shown.read_text().endswith("\n"), "the window has opened")
    text = shown.read_text().rstrip("\n")
    shown.unlink()
    return text
