"""Collects for manifest.json what produced a result: code, machine and tools."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

import p4native
from agglab.testbed.base.paths import P4_FOLDER, REPOSITORY
from agglab.testbed.run import segmentation_offload
from agglab.testbed.run.programs.program import Program
from agglab.testbed.scenario import Suite, workloads

MANIFEST_VERSION = 1
CPU_INFO = Path("/proc/cpuinfo")
TOOLS = {"cc": ["cc", "--version"], "ip": ["ip", "-V"]}
CODE = ("hosts", "systems", "testbed", "topologies")
CODE_SUFFIXES = (".py", ".c", ".h", ".p4")
PACKAGES = ("numpy", "PyYAML", "grpcio", "protobuf", "p4runtime", "mininet")


def manifest(suite: Suite, programs: Iterable[Program], settings: Sequence[str]) -> dict[str, Any]:
    """Returns everything that identifies a run besides its scenario."""
    return {
        "manifest_version": MANIFEST_VERSION,
        "scenario": suite.name,
        "source": str(suite.source.resolve()),
        "settings": list(settings),
        "seed": suite.points[0].resolved.seed,
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "git": git_facts(),
        "code_sha256": code_sha256(),
        "programs": [_program(program) for program in dict.fromkeys(programs)],
        "targets": _targets(suite),
        "buffers": [segmentation_offload.choice(point.resolved) for point in suite.points],
        "inputs": _inputs(suite),
        "machine": machine(),
        "tools": {name: first_line(command) for name, command in TOOLS.items()},
        "packages": {"python": platform.python_version(), **_packages()},
    }


@functools.cache
def code_sha256() -> str:
    """Returns a hash of Agglab's own source, which does not depend on where it is installed. A
    process computes it once: what it has loaded stays as it is."""
    digest = hashlib.sha256()
    for name, path in sorted(_code_files()):
        digest.update(f"{name} {path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _code_files() -> Iterator[tuple[str, Path]]:
    """Yields each file of Agglab's source and its name in the repository."""
    folders = {part: REPOSITORY / part for part in CODE}
    for part, folder in {**folders, "p4": P4_FOLDER, "toolchain/p4native": p4native.FOLDER}.items():
        for path in code_below(folder):
            yield f"{part}/{path.relative_to(folder).as_posix()}", path


def code_below(folder: Path) -> Iterator[Path]:
    """Yields the files of code below a folder. Tests that lie beside the code are no part of it: a
    wheel has none."""
    for path in folder.rglob("*"):
        if path.suffix in CODE_SUFFIXES and "tests" not in path.relative_to(folder).parts:
            yield path


def memory_available_bytes(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Returns how much memory can be used without swapping, according to the kernel."""
    lines = meminfo.read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))


def _program(program: Program) -> dict[str, str]:
    return {
        "source": str(program.source),
        "source_sha256": program.source_sha256,
        "json": str(program.json),
        "json_sha256": program.json_sha256,
    }


def _targets(suite: Suite) -> dict[str, Any]:
    """Returns the facts about third-party switches: their program, its version, and the sizes of
    queues."""
    names = {p.resolved.target for p in suite.points if not p.resolved.virtual}
    if names <= {"native"}:
        return {}
    from agglab.testbed.real import target_facts

    return {name: target_facts(name) for name in sorted(names - {"native"})}


def _inputs(suite: Suite) -> dict[str, Any]:
    """Returns facts on which the workers' inputs depend besides the scenario, by kind of
    workload."""
    works = {job.work for point in suite.points for job in point.resolved.jobs}
    found: dict[str, dict[str, Any]] = {}
    for work in works:
        found.setdefault(work.kind, {}).update(workloads.KINDS[work.kind].facts(work))
    return {kind: facts for kind, facts in sorted(found.items()) if facts}


def git_facts() -> dict[str, Any] | None:
    """Returns the commit of the source, and whether files differ from it. Returns None outside a
    checkout or without git."""
    commit = first_line(["git", "-C", str(REPOSITORY), "rev-parse", "HEAD"])
    if commit is None:
        return None
    changes = first_line(["git", "-C", str(REPOSITORY), "status", "--porcelain"])
    return {"commit": commit, "modified": bool(changes)}


def machine() -> dict[str, Any]:
    """Returns facts about kernel, operating system and processors, as manifest.json and `agglab
    doctor` show them."""
    return {
        "kernel": platform.release(),
        "system": _os_name(),
        "architecture": platform.machine(),
        "cpu": _cpu_model(),
        "processors": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    }


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        return platform.system()


def _cpu_model() -> str:
    try:
        lines = CPU_INFO.read_text().splitlines()
    except OSError:
        return ""
    pairs = (line.partition(":") for line in lines)
    facts = {key.strip(): value.strip() for key, _, value in pairs}
    if "CPU part" in facts:  # ARM64 has numbers only
        return f"ARM implementer {facts.get('CPU implementer')} part {facts['CPU part']}"
    return facts.get("model name", "")


def _packages() -> dict[str, str | None]:
    versions: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    return versions


def first_line(command: Sequence[str]) -> str | None:
    """Returns the first line that a command prints; None if the command is missing or fails."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (done.stdout.splitlines() or [""])[0] if done.returncode == 0 else None
