"""The entry point that `import torch` calls in every program of the environment."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, entry_points
from pathlib import Path

import pytest

from agglab.hosts import script_run
from agglab.hosts.training import autoload

BROKEN = """
import sys
for name in {missing!r}:
    sys.modules[name] = None  # importing it raises ImportError
from importlib.metadata import PackageNotFoundError, entry_points
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


@pytest.mark.parametrize(
    ("release", "chosen", "known"),
    [
        ("2.4.1", None, True),
        ("2.4.1+cpu", "1", True),
        ("2.4.1", "0", False),
        ("2.5.0", None, False),
        ("2.13.0+cpu", None, False),
        ("3.0", None, False),
        (None, None, False),
    ],
)
def test_the_name_is_made_known_where_pytorch_calls_no_entry_points(
    monkeypatch: pytest.MonkeyPatch, release: str | None, chosen: str | None, known: bool
) -> None:
    def version(name: str) -> str:
        if release is None:
            raise PackageNotFoundError(name)
        return release

    calls: list[int] = []
    monkeypatch.setattr(autoload, "version", version)
    monkeypatch.setattr(autoload, "register", lambda: calls.append(1))
    monkeypatch.delenv(autoload.AUTOLOAD, raising=False)
    if chosen is not None:
        monkeypatch.setenv(autoload.AUTOLOAD, chosen)
    autoload.register_where_needed()
    assert calls == [1] * known


def test_the_name_is_known_before_a_scenarios_script_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    monkeypatch.setattr(script_run, "register_where_needed", lambda: begun.append("registered"))
    monkeypatch.setattr(
        script_run, "outcome_of", lambda script: {"error": begun.append(script) or ""}
    )
    monkeypatch.setattr(script_run, "end_with", lambda pid: None)
    monkeypatch.setattr(script_run, "NICENESS", 0)
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("AGGLAB_AGENT", "1")
    assert script_run.main([str(tmp_path / "outcome"), "train.py"]) == 0
    assert begun == ["registered", "train.py"]
