"""The command `fuzz`: tries inputs of each kind in several processes, and saves findings with their
seeds."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path

from p4native.common.exit_codes import FAILED, INVALID, LACKING, PASSED
from p4native.verification.corpus import TESTS, Corpus
from p4native.verification.fuzz.attempts import attempt
from p4native.verification.fuzz.inputs import JsonTarget, ScriptTarget, SourceTarget, why_unusable
from p4native.verification.fuzz.names import AnnotationTarget, NamesTarget
from p4native.verification.fuzz.packets import Sent, Subject, send, subjects
from p4native.verification.fuzz.runtime_requests import RuntimeTarget
from p4native.verification.fuzz.target import Target

RESULTS = Path("build/fuzz")
TARGETS: tuple[type[Target], ...] = (
    *(NamesTarget, AnnotationTarget, JsonTarget, SourceTarget, ScriptTarget, RuntimeTarget),
)
PACKETS = 1_000_000
RANDOM_PROGRAMS = range(1, 5)
EXIT_CODES = """exit codes:
  0  nothing was found
  1  a finding was saved
  2  the command line is wrong, or a program or packet test of --programs is
  3  there are no programs to start from"""


def main(
    words: Sequence[str],
    prog: str = "python -m p4native.verification fuzz",
    more: Sequence[type[Target]] = (),
    more_subjects: Callable[[], Sequence[Subject]] = list,
) -> int:
    """Runs the command and returns its exit code.

    prog: how the user starts the command. more: targets for further kinds of input, tried after the
    toolchain's. more_subjects: returns further programs to which malformed packets are sent.
    """
    kinds = {target.name: target for target in (*TARGETS, *more)}
    options = _parser(prog, kinds).parse_args(words)
    corpus = Corpus(tuple(options.programs))
    if problem := _problem(options, kinds, corpus):
        print(f"fuzz: {problem}", file=sys.stderr)
        return INVALID
    if not corpus.programs():
        lack = f"no P4 programs in {TESTS}: run it in a checkout, or name folders with --programs"
        print(f"fuzz: {lack}", file=sys.stderr)
        return LACKING
    options.results.mkdir(parents=True, exist_ok=True)
    chosen = options.only or ["packets", *kinds]
    wrong = 0
    with ProcessPoolExecutor(options.workers) as pool:
        if "packets" in chosen:
            receivers = [*more_subjects(), *subjects(corpus, options.results, RANDOM_PROGRAMS)]
            wrong += _packets(pool, receivers, options)
        for name in kinds:
            if name in chosen:
                wrong += _inputs(pool, kinds[name], corpus, options)
    print(f"fuzz: {wrong} findings in {options.results}" if wrong else "fuzz: nothing found")
    return FAILED if wrong else PASSED


def _parser(prog: str, kinds: Mapping[str, type[Target]]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Try malformed inputs of each kind in several processes, and save findings with"
        " their seeds.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "--packets",
        type=int,
        default=PACKETS,
        metavar="N",
        help=f"number of packets (default: {PACKETS})",
    )
    add(
        "--scale",
        type=float,
        default=1.0,
        metavar="X",
        help="run X times the usual number of other inputs (default: 1)",
    )
    add("--seed", type=int, default=1, help="all inputs derive from this seed (default: 1)")
    add(
        "--programs",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="a folder of P4 programs to start from, in addition to the toolchain's packet tests; "
        "a program may have a packet test of the same name (.stf) beside it",
    )
    add(
        "--workers",
        type=int,
        default=len(os.sched_getaffinity(0)),
        metavar="W",
        help="number of processes",
    )
    add(
        "--results",
        type=Path,
        default=RESULTS,
        metavar="DIR",
        help=f"the folder for findings (default: {RESULTS})",
    )
    add("only", nargs="*", help=f"kinds of input: packets, {', '.join(kinds)} (default: all)")
    return parser


def _problem(options: argparse.Namespace, kinds: Mapping[str, type[Target]], corpus: Corpus) -> str:
    """Returns what is wrong with the command line, or an empty string."""
    for name in options.only:
        if name not in (*kinds, "packets"):
            return f"nothing is called {name!r}; known: {', '.join(['packets', *kinds])}"
    for folder in corpus.more:
        if not any(folder.glob("*.p4")):
            return f"--programs {folder}: no folder with P4 programs"
    return next(filter(None, map(why_unusable, corpus.further())), "")


def _packets(
    pool: ProcessPoolExecutor, receivers: Sequence[Subject], options: argparse.Namespace
) -> int:
    started = time.monotonic()
    through = partial(send, folder=options.results, seed=options.seed, first=0)
    waiting = [
        pool.submit(through, subject, count=count)
        for subject, count in shares(receivers, options.packets)
    ]
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


def shares(receivers: Sequence[Subject], packets: int) -> Iterator[tuple[Subject, int]]:
    """Yields each program with the number of packets that it is to receive."""
    fixed = {subject: int(packets * subject.share) for subject in receivers if subject.share}
    others = [subject for subject in receivers if not subject.share]
    each, rest = divmod(packets - sum(fixed.values()), max(1, len(others)))
    yield from fixed.items()
    for number, subject in enumerate(others):
        yield subject, each + (number < rest)


def _inputs(
    pool: ProcessPoolExecutor, kind: type[Target], corpus: Corpus, options: argparse.Namespace
) -> int:
    started = time.monotonic()
    total = max(1, int(kind.inputs * options.scale))
    size = max(1, total // (options.workers * 8))
    parts = [range(at, min(at + size, total)) for at in range(0, total, size)]
    tried = partial(attempt, kind, corpus, options.seed, results=options.results)
    done, wrong = 0, 0
    for future in as_completed([pool.submit(tried, part) for part in parts]):
        attempts = future.result()
        done += attempts.inputs
        wrong += len(attempts.troubles)
        for text in attempts.troubles:
            print(f"{kind.name}: {text}", flush=True)
        _show(f"{kind.name}: {done} of {total}")
    elapsed_s = time.monotonic() - started
    print(f"{kind.name}: {done} inputs, {wrong} findings ({elapsed_s:.0f} s)", flush=True)
    return wrong


def _show(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="\r", file=sys.stderr, flush=True)
