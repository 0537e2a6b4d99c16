"""Runs random programs, one for each seed, on every pair of compiler and switch. Shows progress.
Programs on which pairs differ are made small and saved."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from p4native.common.exit_codes import FAILED, LACKING, PASSED
from p4native.stf import StfError
from p4native.verification.conformance.pairs import Pair
from p4native.verification.conformance.random_case import Outcome, describe, groups, run_pairs
from p4native.verification.random_programs import Case, draw_case, shrink_lines, shrink_program

PATIENT_S = 2.0
"""How long BMv2's outputs must be quiet at the second attempt. It is longer in case the machine was
busy at the first one."""
CAREFUL_FLAGS = tuple(
    f"--Werror={kind}"
    for kind in ("uninitialized-use", "uninitialized-out-param", "invalid-header")
)
"""Flags that refuse variables without a value. Without them, making a program smaller could remove
the statements that give values to variables."""


@dataclass(frozen=True)
class Verdict:
    """The verdict on one seed. kind: agree, refused (by p4c, or by BMv2 for p4c's output), differ,
    or not run (a compiler or switch could not run, and the others agree)."""

    seed: int
    kind: str
    packets: int = 0
    lines: tuple[str, ...] = ()


def run(
    seeds: Sequence[int], pairs: Sequence[Pair], results: Path, workers: int, shrink_s: float
) -> int:
    """Returns the exit code. Cases that differ are in results/random/SEED/ as program.p4 and
    test.stf."""
    started, tally, packets = time.monotonic(), Counter[str](), 0
    reasons: Counter[str] = Counter()
    silent: Counter[str] = Counter()
    for verdict in _verdicts(seeds, pairs, results / "random", workers, shrink_s):
        tally[verdict.kind] += 1
        packets += verdict.packets
        if verdict.kind == "refused":
            reasons[verdict.lines[0]] += 1
        if verdict.kind == "not run":
            silent[verdict.lines[0]] += 1
        if verdict.kind == "differ":
            print("\n".join([f"seed {verdict.seed} differs:", *verdict.lines]), flush=True)
        _show(tally, len(seeds), time.monotonic() - started)
    for reason, count in reasons.most_common():
        print(f"{count} refused by p4c: {reason}")
    for reason, count in silent.most_common():
        print(f"{count} not compared: {reason}")
    wrong = f"{tally['differ']} differ" if tally["differ"] else "all agree"
    if tally["not run"]:
        wrong = f"{tally['not run']} could not run, {wrong.replace('all', 'the others')}"
    print(
        f"random: {sum(tally.values())} programs from seed {seeds[0]}, {tally['refused']} of them "
        f"refused by p4c, {packets} packets, {len(pairs)} pairs: {wrong} "
        f"({time.monotonic() - started:.0f} s)"
    )
    return FAILED if tally["differ"] else LACKING if tally["not run"] else PASSED


def _show(tally: Counter[str], total: int, elapsed_s: float) -> None:
    done = sum(tally.values())
    if sys.stderr.isatty():
        text = f"{done} of {total}, {tally['differ']} differ, {elapsed_s:.0f} s"
        print(f"\r\033[K{text}", end="\r" if done < total else "\n", file=sys.stderr, flush=True)
    elif done % 100 == 0:
        print(f"{done} of {total}, {tally['differ']} differ", file=sys.stderr, flush=True)


def _verdicts(
    seeds: Sequence[int], pairs: Sequence[Pair], results: Path, workers: int, shrink_s: float
) -> Iterator[Verdict]:
    """Yields verdicts as they become available. The caller starts more processes than there are
    processors, because BMv2 waits most of the time."""
    judge = partial(judge_seed, pairs=pairs, results=results, shrink_s=shrink_s)
    with (
        tempfile.TemporaryDirectory(prefix="p4native-random-cache-") as cache,
        ProcessPoolExecutor(workers, initializer=_build_in, initargs=(cache,)) as pool,
    ):
        for future in as_completed([pool.submit(judge, seed) for seed in seeds]):
            yield future.result()


def _build_in(cache: str) -> None:
    """Puts compiled programs into a folder that is removed afterwards, since nobody needs these
    programs again."""
    os.environ["P4NATIVE_CACHE"] = cache


def default_workers() -> int:
    return 2 * len(os.sched_getaffinity(0))


def judge_seed(seed: int, pairs: Sequence[Pair], results: Path, shrink_s: float) -> Verdict:
    """Runs the case of a seed and returns the verdict. A difference only counts if it occurs again
    in a second run, which waits longer for packets."""
    case = draw_case(seed)
    outcomes = _outcomes(case.program, case.script(), pairs)
    if len(groups(_judged(outcomes))) > 1:
        outcomes = _outcomes(case.program, case.script(), pairs, PATIENT_S)
    judged = _judged(outcomes)
    if len(groups(judged)) > 1:
        return Verdict(seed, "differ", lines=(*_save(case, judged, results, shrink_s), ""))
    silent = [outcome.not_run for outcome in outcomes.values() if outcome.not_run]
    if silent:
        return Verdict(seed, "not run", len(case.packets), (silent[0],))
    if len(judged) < len(outcomes):
        refused = next(o for p, o in outcomes.items() if p not in judged)
        reason = " ".join(refused.refused.split())[:160]
        return Verdict(seed, "refused", len(case.packets), (reason,))
    return Verdict(seed, "agree", len(case.packets))


def _judged(outcomes: dict[Pair, Outcome]) -> dict[Pair, Outcome]:
    """Returns the outcomes that are compared. Outcomes of compilers and switches that could not run
    are left out. Those of p4c are left out if it refuses the program or if BMv2 refuses p4c's
    output, because such a fault is not one of ours."""
    refused = {
        pair.compiler
        for pair, outcome in outcomes.items()
        if pair.compiler == "p4c"
        and (
            outcome.refused.startswith("does not compile")
            or (outcome.refused and pair.switch == "bmv2")
        )
    }
    heard = {pair: o for pair, o in outcomes.items() if not o.not_run}
    return {pair: o for pair, o in heard.items() if pair.compiler not in refused}


def _outcomes(
    program: str,
    script: str,
    pairs: Sequence[Pair],
    quiet_s: float | None = None,
    flags: Sequence[str] = (),
) -> dict[Pair, Outcome]:
    with tempfile.TemporaryDirectory(prefix="p4native-random-") as name:
        path = Path(name) / "program.p4"
        path.write_text(program)
        if quiet_s is None:
            return run_pairs(path, script, pairs, Path(name), flags=flags)
        return run_pairs(path, script, pairs, Path(name), quiet_s, flags)


def _save(case: Case, outcomes: dict[Pair, Outcome], results: Path, shrink_s: float) -> list[str]:
    """Writes the whole case, and a version of it made as small as possible. Returns lines about the
    differences."""
    folder = results / str(case.seed)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "whole.p4").write_text(case.program)
    (folder / "whole.stf").write_text(case.script())
    first, *others = groups(outcomes)
    compared = _cheapest(first, others[0])
    program, script = shrink(case.program, case.script(), compared, outcomes, shrink_s)
    small = _outcomes(program, script, list(outcomes))
    lines = describe(small)
    expected = [
        f"expect {port} {frame.hex()}$"
        for port, frames in next(iter(small.values())).frames.items()
        for frame in frames
    ]
    (folder / "program.p4").write_text(program)
    (folder / "test.stf").write_text("\n".join([script, *expected, ""]))
    (folder / "differs.txt").write_text("\n".join([*describe(outcomes), "", "small:", *lines, ""]))
    paths = map(str, (folder / "program.p4", folder / "test.stf"))
    replay = shlex.join([sys.executable, "-m", "p4native.stf", *paths])
    return [*lines, f"  {len(program.splitlines())} lines: {replay}"]


def _cheapest(first: Sequence[Pair], second: Sequence[Pair]) -> list[Pair]:
    """Returns one pair from each of the two groups. A pair with our switch is preferred, because
    our switch takes less time than BMv2."""
    return [min(part, key=lambda p: p.switch == "bmv2") for part in (first, second)]


def shrink(
    program: str,
    script: str,
    pairs: Sequence[Pair],
    outcomes: dict[Pair, Outcome],
    shrink_s: float,
) -> tuple[str, str]:
    """Returns (program, script), made as small as is possible within `shrink_s` seconds while the
    two pairs still differ in the same way."""
    deadline = time.monotonic() + shrink_s
    refusals = [outcomes[pair].refused for pair in pairs]

    def differs(program: str, script: str, flags: Sequence[str]) -> bool:
        if time.monotonic() > deadline:
            return False
        try:
            found = _outcomes(program, script, pairs, flags=flags)
        except StfError:
            return False
        refused = [found[pair].refused for pair in pairs]
        return refused == refusals and len(groups(found)) > 1

    flags = next((f for f in (CAREFUL_FLAGS, ()) if differs(program, script, f)), ())
    script = shrink_lines(script, lambda text: differs(program, text, flags))
    program = shrink_program(program, lambda text: differs(text, script, flags))
    script = shrink_lines(script, lambda text: differs(program, text, flags))
    return program, script
