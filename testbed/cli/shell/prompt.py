"""Reads commands at the prompt, or from a file, and carries them out."""

from __future__ import annotations

import contextlib
import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

from agglab.testbed.base.errors import CompileError
from agglab.testbed.base.exit_codes import FAILED, PASSED
from agglab.testbed.base.problems import ScenarioError, nearest, quote
from agglab.testbed.cli.shell.commands import COMMANDS, NODE_COMMAND, Command
from agglab.testbed.cli.shell.refused import Refused
from agglab.testbed.cli.shell.session import Session

PROMPT = "agglab> "
TICK_S = 1.0
NO_TRACE = "the switches were started without a trace: use --set switch.log=trace"
QUIT = ("quit", "exit", "EOF")
OWN = {
    "back": (
        "[N | all]",
        "begin again from the seed, without the last command (or the last N, or any) that let "
        "time pass, and what followed it (virtual time)",
    ),
    "trace": ("on|off", "show each step of the program for each packet"),
    "help": ("[COMMAND]", "the commands, or how to use one"),
    "source": ("FILE", "carry out the commands in a file"),
    "quit": ("", "leave, and remove the network (also Ctrl-D)"),
}
"""The commands of the prompt itself, each with its usage and help."""


@contextlib.contextmanager
def ticking() -> Iterator[None]:
    """Wakes the process each second. Python waits for keys in C, and notices a signal that came
    just before it began to wait only when something else interrupts the wait."""
    before = signal.signal(signal.SIGALRM, lambda number, frame: None)
    signal.setitimer(signal.ITIMER_REAL, TICK_S, TICK_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Prompt:
    """Carries out lines on a session. `history` has the lines that `back` does again."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.history: list[tuple[str, bool]] = []
        """The lines that have changed something, each with whether it has let time pass."""

    def interact(self) -> int:
        """Reads lines from the terminal until the user leaves. Returns the exit code."""
        import readline

        readline.set_completer(self._completed)
        readline.set_completer_delims(" ")
        readline.parse_and_bind("tab: complete")
        while True:
            try:
                with ticking():
                    line = input(PROMPT)
            except EOFError:
                print()
                return PASSED
            try:
                if self.carry_out(line):
                    return PASSED
            except Refused as error:
                self._session.say(str(error))

    def read(self, stream: TextIO) -> int:
        """Carries out the lines of a file, and shows each of them after the prompt. Ends at the
        first that is refused, and returns FAILED then."""
        for line in stream:
            self._session.say(f"{PROMPT}{line.strip()}")
            try:
                if self.carry_out(line):
                    break
            except Refused as error:
                self._session.say(str(error))
                return FAILED
        return PASSED

    def carry_out(self, line: str) -> bool:
        """Carries out one line; `#` begins a comment. Returns whether the user leaves. Raises
        Refused with one line if that is not possible."""
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            raise Refused(f"{quote(line.strip())} cannot be read: {error}") from None
        if not words:
            return False
        name, rest = words[0], words[1:]
        if name in QUIT:
            return True
        own: dict[str, Callable[[Sequence[str]], bool]] = {
            "help": self._help,
            "?": self._help,
            "back": self._back,
            "source": self._source,
            "trace": self._trace,
        }
        if name in own:
            return own[name](rest)
        self._run(line.strip(), name, rest)
        return False

    def _run(self, line: str, name: str, rest: Sequence[str]) -> None:
        command = self._command(name)
        if not command.least <= len(rest) <= command.most:
            raise Refused(f"write `{f'{name} {command.usage}'.strip()}`")
        given = [name, *rest] if command is NODE_COMMAND else rest
        before_ns = self._session.backend.now_ns()
        try:
            command.run(self._session, given)
        except (CompileError, ScenarioError) as error:
            raise Refused(str(error)) from None
        except Refused:
            # A step may find that the jobs end instead.
            if command.moves and self._session.backend.now_ns() > before_ns:
                self.history.append((line, True))
            raise
        if command.is_kept:
            self.history.append((line, command.moves))

    def _command(self, name: str) -> Command:
        """Returns the command of that name. Raises Refused."""
        nodes = [*self._session.hosts, *self._session.switches]
        if name in nodes:
            return NODE_COMMAND
        if name not in COMMANDS:
            near = nearest(name, [*COMMANDS, *OWN, *nodes])
            raise Refused(f"no such command {quote(name)}{near}; `help` lists the commands")
        return COMMANDS[name]

    def _help(self, words: Sequence[str]) -> bool:
        forms = {name: (each.usage, each.help) for name, each in COMMANDS.items()}
        forms |= {"NODE": (NODE_COMMAND.usage, NODE_COMMAND.help), **OWN}
        if words and words[0] not in forms:
            raise Refused(f"no such command {quote(words[0])}{nearest(words[0], forms)}")
        for name in words[:1] or forms:
            usage, text = forms[name]
            self._session.say(f"  {f'{name} {usage}'.strip():<40}  {text}")
        return False

    def _source(self, words: Sequence[str]) -> bool:
        if len(words) != 1:
            raise Refused("write `source FILE`")
        try:
            lines = Path(words[0]).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise Refused(f"{words[0]} cannot be read: {error}") from None
        return any(self.carry_out(line) for line in lines)

    def _back(self, words: Sequence[str]) -> bool:
        self._session.packets  # noqa: B018  # refused on real links
        word = words[0] if words else "1"
        if len(words) > 1 or not (word == "all" or (word.isdecimal() and int(word))):
            raise Refused("write `back`, `back N` or `back all`")
        kept = self._without_last(None if word == "all" else int(word))
        self._do_again(kept)
        done = f"{len(kept)} commands done again" if kept else "nothing has been done"
        self._session.say(f"{self._session.virtual.now_ns() / 1e6:.3f} ms  {done}")
        return False

    def _trace(self, words: Sequence[str]) -> bool:
        if list(words) not in (["on"], ["off"]):
            raise Refused("write `trace on` or `trace off`")
        session = self._session
        if not session.has_trace:
            if not session.is_virtual:
                raise Refused(NO_TRACE)
            session.use_trace()
            self._do_again([line for line, _ in self.history])
        session.news.forget()
        session.traced = words == ["on"]
        return False

    def _do_again(self, lines: Sequence[str]) -> None:
        """Begins again from the seed, and carries out lines without showing anything."""
        with self._silence():
            self._session.begin_again()
            self.history = []
            for line in lines:
                with contextlib.suppress(Refused):  # as it was refused before
                    self.carry_out(line)

    def _without_last(self, number: int | None) -> list[str]:
        """Returns the lines before the last `number` ones that let time pass."""
        places = [place for place, (_, moves) in enumerate(self.history) if moves]
        if number is not None and number > len(places):
            raise Refused(f"only {len(places)} commands have let time pass: write `back all`")
        end = 0 if number is None else places[-number]
        return [line for line, _ in self.history[:end]]

    @contextlib.contextmanager
    def _silence(self) -> Iterator[None]:
        """Keeps the session from printing while lines are done again."""
        session = self._session
        say, session.say = session.say, lambda text: None
        try:
            yield
        finally:
            session.say = say

    def _completed(self, text: str, state: int) -> str | None:
        """Returns the completion with this number of the word before the cursor, for readline."""
        import readline

        before = readline.get_line_buffer()[: readline.get_begidx()].split()
        known = sorted(set(self.offered(before)))
        matching = [word for word in known if word.startswith(text)]
        return f"{matching[state]} " if state < len(matching) else None

    def offered(self, before: Sequence[str]) -> Iterable[str]:
        """Returns the words that may follow these."""
        session = self._session
        nodes = [*session.hosts, *session.switches]
        if not before:
            return [*COMMANDS, *OWN, *nodes]
        if before[0] == "help":
            return [*COMMANDS, *OWN]
        return COMMANDS[before[0]].offered(session) if before[0] in COMMANDS else nodes


def lines_of(path: Path | None) -> TextIO | None:
    """Returns the stream from which commands come if they do not come from a terminal: the file,
    or standard input. Raises Refused."""
    if path is not None:
        try:
            return path.open(encoding="utf-8")
        except OSError as error:
            raise Refused(f"{path} cannot be read: {error.strerror}") from None
    return None if sys.stdin.isatty() else sys.stdin
