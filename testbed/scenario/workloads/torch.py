"""Implements `torch`: a user's own training scripts, verified by the reductions that the system
made for them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from agglab.hosts.agreement import operation_name
from agglab.hosts.bfloat16 import dtype_of
from agglab.hosts.endpoint import PRESENCE
from agglab.hosts.script_ledger import INPUT, OUTCOME, REDUCTION, RESULT, SUMS, sample_name
from agglab.hosts.workloads import DTYPES, Dense, Torch, Work
from agglab.testbed.scenario.workloads import script_imports
from agglab.testbed.scenario.workloads.base import Workload
from agglab.testbed.scenario.workloads.correctness import Verdict, WrongValue, combine, verify_sums
from agglab.testbed.scenario.workloads.judged_time import STEP
from agglab.testbed.schema.metric import counted, items, measured
from agglab.testbed.systems.base import ActiveJob, ResolvedScenario
from agglab.testbed.systems.received_arrays import Received

if TYPE_CHECKING:
    from agglab.testbed.schema.workload_section import Workload as Section

NS_PER_S = 1e9
CURVE_POINTS = 256
COMPARED = ("elements", "dtype", "operation", "tensors", "digest")
"""The fields of a REDUCTION that have to be equal at all ranks."""
STEPS_MAX = 256
"""The largest number of steps whose times are kept."""
Value = TypeVar("Value")
Array = npt.NDArray[Any]


class TrainingScript(Workload):
    kind = Torch.kind
    keys = ("script", "arguments")
    free = ("arguments",)
    unread = ("worker",)
    dtypes = ("float32", "float16", "bfloat16")
    clocks = ("mininet",)
    made_of = Dense.kind
    unpredictable = "what {} reduces its script decides"
    round_s = 3600.0
    headline = STEP
    reduces_elements = False
    metrics = (
        counted("training.loss.first", "", "the first loss that the script reported"),
        counted("training.loss.last", "", "the last loss that the script reported"),
        counted("training.accuracy", "", "the last accuracy that the script reported"),
        items("training.curve", "[seconds since the training began, loss], as reported"),
        items(
            "training.accuracy_curve", "[seconds since the training began, accuracy], as reported"
        ),
        counted("training.steps", "steps", "steps that the script reported"),
        measured("training.step_s.median", "s", "seconds from one step's report to the next"),
        measured("training.step_s.min", "s", "the shortest"),
        measured("training.step_s.max", "s", "the longest"),
        items(
            "training.step_s.all",
            "every step's time, in order; of more than "
            f"{STEPS_MAX} steps, as many evenly spaced ones",
        ),
        counted(
            "training.reductions",
            "all-reduces",
            "all-reduces that a rank did with the system, and votes about their "
            "order (training-backend.md)",
        ),
        counted("training.reduced_bytes", "bytes", "bytes of the tensors in these all-reduces"),
        measured("training.reducing_s", "s", "seconds that these all-reduces took together"),
        counted(
            "training.sampled",
            "all-reduces",
            "all-reduces whose sums were computed again and compared",
        ),
        counted(
            "training.counts.*",
            "",
            "what the script's process group counted at a rank (training.md)",
        ),
        counted(
            "training.ranks.*.steps",
            "steps",
            "steps of each rank; the following metrics are also those of a rank",
        ),
        measured("training.ranks.*.step_s", "s", "the median"),
        counted("training.ranks.*.loss", "", "the last loss that the script reported"),
        counted("training.ranks.*.reductions", "all-reduces", ""),
        counted("training.ranks.*.reduced_bytes", "bytes", ""),
        measured("training.ranks.*.reducing_s", "s", ""),
    )

    def work(self, section: Section, workers: int) -> Torch:
        return Torch(section.elements, section.script, tuple(section.arguments), section.dtype)

    def facts(self, work: Work) -> Mapping[str, Any]:
        assert isinstance(work, Torch)
        content = Path(work.script).read_bytes()
        return {f"{Path(work.script).name} sha256": hashlib.sha256(content).hexdigest()}

    def lacks(self, work: Work) -> Iterator[tuple[str, str]]:
        assert isinstance(work, Torch)
        return script_imports.lacks(Path(work.script))

    def verdict(
        self,
        resolved: ResolvedScenario,
        job: ActiveJob,
        number: int,
        received: Mapping[int, Received],
    ) -> Verdict:
        """Returns the verdict. A training run is right if three things hold: all ranks have equal
        results of every reduction, the sampled sums are what the system has to make, and all ranks
        end with equal parameters."""
        trainings, wrong = {}, []
        for rank, one in received.items():
            training = opened(one)
            if training is None:
                wrong.append(WrongValue("training", rank, None, "an account of it", "none"))
            else:
                trainings[rank] = training
        if wrong or not trainings:
            return Verdict(len(wrong), len(wrong), wrong[0] if wrong else None)
        wrong = [*_unlike_results(trainings), *_unlike_parameters(trainings)]
        verdicts = [Verdict(len(wrong), len(wrong), wrong[0] if wrong else None)]
        if not wrong and set(job.members) <= trainings.keys():
            verdicts += _sampled(resolved, job, trainings)
        return replace(combine(verdicts), measures=measures(trainings))

    def summary(
        self, work: Work, times_s: Sequence[float], verdicts: Sequence[Verdict]
    ) -> Mapping[str, Any]:
        return summary([verdict.measures for verdict in verdicts if verdict.measures])


@dataclass(frozen=True)
class Training:
    """What one rank left after a round. reductions: an array of REDUCTION, by the reduction's
    number. outcome: what the agent reported about the training (see OUTCOME). arrays: the sampled
    inputs, sums and results."""

    reductions: npt.NDArray[np.void]
    outcome: Mapping[str, Any]
    arrays: Mapping[str, Array]

    @property
    def reports(self) -> Sequence[Mapping[str, Any]]:
        """The script's reports, each with `t_ns`."""
        reports: Sequence[Mapping[str, Any]] = self.outcome["reports"]
        return reports

    @property
    def sampled(self) -> list[int]:
        """The numbers of the reductions that were sampled."""
        names = (name.partition("-") for name in self.arrays)
        return sorted(int(number) for what, _, number in names if what == RESULT)

    def curve(self, name: str) -> list[tuple[float, float]]:
        """Returns (seconds since the training began, value) for each report that contains a number
        with this name."""
        began_ns = self.outcome["began_ns"]
        return [
            ((one["t_ns"] - began_ns) / NS_PER_S, float(one[name]))
            for one in self.reports
            if isinstance(one.get(name), int | float)
        ]

    def steps_s(self) -> list[float]:
        """Returns the times between consecutive reports of steps, in seconds."""
        times = [one["t_ns"] for one in self.reports if one.get("step") is not None]
        return [(b - a) / NS_PER_S for a, b in pairwise(times)]


