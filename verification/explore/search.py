"""Many random schedules over all processors; what fails is shrunk and written as a file that fails
alike.

A seed is a walk (a world moved step by step beside its models) or a scenario (a run in virtual
time, with timers, faults and recovery as they are), in turn.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TextIO

from agglab.testbed import systems
from agglab.testbed.program import compile_program
from agglab.testbed.scenario import Scenario, resolve, to_yaml
from agglab.testbed.scenario.expectations import Expectation
from agglab.testbed.virtual import CompiledProgram
from agglab.verification.explore import walk
from agglab.verification.explore.schedules import LANES, SLOTS, schedule
from agglab.verification.explore.shrink import shrink
from agglab.verification.explore.switchml.setting import Setting, from_values
from agglab.verification.explore.switchml.world import Switchml
from agglab.verification.explore.trial import Finding, Trial, attempt
from agglab.verification.explore.walk import Walk

BATCH = 50
SHOWN_MAX = 10
PROGRESS_S = 5.0

_program: CompiledProgram | None = None
"""Of a process of the pool."""


@dataclass(frozen=True)
class Found:
    """A seed whose schedule fails."""

    seed: int
    finding: Finding


@dataclass(frozen=True)
class Tally:
    """What a search came to. declared: jobs that ended with a failure that was declared."""

    schedules: int
    declared: int
    actions: int
    wall_s: float
    found: tuple[Found, ...]


def search(
    program: Path,
    seeds: range,
    processes: int,
    out: TextIO | None = None,
    system: str = systems.DEFAULT,
) -> Tally:
    """Try the schedule of every seed. program: P4 source."""
    json = _compiled(program, system)
    CompiledProgram(json)  # built once, before the processes ask for it
    begun = shown = time.monotonic()
    found: list[Found] = []
    tried = declared = actions = 0
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes, _prepare, (json,)) as pool:
        for results in pool.imap_unordered(partial(_batch, system), _batches(seeds)):
            for seed, trial in results:
                tried, declared = tried + 1, declared + trial.failed
                actions += trial.actions
                if trial.finding:
                    found.append(Found(seed, trial.finding))
            if out and time.monotonic() - shown > PROGRESS_S:
                shown = time.monotonic()
                rate = tried / (shown - begun)
                left_s = (len(seeds) - tried) / rate
                print(f"{tried} of {len(seeds)}, {rate:.0f}/s, {left_s:.0f} s left", file=out)
    assert tried == len(seeds), f"{len(seeds) - tried} schedules were not tried"
    found.sort(key=lambda each: each.seed)
    return Tally(tried, declared, actions, time.monotonic() - begun, tuple(found))


def _prepare(json: Path) -> None:
    global _program
    _program = CompiledProgram(json)


def _batches(seeds: range) -> Iterator[range]:
    for first in range(0, len(seeds), BATCH):
        yield seeds[first : first + BATCH]


def _compiled(program: Path, system: str = systems.DEFAULT) -> Path:
    """The program's JSON; only one that aggregates has compile-time parameters."""
    parameters = {"LANES": LANES, "SLOTS": SLOTS} if system == systems.DEFAULT else {}
    return compile_program(program, "agglab", parameters).json


def _batch(system: str, seeds: range) -> list[tuple[int, Trial]]:
    assert _program is not None
    return [(seed, try_seed(seed, _program, system)) for seed in seeds]


def is_walk(seed: int, system: str = systems.DEFAULT) -> bool:
    """Whether a seed is a walk, not a scenario. Only one system has a second reading to walk
    with."""
    return seed % 2 == 0 and system == systems.DEFAULT


def try_seed(seed: int, compiled: CompiledProgram, system: str = systems.DEFAULT) -> Trial:
    """Run and judge what a seed stands for."""
    if is_walk(seed, system):
        return try_walk(walk.draw(seed, Switchml(compiled)), compiled)
    return attempt(schedule(seed, system), compiled)


def try_walk(
    chosen: Walk[Setting], compiled: CompiledProgram, told: list[str] | None = None
) -> Trial:
    """Walk and judge. told: gets what happened, in words."""
    wrong = walk.attempt(chosen, Switchml(compiled), told)
    finding = None if wrong is None else Finding(wrong.kind, wrong.text)
    return Trial(finding, actions=len(chosen.steps))


