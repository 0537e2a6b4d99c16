"""Tries many random schedules of faults on all processors. A failing schedule is made small and
written to a file, which fails in the same way when it is run.

A seed stands for a scenario or, if the system's switches keep state, every second seed stands for a
walk. A walk moves a small world of switches and workers step by step, and compares them with models
of the protocol if the system has any. A scenario runs in virtual time, with the real timers, faults
and recovery.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

from agglab.testbed.base.command_lines import launcher, module
from agglab.testbed.run.programs.program import Program, compile_program
from agglab.testbed.scenario import Scenario, resolve, to_yaml
from agglab.testbed.schema.expectations import Expectation
from agglab.verification import programs, proofs
from agglab.verification.explore import walk
from agglab.verification.explore.bags import Bags
from agglab.verification.explore.schedules import LANES, SLOTS, schedule
from agglab.verification.explore.shrink import shrink
from agglab.verification.explore.walk import Walk
from agglab.verification.judgement import LINK_BYTES, Finding
from agglab.verification.trial import Trial, native, try_scenario

BATCH = 50
SHOWN_MAX = 10
PROGRESS_S = 5.0
EXPECTED = (Expectation("exact", equals=True),)
AS_PREDICTED = Expectation("links_as_predicted", equals=True)
"""A run judges its links' bytes only if its scenario asks for that."""


@dataclass(frozen=True)
class Subject:
    """What is searched: a system, on a P4 program that aggregates as the system's own program
    does."""

    system: str
    program: Path

    @cached_property
    def compiled(self) -> Program:
        """The program, compiled for the lanes and slots of all schedules."""
        parameters = programs.source(self.system, LANES, SLOTS).parameters
        return compile_program(self.program, "agglab", parameters)

    @cached_property
    def walks(self) -> walk.System[Any] | None:
        """The worlds for walks: the system's own, if it has models of its protocol, or bags of
        frames, if its switches keep any state."""
        compiled = native(self.compiled.json)
        make = proofs.of(self.system).walks
        if make:
            return make(compiled)
        return Bags(self.system, compiled) if compiled.program.registers else None

    def is_walk(self, seed: int) -> bool:
        """Whether a seed stands for a walk and not for a scenario."""
        return seed % 2 == 0 and self.walks is not None


_subject: Subject | None = None
"""The subject of this process of the pool."""


@dataclass(frozen=True)
class Found:
    """A seed whose schedule fails, and the finding."""

    seed: int
    finding: Finding


@dataclass(frozen=True)
class Tally:
    """The counts of a search. declared: the number of jobs that ended with a failure that they
    reported themselves."""

    schedules: int
    declared: int
    actions: int
    wall_s: float
    found: tuple[Found, ...]


def search(subject: Subject, seeds: range, processes: int, out: TextIO | None = None) -> Tally:
    """Tries the schedule of every seed."""
    assert native(subject.compiled.json), "built once, before the processes ask for it"
    begun = shown = time.monotonic()
    found: list[Found] = []
    tried = declared = actions = 0
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes, _prepare, (subject.system, subject.program)) as pool:
        for results in pool.imap_unordered(_batch, _batches(seeds)):
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


def _prepare(system: str, program: Path) -> None:
    """Prepares a process of the pool. What lives as long as the process is not searched for garbage
    again and again."""
    global _subject
    _subject = Subject(system, program)
    assert native(_subject.compiled.json), "loaded before the first schedule"
    gc.freeze()


def _batches(seeds: range) -> Iterator[range]:
    for first in range(0, len(seeds), BATCH):
        yield seeds[first : first + BATCH]


def _batch(seeds: range) -> list[tuple[int, Trial]]:
    assert _subject is not None
    return [(seed, try_seed(seed, _subject)) for seed in seeds]


def try_seed(seed: int, subject: Subject) -> Trial:
    """Runs and judges the walk or scenario of a seed."""
    if subject.is_walk(seed):
        return try_walk(walk.draw(seed, _walks(subject)), subject)
    return try_scenario(schedule(seed, subject.system), subject.compiled)