def opened(one: Received) -> Training | None:
    """Returns the training that an agent has left; None if it has left none."""
    outcome = one.more.get(OUTCOME)
    if one.whole is None or one.whole.dtype != np.uint8 or outcome is None:
        return None
    arrays = {name: array for name, array in one.more.items() if name != OUTCOME}
    return Training(one.whole.view(REDUCTION), json.loads(outcome.tobytes()), arrays)


def _unlike_results(trainings: Mapping[int, Training]) -> Iterator[WrongValue]:
    """Yields each reduction whose result at some rank differs from that at the first rank. Also
    yields each rank that made another number of reductions than the first."""
    first, *others = trainings
    ours = trainings[first].reductions
    for rank in others:
        theirs = trainings[rank].reductions
        if len(theirs) != len(ours):
            yield WrongValue("reductions", rank, None, f"{len(ours)}", f"{len(theirs)}")
        for number, (a, b) in enumerate(zip(ours, theirs, strict=False)):
            same = all(np.array_equal(a[name], b[name]) for name in COMPARED)
            if not same:
                yield WrongValue("reduction", rank, number, _described(a), _described(b))


def _described(row: np.void) -> str:
    dtype, operation = DTYPES[row["dtype"]], operation_name(int(row["operation"]))
    return (
        f"{operation} of {row['elements']} {dtype} (tensors of digest {row['tensors']}) with hash "
        f"{row['digest'].tobytes().hex()[:16]}"
    )


def _unlike_parameters(trainings: Mapping[int, Training]) -> Iterator[WrongValue]:
    """Yields each rank that reports other model parameters than the first rank."""
    found = {
        rank: [one["parameters"] for one in training.reports if one.get("parameters") is not None]
        for rank, training in trainings.items()
    }
    first, *others = found
    for rank in others:
        if found[rank] != found[first]:
            ours, theirs = (" ".join(map(str, found[n]))[:64] or "none" for n in (first, rank))
            yield WrongValue("parameters", rank, None, ours, theirs)