def minimal_walk(seed: int, finding: Finding, program: Path) -> tuple[Walk[Setting], Finding]:
    """A small walk that is wrong in the same way as a seed's, and how it is."""
    compiled = CompiledProgram(_compiled(program))
    system = Switchml(compiled)
    small = walk.shrink(walk.draw(seed, system), system, finding.kind)
    final = try_walk(small, compiled).finding
    assert final is not None
    return small, final


def replay(path: Path, program: Path, out: TextIO) -> int:
    """Walk as a file says and tell every step; 0 if nothing is wrong, else 1. Raises ValueError for
    what is no walk."""
    chosen = walk.read(path, from_values)
    told: list[str] = []
    compiled = CompiledProgram(_compiled(program))
    finding = try_walk(chosen, compiled, told).finding
    for line in told:
        print(f"  {line}", file=out)
    print(finding or "nothing is wrong", file=out)
    return 1 if finding else 0


def minimal(
    seed: int, finding: Finding, program: Path, system: str = systems.DEFAULT
) -> tuple[Scenario, Finding]:
    """A small scenario that fails in the same way as a seed's schedule, and how it does."""
    compiled = CompiledProgram(_compiled(program, system))

    def fails(scenario: Scenario) -> bool:
        trial = attempt(scenario, compiled)
        return trial.finding is not None and trial.finding.kind == finding.kind

    small = shrink(schedule(seed, system), lambda each: attempt(each, compiled).dropped, fails)
    final = attempt(small, compiled).finding
    assert final is not None
    exact = Expectation("exact", equals=True)
    return replace(small, description=_one_line(str(final)), expect=(exact,)), final


def write(scenario: Scenario, program: Path, folder: Path) -> Path:
    """The scenario as a file that `agglab run` takes."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{scenario.name}.yaml"
    path.write_text(to_yaml(resolve(scenario, program)), encoding="utf-8")
    return path


def write_walk(small: Walk[Setting], name: str, folder: Path) -> Path:
    """The walk as a file that `explore --replay` takes."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(walk.to_json(small), encoding="utf-8")
    return path


def explore(
    program: Path, seeds: range, folder: Path, out: TextIO, system: str = systems.DEFAULT
) -> int:
    """The whole of the command; 0 if nothing was found, else 1."""
    processes = len(os.sched_getaffinity(0))
    tally = search(program, seeds, processes, out, system)
    _print(tally, seeds, processes, out)
    for each in tally.found[:SHOWN_MAX]:
        _show(each, program, folder, out, system)
    return 1 if tally.found else 0


def _show(found: Found, program: Path, folder: Path, out: TextIO, system: str) -> None:
    """What failed, made small, and the command that fails alike."""
    if is_walk(found.seed, system):
        small_walk, finding = minimal_walk(found.seed, found.finding, program)
        path = write_walk(small_walk, f"walk-{found.seed}", folder)
        command = f"python -m agglab.verification explore --program {program} --replay {path}"
    else:
        small, finding = minimal(found.seed, found.finding, program, system)
        path = write(small, program, folder)
        command = f"agglab run {path}"
    print(f"seed {found.seed}: {finding}", file=out)
    print(f"  {command}", file=out)


def _print(tally: Tally, seeds: range, processes: int, out: TextIO) -> None:
    print(
        f"{tally.schedules} schedules (seeds {seeds.start} to {seeds.stop - 1}) in "
        f"{tally.wall_s:.0f} s on {processes} processors, {tally.actions} events",
        file=out,
    )
    kinds: Sequence[str] = sorted({each.finding.kind for each in tally.found})
    for kind in kinds:
        named = [str(each.seed) for each in tally.found if each.finding.kind == kind]
        print(f"  {kind}: {len(named)}, seeds {', '.join(named[:SHOWN_MAX])}", file=out)
    if not kinds:
        ended = f"{tally.declared} jobs failed as declared, naming who is missing"
        print(f"  no hang, no wrong sum, no other failure; {ended}", file=out)


def _one_line(text: str) -> str:
    return " ".join(text.split())[:200]
