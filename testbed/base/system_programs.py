"""Lets Agglab and the programs that it starts, such as Mininet, find the programs for system
administration (`tc`, `ethtool`) that an ordinary user's PATH leaves out on Debian."""

from __future__ import annotations

import os

FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def add_to_path() -> None:
    """Adds the folders for system administration to the end of this process's PATH, which programs
    that it starts inherit. Programs that PATH finds already are found as before."""
    before = os.environ.get("PATH", os.defpath)
    folders = before.split(os.pathsep)
    missing = [folder for folder in FOLDERS if folder not in folders]
    os.environ["PATH"] = os.pathsep.join([before, *missing])
