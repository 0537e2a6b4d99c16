"""Decides what a test runs for a command line of the documents, and as which users.

- Root runs all. A line that takes long or needs more than a clone has a *stand-in*: for make its
  own list of what it would do, for a run a check of the scenario, and for other programs their
  help, which has to name the options.
- An ordinary user runs what may come out differently for them: every run on real links, since root
  has other ways to make a network, and the first short line of each kind (`make export`,
  `./agglab pack`), since a program of this kind may write where this user may not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from pages import ROOT, SETTING, shown
from reviewed import FILLED_IN, FOLLOWED, NOT_OURS, OTHERS_RUN, ROOT_ONLY, STAND_IN, SWEEP, TOO_LONG

README = "README.md"
ROOT_USER, ORDINARY_USER = "root", "nobody"
ONLY_STAND_IN = frozenset(text for texts in STAND_IN.values() for text in texts)
NOT_RUN = frozenset(text for texts in (NOT_OURS | FOLLOWED).values() for text in texts)
NAMED = (OTHERS_RUN, TOO_LONG, ONLY_STAND_IN, NOT_RUN)
OURS = re.compile(
    r"(make [a-z-]+|\./agglab [a-z-]+|(?:\./)?p4native-[a-z]+"
    r"|\.venv/bin/python -m (?:(?:agglab|p4native)\.verification(?: [a-z-]+)?"
    r"|agglab\.\w+|benchmarks|pytest))"
    r"(?= |$)"
)
"""The kind of a line: the program of ours, with its command, that the line starts."""
RUN = re.compile(r"(?:make scenario (?:NAME|FILE)=|\./agglab run )([\w./-]+)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


@dataclass
class Trial:
    """What a test runs. mentioned: words that the output has to contain. is_long: whether `make
    test` leaves it out: it runs what the README shows, as root."""

    user: str
    line: str
    mentioned: set[str] = field(default_factory=set)
    is_long: bool = True


def trials(is_long: bool) -> list[Trial]:
    """Returns what is run of the documents' commands, each line once for a user."""
    made: dict[tuple[str, str], Trial] = {}
    in_readme = {each.text for each in shown() if each.page == README}
    for text, each in _all(is_long):
        trial = made.setdefault((each.user, each.line), each)
        trial.mentioned |= each.mentioned
        trial.is_long &= each.user != ROOT_USER or text not in in_readme
    return list(made.values())


def _all(is_long: bool) -> Iterator[tuple[str, Trial]]:
    """Yields what is run for each text of a command."""
    kinds: set[str] = set()
    for text in dict.fromkeys(each.text for each in shown() if each.text not in NOT_RUN):
        if text in ONLY_STAND_IN or (text in TOO_LONG and not is_long):
            yield from ((text, each) for each in stand_in(text))
            continue
        line = filled_in(text)
        yield text, Trial(ROOT_USER, line)
        if text not in TOO_LONG and (kind(line) not in kinds or is_on_real_links(line)):
            kinds.add(kind(line))
            if line.split()[0] not in ROOT_ONLY:
                yield text, Trial(ORDINARY_USER, line)


def is_ours(text: str) -> bool:
    """Whether the line starts make or a program of Agglab."""
    return bool(OURS.match(text))


def kind(line: str) -> str:
    """Returns the program that a line starts, with its command, if it is ours."""
    start = OURS.match(line)
    return start[1] if start else line.split()[0]


def filled_in(text: str) -> str:
    """Returns the line with files in place of its placeholders, and with its optional parts. What
    the toolchain's pages start by name is started as in a checkout."""
    text = f"./{text}" if text.startswith("p4native-") else text
    for placeholder, files in FILLED_IN.items():
        text = re.sub(rf"(?<!\S){re.escape(placeholder)}(?!\S)", files, text)
    return re.sub(r"(?<= )\[(--[^]]*)\]", r"\1", text)


def stand_in(text: str) -> Iterator[Trial]:
    """Yields what is run in place of a command that takes long or needs more than a clone; nothing
    if the program is not ours."""
    words = text.rpartition("sudo ")[2].split(" ")
    while SETTING.fullmatch(words[0]):
        del words[0]
    line = re.sub("^pytest", ".venv/bin/python -m pytest", " ".join(words))
    if line.startswith("make scenario NAME="):
        yield Trial(ROOT_USER, line.replace("make scenario", "make check"))
    elif line.startswith("make "):
        yield Trial(ROOT_USER, filled_in(line).replace("make", "make -n", 1))
    elif line.startswith("./agglab run ") and _scenario(line):
        yield Trial(ROOT_USER, line.replace("run", "check", 1))
    elif is_ours(line):
        yield Trial(ROOT_USER, f"{filled_in(kind(line))} --help", set(OPTION.findall(line)))


def is_on_real_links(line: str) -> bool:
    """Whether the line runs a scenario in real time, so that links may be slow."""
    return bool(RUN.match(line)) and "virtual" not in line + _scenario(line)


def _scenario(line: str) -> str:
    """Returns the text of the scenario that a line runs, empty if the documents show it."""
    name = RUN.match(line)
    word = name[1] if name else ""
    for path in (ROOT / f"scenarios/{word}.yaml", ROOT / word):
        if path.is_file():
            return path.read_text()
    return {"sweep.yaml": SWEEP}.get(word, "")
