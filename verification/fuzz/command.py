"""The command `fuzz`: tries inputs of each kind in several processes, and saves findings with their
seeds."""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from agglab.testbed.command_lines import module
from agglab.testbed.exit_codes import FAILED, INVALID, PASSED
from agglab.testbed.paths import REPOSITORY
from agglab.verification.fuzz.foreign import RUNS, ForeignTarget
from agglab.verification.fuzz.inputs import (
    JsonTarget,
    ScenarioTarget,
    ScriptTarget,
    SourceTarget,
    Target,
)
from agglab.verification.fuzz.messages import AgentTarget, DatagramTarget, RuntimeTarget
from agglab.verification.fuzz.names import AnnotationTarget, NamesTarget
from agglab.verification.fuzz.packets import Sent, Subject, send, subjects

RESULTS = REPOSITORY / "build" / "fuzz"
TESTS = REPOSITORY / "tests" / "packets"
TARGETS: dict[str, type[Target]] = {
    target.name: target
    for target in (
        *(NamesTarget, AnnotationTarget, JsonTarget, SourceTarget, ScriptTarget, ScenarioTarget),
        *(RuntimeTarget, AgentTarget, DatagramTarget, ForeignTarget),
    )
}
PACKETS = 1_000_000
INPUTS = {
    "names": 1000,
    "annotations": 2000,
    "json": 4000,
    "p4": 2000,
    "stf": 1000,
    "scenario": 1000,
    "foreign": RUNS,
}
OTHER_INPUTS = 500
HANG_S = 30
RANDOM_PROGRAMS = range(1, 5)
AGGREGATION_SHARE = 0.25
"""The share of all packets that go to the aggregation program, which is the laboratory's main
purpose."""


class Hang(Exception):
    """Raised if an input takes longer than HANG_S seconds."""


@dataclass(frozen=True)
class Found:
    """The findings for some seeds of one kind of input. troubles: one text for each finding."""

    kind: str
    inputs: int
    troubles: tuple[str, ...]


def main(words: Sequence[str]) -> int:
    options = _parser().parse_args(words)
    unknown = [name for name in options.only if name not in (*TARGETS, "packets")]
    if unknown:
        known = ", ".join(["packets", *TARGETS])
        print(f"fuzz: nothing is called {unknown[0]!r}; known: {known}", file=sys.stderr)
        return INVALID
    options.results.mkdir(parents=True, exist_ok=True)
    chosen = options.only or ["packets", *TARGETS]
    with ProcessPoolExecutor(options.workers) as pool:
        wrong = _packets(pool, options) if "packets" in chosen else 0
        for name in TARGETS:
            if name in chosen:
                wrong += _inputs(pool, name, options)
    print(f"fuzz: {wrong} findings in {options.results}" if wrong else "fuzz: nothing found")
    return FAILED if wrong else PASSED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"{module('agglab.verification')} fuzz",
        description="Try malformed inputs of each kind in several processes, and save findings with"
        " their seeds.",
    )
    parser.add_argument(
        "--packets",
        type=int,
        default=PACKETS,
        metavar="N",
        help=f"number of packets (default: {PACKETS})",
    )
    parser.add_argument(
        "--scale",
        type=float,
        default=1.0,
        metavar="X",
        help="run X times the usual number of other inputs (default: 1)",
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="all inputs derive from this seed (default: 1)"
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=len(os.sched_getaffinity(0)),
        metavar="W",
        help="number of processes",
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=RESULTS,
        metavar="DIR",
        help="the folder for findings (default: build/fuzz)",
    )
    parser.add_argument(
        "only", nargs="*", help=f"kinds of input: packets, {', '.join(TARGETS)} (default: all)"
    )
    return parser


def _packets(pool: ProcessPoolExecutor, options: argparse.Namespace) -> int:
    started, folder = time.monotonic(), options.results
    waiting = []
    for subject, count in shares(subjects(TESTS, folder, RANDOM_PROGRAMS), options.packets):
        waiting.append(pool.submit(send, subject, folder, options.seed, 0, count))
    packets = copies = wrong = 0
    for future in as_completed(waiting):
        sent: Sent = future.result()
        packets, copies = packets + sent.packets, copies + sent.copies
        if sent.trouble:
            wrong += 1
            print(f"packets: {sent.name}: {sent.trouble[:2000]}", flush=True)
        _show(f"packets: {packets}")
    elapsed_s = time.monotonic() - started
    print(
        f"packets: {packets} malformed ones through {len(waiting)} programs under sanitizers, "
        f"{copies} came out, {wrong} programs in trouble ({elapsed_s:.0f} s)",
        flush=True,
    )
    return wrong


def shares(found: Sequence[Subject], packets: int) -> Iterator[tuple[Subject, int]]:
    """Yields each program with the number of packets that it is to receive. The first program
    receives the largest number."""
    first = int(packets * AGGREGATION_SHARE)
    each, rest = divmod(packets - first, max(1, len(found) - 1))
    for number, subject in enumerate(found):
        yield subject, first if number == 0 else each + (number <= rest)


def _inputs(pool: ProcessPoolExecutor, name: str, options: argparse.Namespace) -> int:
    started = time.monotonic()
    total = max(1, int(INPUTS.get(name, OTHER_INPUTS) * options.scale))
    size = max(1, total // (options.workers * 8))
    parts = [range(at, min(at + size, total)) for at in range(0, total, size)]
    waiting = [pool.submit(attempt, name, options.seed, part, options.results) for part in parts]
    done, troubles = 0, list[str]()
    for future in as_completed(waiting):
        found: Found = future.result()
        done += found.inputs
        troubles += found.troubles
        for text in found.troubles:
            print(f"{name}: {text}", flush=True)
        _show(f"{name}: {done} of {total}")
    elapsed_s = time.monotonic() - started
    print(f"{name}: {done} inputs, {len(troubles)} findings ({elapsed_s:.0f} s)", flush=True)
    return len(troubles)


_targets: dict[str, Target] = {}
"""The targets of this process, set up once."""


def attempt(name: str, seed: int, numbers: Iterable[int], results: Path) -> Found:
    """Tries inputs of one kind, one after the other. If an input fails, it is saved with the
    traceback."""
    signal.signal(signal.SIGALRM, _hangs)
    troubles, count = [], 0
    if name not in _targets:
        _targets[name] = TARGETS[name](TESTS)
    for number in numbers:
        count += 1
        text = _targets[name].draw(random.Random(f"{name} {seed} {number}"))
        try:
            _targets[name].prepare(text)
            signal.alarm(HANG_S)
            _targets[name].survive(text)
        except Exception as error:
            path = results / f"{name}-{seed}-{number}.txt"
            path.write_bytes(text.encode(errors="surrogateescape"))
            path.with_suffix(".trace").write_text(traceback.format_exc())
            troubles.append(f"{path}: {type(error).__name__}: {str(error)[:300]}")
        finally:
            signal.alarm(0)
    return Found(name, count, tuple(troubles))


def _hangs(_signal: int, _frame: FrameType | None) -> None:
    raise Hang(f"more than {HANG_S} s")


def _show(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="\r", file=sys.stderr, flush=True)
