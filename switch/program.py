"""BMv2 JSON read and validated: `Program.read` gives a value that the translator can trust."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from switch.model import Action, Counter, Register, Table


@dataclass
class Program:
    """A whole program. The dictionaries are keyed by full name; lists are in the JSON's order."""

    name: str
    tables: dict[str, Table]
    actions: list[Action]
    registers: dict[str, Register]
    counters: dict[str, Counter]

    @classmethod
    def read(cls, path: str | Path) -> Program:
        """Read a file; raises ProgramError naming the path of the first node that is wrong."""
        raise NotImplementedError

    @classmethod
    def parse(cls, text: str) -> Program:
        """The same for JSON text."""
        raise NotImplementedError
