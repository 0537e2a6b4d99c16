"""The entry point that `import torch` calls in every program of the environment."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points

import pytest

BROKEN = """
import sys
for name in {missing!r}:
    sys.modules[name] = None  # importing it raises ImportError
from importlib.metadata import entry_points
(ours,) = [each for each in entry_points(group="torch.backends") if each.name == "agglab"]
ours.load()()
import agglab.hosts, agglab.hosts.training
try:
    agglab.hosts.nothing
except AttributeError as error:
    print(error)
"""


@pytest.mark.parametrize("missing", [["torch"], ["numpy"], ["ctypes", "mmap"]])
def test_the_entry_point_never_raises_whatever_is_missing(missing: list[str]) -> None:
    # In a folder of its own: in that of a checkout, an older description of the package may lie.
    done = subprocess.run(
        [sys.executable, "-c", BROKEN.format(missing=[*missing, "torch"])],
        cwd="/",
        capture_output=True,
        text=True,
    )
    assert done.stderr == "" and "no attribute 'nothing'" in done.stdout


def test_there_is_one_entry_point() -> None:
    found = {each.value for each in entry_points(group="torch.backends") if each.name == "agglab"}
    assert found == {"agglab.hosts.training.autoload:autoload"}
