"""docs/own-systems.md as steps that a test can follow: what a reader writes, changes and runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs/own-systems.md").read_text()
BLOCK = re.compile(r"([^\n]*)\n+```(\w+)\n(.*?)```", re.DOTALL)
"""The line before a block, its language, its text."""
NEW = re.compile(r"`mine/([\w.]+)`:$")


def step(number: int) -> list[tuple[str, str, str]]:
    """The blocks of one step."""
    (text,) = re.findall(rf"^## {number}\. .*?(?=^## )", PAGE, re.DOTALL | re.MULTILINE)
    return BLOCK.findall(text)


class Walk:
    """folder: where the reader's `mine/` is made; the page has it beside Agglab's own folders."""

    def __init__(self, folder: Path) -> None:
        self.mine, self._results = folder / "mine", folder / "results"

    def follow(self, number: int) -> list[str]:
        """Write and change what a step says, place its files; its other commands."""
        commands: list[str] = []
        old = ""
        for before, language, text in step(number):
            if named := NEW.search(before):
                (self.mine / named[1]).write_text(text)
            elif language == "sh":
                commands += self._placing(text.splitlines())
            elif language == "yaml":
                self._line("maximum.yaml", text)
            elif language == "p4" and before == "In `mine/include/lanes.p4`, replace this line:":
                old = text
            elif language == "p4" and before == "by these:":
                self._change("include/lanes.p4", old, text)
            elif language == "p4":
                assert before.endswith("in front of `#define ADD`:"), before
                self._change("include/lanes.p4", "#define ADD", f"{text}#define ADD")
            else:
                assert language == "toml", f"nobody knows what to do with: {before}"
        return commands

    def _placing(self, commands: list[str]) -> list[str]:
        """All but those that place files, which are run."""
        placing = [command for command in commands if command.startswith(("mkdir ", "cp "))]
        for command in placing:
            subprocess.run(self._placed(command).split(), cwd=ROOT, check=True)
        return [command for command in commands if command not in placing]

    def _placed(self, command: str) -> str:
        return command.replace("mine/", f"{self.mine}/")

    def _line(self, name: str, line: str) -> None:
        """The line of that key becomes another."""
        path = self.mine / name
        key = line.partition(":")[0]
        new, count = re.subn(rf"^{key}: .*\n", lambda _: line, path.read_text(), flags=re.MULTILINE)
        assert count == 1, line
        path.write_text(new)

    def _change(self, name: str, old: str, new: str) -> None:
        path = self.mine / name
        assert path.read_text().count(old) == 1, old
        path.write_text(path.read_text().replace(old, new))

    def run(self, command: str) -> str:
        """What a `make` of the page says, with this interpreter and nothing installed."""
        make, *words = self._placed(command).split()
        own = ["-s", "-o", "setup", f"PYTHON={sys.executable}", f"RESULTS={self._results}"]
        done = subprocess.run([make, *own, *words], cwd=ROOT, capture_output=True, text=True)
        return done.stdout + done.stderr
