"""A system in a folder outside the repository, as its user begins one: the ring under another
name, with its C code."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from own_walk import PAGE, ROOT


def commands() -> list[str]:
    """The two blocks of commands in docs/own-systems.md that copy the ring."""
    section = PAGE.partition("## Begin with a copy")[2].partition("\n## ")[0]
    inside, outside = re.findall(r"^```sh\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    return [inside, outside]


def copied_ring(folder: Path, name: str) -> str:
    """Copies the ring into the package `name` in a folder, by the page's commands. Returns what
    `system:` in a scenario calls it."""
    text = commands()[1].replace("~/mine", str(folder / name)).replace("mine/;", f"{name}/;")
    text = text.replace('"mine"', f'"{name}"')
    subprocess.run(["sh", "-e", "-c", text], cwd=ROOT, check=True)
    return f"{folder / name / 'system.py'}:Ring"