def try_walk(chosen: Walk[Any], subject: Subject, told: list[str] | None = None) -> Trial:
    """Takes the steps of a walk and judges it. told: a list to which descriptions of the steps are
    added."""
    wrong = walk.attempt(chosen, _walks(subject), told)
    findings = () if wrong is None else (Finding(wrong.kind, wrong.text),)
    return Trial(findings, actions=len(chosen.steps))


def _walks(subject: Subject) -> walk.System[Any]:
    assert subject.walks is not None, "who asks knows that the system has walks"
    return subject.walks


def minimal_walk(seed: int, finding: Finding, subject: Subject) -> tuple[Walk[Any], Finding]:
    """Returns a small walk that fails in the same way as a seed's walk, and its finding."""
    walks = _walks(subject)
    small = walk.shrink(walk.draw(seed, walks), walks, finding.kind)
    final = try_walk(small, subject).finding
    assert final is not None
    return small, final


def replay(path: Path, subject: Subject, out: TextIO) -> int:
    """Takes the steps of the walk in a file and prints each of them. Returns 0 if nothing is wrong,
    otherwise 1. Raises ValueError if the file has no walk or the system has no walks."""
    if subject.walks is None:
        raise ValueError(f"{subject.system} has no walks")
    chosen = walk.read(path, subject.walks.from_values)
    told: list[str] = []
    finding = try_walk(chosen, subject, told).finding
    for line in told:
        print(f"  {line}", file=out)
    print(finding or "nothing is wrong", file=out)
    return 1 if finding else 0


def minimal(seed: int, finding: Finding, subject: Subject) -> tuple[Scenario, Finding]:
    """Returns a small scenario that fails in the same way as a seed's scenario, and its finding."""
    compiled = subject.compiled

    def alike(scenario: Scenario) -> Finding | None:
        findings = try_scenario(scenario, compiled).findings
        return next((each for each in findings if each.kind == finding.kind), None)

    begun = schedule(seed, subject.system)
    small = shrink(
        begun,
        lambda each: try_scenario(each, compiled).dropped,
        lambda each: alike(each) is not None,
    )
    final = alike(small)
    assert final is not None
    expect = (*EXPECTED, AS_PREDICTED) if final.kind == LINK_BYTES else EXPECTED
    return replace(small, description=_one_line(str(final)), expect=expect), final


def write(scenario: Scenario, program: Path, folder: Path) -> Path:
    """Writes the scenario to a file that `agglab run` accepts, and returns the file's path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{scenario.name}.yaml"
    path.write_text(to_yaml(resolve(scenario, program)), encoding="utf-8")
    return path


def write_walk(small: Walk[Any], name: str, folder: Path) -> Path:
    """Writes the walk to a file that `explore --replay` accepts, and returns the file's path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(walk.to_json(small), encoding="utf-8")
    return path


def explore(subject: Subject, seeds: range, folder: Path, out: TextIO) -> int:
    """Searches, and prints and writes what was found. Returns 0 if nothing was found, otherwise
    1."""
    processes = len(os.sched_getaffinity(0))
    tally = search(subject, seeds, processes, out)
    _print(tally, seeds, processes, out)
    for each in tally.found[:SHOWN_MAX]:
        _show(each, subject, folder, out)
    return 1 if tally.found else 0


def _show(found: Found, subject: Subject, folder: Path, out: TextIO) -> None:
    """Prints a failure, made small, and the command that repeats it."""
    if subject.is_walk(found.seed):
        small_walk, finding = minimal_walk(found.seed, found.finding, subject)
        path = write_walk(small_walk, f"walk-{found.seed}", folder)
        chosen = f"--system {subject.system} --program {subject.program}"
        command = f"{module('agglab.verification')} explore {chosen} --replay {path}"
    else:
        small, finding = minimal(found.seed, found.finding, subject)
        path = write(small, subject.program, folder)
        command = f"{launcher()} run {path}"
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
        print(f"  nothing was wrong; {ended}", file=out)


def _one_line(text: str) -> str:
    return " ".join(text.split())[:200]