def _sampled(
    resolved: ResolvedScenario, job: ActiveJob, trainings: Mapping[int, Training]
) -> Iterator[Verdict]:
    """Yields a verdict on each sampled reduction. It compares what all ranks received with the sum
    of all ranks' inputs, which the testbed computes."""
    for number in trainings[min(trainings)].sampled:
        yield _one_sampled(resolved, job, trainings, number)


def _one_sampled(
    resolved: ResolvedScenario, job: ActiveJob, trainings: Mapping[int, Training], number: int
) -> Verdict:
    row = trainings[min(trainings)].reductions[number]
    elements, dtype = int(row["elements"]), DTYPES[row["dtype"]]
    given = [trainings[rank].arrays.get(sample_name(INPUT, number)) for rank in job.members]
    for rank, values in zip(job.members, given, strict=True):
        if values is None or (values.dtype, values.size) != (dtype_of(dtype), elements):
            missing = WrongValue("reduction", rank, number, "a sample of it", "none")
            return Verdict(1, 1, missing)
    # The system treats it as a round with this number of values.
    work = Dense(elements, dtype)
    alone = replace(job, job=replace(job.job, work=work))

    def inputs(start: int, count: int) -> list[Array]:
        return [values[start : start + count] for values in given if values is not None]

    def received(training: Training) -> Received:
        result, sums, presence = (
            training.arrays.get(sample_name(what, number)) for what in (RESULT, SUMS, PRESENCE)
        )
        return Received(result, sums, more={} if presence is None else {PRESENCE: presence})

    results = [received(trainings[rank]) for rank in job.members]
    verdict = verify_sums(resolved, alone, inputs, results)
    if verdict.first is None:
        return verdict
    what = f"{verdict.first.what} of reduction {number}"
    rank = job.members[verdict.first.rank]
    return replace(verdict, first=replace(verdict.first, rank=rank, what=what))


def measures(trainings: Mapping[int, Training]) -> dict[str, Any]:
    """Returns the metrics of one training run, by their paths without `training.`. A value that no
    report has is None."""
    first = trainings[min(trainings)]
    steps, losses, accuracies = first.steps_s(), first.curve("loss"), first.curve("accuracy")
    return {
        "loss.first": losses[0][1] if losses else None,
        "loss.last": losses[-1][1] if losses else None,
        "accuracy": accuracies[-1][1] if accuracies else None,
        "curve": _spaced(losses, CURVE_POINTS),
        "accuracy_curve": _spaced(accuracies, CURVE_POINTS),
        "step_s.median": median(steps) if steps else None,
        "step_s.min": min(steps, default=None),
        "step_s.max": max(steps, default=None),
        "step_s.all": _spaced(steps, STEPS_MAX),
        **_of_rank(first),
        "sampled": len(first.sampled),
        "counts": {n.replace(".", "_"): count for n, count in first.outcome["counts"].items()},
        "ranks": {str(rank): _rank_alone(training) for rank, training in trainings.items()},
    }


def _spaced(values: Sequence[Value], most: int) -> list[Value]:
    """Returns at most this many of the values, evenly spaced from the first on."""
    return list(values[:: -(-len(values) // most) or 1])


def _of_rank(training: Training) -> dict[str, Any]:
    rows = training.reductions
    value_bytes = np.array([dtype_of(dtype).itemsize for dtype in DTYPES])
    return {
        "steps": sum(one.get("step") is not None for one in training.reports),
        "reductions": len(rows),
        "reduced_bytes": int((rows["elements"] * value_bytes[rows["dtype"]]).sum()),
        "reducing_s": float((rows["end_ns"] - rows["begin_ns"]).sum() / NS_PER_S),
    }


def _rank_alone(training: Training) -> dict[str, Any]:
    steps, losses = training.steps_s(), training.curve("loss")
    return {
        **_of_rank(training),
        "step_s": median(steps) if steps else None,
        "loss": losses[-1][1] if losses else None,
    }


def summary(runs: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Returns the section `training` of a job. Numbers are means over the job's training runs, and
    all other values are those of the first training run."""
    if not runs:
        return {}
    training: dict[str, Any] = {}
    for path, value in runs[0].items():
        *sections, name = path.split(".")
        place = training
        for section in sections:
            place = place.setdefault(section, {})
        values = [run[path] for run in runs if run[path] is not None]
        numbers = isinstance(value, int | float) and len(values) > 1
        place[name] = fmean(values) if numbers else value
    return {"training": training}
