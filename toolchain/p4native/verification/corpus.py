"""The P4 programs and packet tests from which the checks start."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from p4native import FOLDER
from p4native.stf import StfError, parse

TESTS = FOLDER.parent / "tests" / "packets"
"""The toolchain's packet tests, which an installation from a wheel does not have."""


def script_of(program: Path) -> Path | None:
    """Returns the packet test of a program: the file of the same name with the suffix .stf. Returns
    None if there is no such file."""
    script = program.with_suffix(".stf")
    return script if script.is_file() else None


def script_problem(program: Path) -> str:
    """Returns what is wrong with the packet test of a program, with its place, or an empty string.
    Names are not looked up in the program."""
    script = script_of(program)
    try:
        parse(script.read_text(errors="replace") if script else "")
    except StfError as error:
        return f"{script}:{error.line}: error: {error}"
    return ""


@dataclass(frozen=True)
class Corpus:
    """The toolchain's packet tests and further folders of P4 programs. more: the further folders,
    whose programs may have packet tests too."""

    more: tuple[Path, ...] = ()

    def programs(self) -> list[Path]:
        """Returns all programs, those of each folder in the order of their names."""
        return [*sorted(TESTS.glob("*.p4")), *self.further()]

    def further(self) -> list[Path]:
        """Returns the programs of the further folders."""
        return [path for folder in self.more for path in sorted(folder.glob("*.p4"))]

    def scripts(self) -> list[Path]:
        """Returns the packet tests of all programs."""
        return [script for path in self.programs() if (script := script_of(path))]

    def chosen(self, names: Iterable[str]) -> list[Path]:
        """Returns the toolchain's programs of these names, and those of the further folders."""
        shipped = [path for name in names if (path := TESTS / f"{name}.p4").is_file()]
        return [*shipped, *self.further()]
