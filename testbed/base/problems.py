"""Problems of a scenario, and of the command line and environment with which it runs, as the
classes Problem and ScenarioError. Each problem prints as one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from p4native.common.printable import one_line


@dataclass(frozen=True)
class Where:
    """A position in a file, or on the command line or in the environment (without a line
    number)."""

    source: str
    line: int | None = None

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}:{self.line}"


@dataclass(frozen=True)
class Problem:
    """One problem, which prints as `file:line: key.path: what is wrong; allowed: ...`."""

    where: Where
    path: str
    what: str
    allowed: str = ""

    def __str__(self) -> str:
        subject = f"{self.path}: " if self.path else ""
        allowed = f"; allowed: {self.allowed}" if self.allowed else ""
        return one_line(f"{self.where}: {subject}{self.what}{allowed}")


def twice(name: Where, path: str, first: Where) -> Problem:
    """Returns the problem of a key that is given twice. first: where it was given first."""
    line = "" if first.line is None else f", first in line {first.line}"
    return Problem(name, path, f"is given twice{line}")


class ScenarioError(Exception):
    """Raised if the scenario cannot be run. Every problem that was found is in `problems`."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        assert problems
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def problem_of(source: object, what: str, allowed: str = "", path: str = "") -> ScenarioError:
    """Returns the error of a single problem. source: the file or the word that has it. path: the
    key's path in the file."""
    return ScenarioError([Problem(Where(str(source)), path, what, allowed)])


def quote(text: str, limit: int = 60) -> str:
    """Returns a text of the user in quotes, for use in messages."""
    return "'" + one_line(text, limit) + "'"


def nearest(word: str, known: Iterable[str]) -> str:
    """Returns `, did you mean 'x'?` for the most similar known word, or an empty text."""
    found = similar(word, known)
    return f", did you mean {quote(found)}?" if found else ""


def similar(word: str, known: Iterable[str]) -> str:
    """Returns the most similar known word, or an empty string.

    Case is ignored, and so is the order of a link's ends. If no word is similar enough, the result
    is the only known word that contains the given word or is contained in it.
    """
    words = {each.casefold(): each for each in known}
    turned = "-".join(reversed(word.casefold().split("-")))
    near = get_close_matches(word.casefold(), list(words), n=1, cutoff=0.6)
    found = [turned] if turned in words else near
    if not found and len(word) > 2:
        parts = [each for each in words if word.casefold() in each or each in word.casefold()]
        found = parts if len(parts) == 1 else []
    return words[found[0]] if found else ""


def nearest_file(given: str, folders: Iterable[Path], pattern: str = "*") -> str:
    """Returns the same hint as `nearest`, for a path. The known words are the files that match
    `pattern` in the folder of `given`, which may start from any of `folders`. Only names without
    their suffixes are compared, because a common suffix makes short names similar."""
    parent = Path(given).parent
    try:
        found = [path for folder in folders for path in (folder / parent).glob(pattern)]
    except (OSError, ValueError):  # a name that no file can have
        return ""
    by_stem = {path.stem: path.name for path in sorted(found)}
    stem = similar(Path(given).stem, by_stem)
    return f", did you mean {quote(str(parent / by_stem[stem]))}?" if stem else ""
