"""The exercises of labs/ as their tests see them: the cases of lab.yaml, and which one a submission
fails first."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from agglab.testbed.errors import CompileError
from agglab.testbed.program import compile_program
from agglab.testbed.run import run
from agglab.testbed.scenario import load
from agglab.verification.stf import StfError, run_stf

ROOT = Path(__file__).resolve().parents[3]
LABS = tuple(sorted(path.parent for path in (ROOT / "labs").glob("*/lab.yaml")))
MEETS = re.compile(r"(?://|#) meets: (\S+)$")


@cache
def lab_of(folder: Path) -> dict[str, Any]:
    """Returns what lab.yaml says."""
    described: dict[str, Any] = yaml.safe_load((folder / "lab.yaml").read_text())
    return described


def suffix(folder: Path) -> str:
    return Path(lab_of(folder)["file"]).suffix


def cases(folder: Path) -> list[dict[str, Any]]:
    """Returns all cases of an exercise, in the order in which they are graded."""
    return [case for part in lab_of(folder)["parts"] for case in part["cases"]]


@dataclass(frozen=True)
class Wrong:
    """A typical wrong submission, and the case that it has to fail first."""

    folder: Path
    path: Path

    @property
    def meets(self) -> str:
        match = MEETS.match(self.path.read_text().splitlines()[0])
        assert match, f"{self.path} does not begin with the case that it meets"
        return match[1]

    def __str__(self) -> str:
        return f"{self.folder.name}-{self.path.stem}"


def wrong_submissions(suffix_asked: str) -> list[Wrong]:
    chosen = [folder for folder in LABS if suffix(folder) == suffix_asked]
    return [Wrong(f, path) for f in chosen for path in sorted((f / "wrong").glob(f"*{suffix(f)}"))]


def failed_packets(folder: Path, program: Path) -> Iterator[str]:
    """Yields the packet cases that a program fails, in their order."""
    compiled = compile_program(program, "agglab", {})
    for case in cases(folder):
        if "stf" in case and not _passes(compiled.json, folder / case["stf"]):
            yield case["id"]


def _passes(compiled: Path, script: Path) -> bool:
    try:
        return not run_stf(compiled, script).failures
    except StfError:  # such as a table that the program does not have
        return False


def run_case(folder: Path, case: dict[str, Any], program: Path, results: Path) -> list[int]:
    """Runs a case's scenario in virtual time, with each of its seeds. Returns the seeds with which
    it failed, or [0] for the scenario's own seed."""
    seeds = range(1, case["schedules"] + 1) if "schedules" in case else (0,)
    return [seed for seed in seeds if not _run(folder, case, program, results, seed)]


def _run(folder: Path, case: dict[str, Any], program: Path, results: Path, seed: int) -> bool:
    settings = [f"{key}={json.dumps(value)}" for key, value in case.get("settings", {}).items()]
    settings += [f"switch.program={program}", "backend=virtual", *([f"seed={seed}"] * bool(seed))]
    suite = load(folder / case["scenario"], settings)
    try:
        return run(suite, results, settings, io.StringIO()) == 0
    except CompileError:  # such as a table that the program does not have
        return False
