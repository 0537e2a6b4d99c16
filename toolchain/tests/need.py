"""What some tests need of a machine, and the command that gets it.

A test that lacks such a thing is skipped with a reason of one form, `needs NAME: REMEDY`.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

import pytest

AS_ROOT = "run the tests as root"
PRIVILEGED = "start the container with --privileged"


@dataclass(frozen=True)
class Need:
    """Something that a machine may lack. is_met: looks for it. words: how a message of a program
    that says what the machine lacks may call it."""

    name: str
    remedy: str
    is_met: Callable[[], bool]
    words: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """The reason of a test that is skipped without it."""
        return f"needs {self.name}: {self.remedy}"


def has_module(*names: str) -> bool:
    """Whether all these Python modules can be imported."""
    return all(importlib.util.find_spec(name) is not None for name in names)


def has_program(*names: str) -> bool:
    """Whether all these programs are in PATH."""
    return all(shutil.which(name) is not None for name in names)


def program(name: str) -> Need:
    """The need for a program that Debian has in a package of the same name."""
    return Need(name, f"apt-get install {name}", lambda: has_program(name), (name,))


def mark(*needs: Need) -> pytest.MarkDecorator:
    """The mark of tests that are skipped if this machine lacks one of these."""
    lack = next((each for each in needs if not each.is_met()), None)
    return pytest.mark.skipif(lack is not None, reason=lack.reason if lack else "")


def _has_namespaces() -> bool:
    veth = ["ip", "link", "add", "probe0", "type", "veth", "peer", "name", "probe1"]
    tried = subprocess.run(["unshare", "--net", "--mount", *veth], capture_output=True)
    return tried.returncode == 0


ROOT = Need("root", AS_ROOT, lambda: os.geteuid() == 0)
NAMESPACES = Need("network namespaces", PRIVILEGED, _has_namespaces)
NEOVIM = Need("neovim", "apt-get install neovim", lambda: has_program("nvim"), ("nvim",))
