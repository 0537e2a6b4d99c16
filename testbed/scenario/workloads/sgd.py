"""Implements `sgd`: synchronous training of a small network, verified step by step. Every worker's
gradients are computed again from the sums that it has received."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from agglab.hosts.bfloat16 import dtype_of, name_of, numbers
from agglab.hosts.workloads import InputKey, Sgd, Work
from agglab.hosts.workloads.layers import Bucket
from agglab.testbed.scenario.workloads import reductions
from agglab.testbed.scenario.workloads.base import Workload
from agglab.testbed.scenario.workloads.correctness import Verdict, WrongValue, combine, verify_sums
from agglab.testbed.scenario.workloads.judged_time import STEP
from agglab.testbed.schema.metric import counted, items, measured
from agglab.testbed.systems.base import ActiveJob, ResolvedScenario
from agglab.testbed.systems.received_arrays import Received, Values

if TYPE_CHECKING:
    from agglab.testbed.schema.workload_section import Workload as Section

NS_PER_S = 1e9
CURVE_POINTS = 32
"""The approximate number of a training's models that are evaluated on examples that no worker has
seen."""
Array = npt.NDArray[Any]


class SynchronousTraining(Workload):
    kind = Sgd.kind
    keys = ("steps", "features", "hidden", "classes", "batch", "learning_rate", "compute_s", "goal")
    free = ("goal",)
    unread = ("elements", "worker")
    dtypes = ("float32", "float16", "bfloat16")
    unpredictable = "what {} sums depends on its model"
    headline = STEP
    metrics = (
        counted("training.parameters", "values", "values of the model, and of each gradient"),
        measured(
            "training.step_s.median", "s", "time of a round over its steps, median of all rounds"
        ),
        items("training.step_s.all", "time of each round over its steps"),
        counted(
            "training.loss.first",
            "",
            "cross-entropy of the first model on examples that no worker has",
        ),
        counted("training.loss.last", "", "of the last, mean of all rounds"),
        counted(
            "training.accuracy",
            "",
            "share of these examples whose class the last model names, likewise",
        ),
        measured(
            "training.goal_s",
            "s",
            "seconds until the accuracy first was `workload.goal`, as far as models "
            "were judged, in the first round; null if it never was",
        ),
        items(
            "training.curve", "[seconds since it began, cross-entropy] of the first round's models"
        ),
        items("training.accuracy_curve", "[seconds since it began, accuracy] of the same"),
    )

    def work(self, section: Section, workers: int) -> Sgd:
        return Sgd(
            dtype=section.dtype,
            steps=section.steps,
            features=section.features,
            hidden=section.hidden,
            classes=section.classes,
            batch=section.batch,
            rate=section.learning_rate,
            compute_ns=round(section.compute_s * NS_PER_S),
            goal=section.goal,
        )

    def verdict(
        self,
        resolved: ResolvedScenario,
        job: ActiveJob,
        number: int,
        received: Mapping[int, Received],
    ) -> Verdict:
        """Returns the verdict. All members must have the same sums. The sums of a step are right if
        they are what the system makes of the gradients of the right model. This model follows from
        the sums of the earlier steps."""
        work = job.job.work
        assert isinstance(work, Sgd)
        wrong = _unlike(work, received)
        if wrong:
            return Verdict(len(wrong), len(wrong), wrong[0])
        whole = next(iter(received.values())).whole
        assert whole is not None
        examples = [
            work.inputs(InputKey(resolved.seed, job.job.number, rank, number))
            for rank in job.members
        ]
        model, models, verdicts = work.first_model(), [work.first_model()], []
        for bucket, each in zip(work.buckets, reductions.active(job), strict=True):
            gradients = [
                work.gradient(model, work.examples_of(bucket.first, own)) for own in examples
            ]
            verdicts.append(_step(resolved, each, bucket, gradients, received))
            summed = whole[bucket.start : bucket.start + bucket.elements]
            model = work.moved(model, summed, len(job.members))
            models.append(model)
        held_out = work.held_out(resolved.seed, job.job.number)
        return replace(combine(verdicts), measures=_measures(work, models, held_out))

    def summary(
        self, work: Work, times_s: Sequence[float], verdicts: Sequence[Verdict]
    ) -> Mapping[str, Any]:
        assert isinstance(work, Sgd)
        told = [verdict.measures for verdict in verdicts if verdict.measures]
        step_s = median(times_s) / work.steps if times_s else None
        first_s = times_s[0] / work.steps if times_s else 0.0
        accuracies = _timed(told, "accuracies", first_s)
        return {
            "training": {
                "parameters": work.parameters,
                "step_s": {"median": step_s, "all": [time_s / work.steps for time_s in times_s]},
                "loss": {
                    "first": told[0]["losses"][0][1] if told else None,
                    "last": fmean(one["losses"][-1][1] for one in told) if told else None,
                },
                "accuracy": fmean(one["accuracies"][-1][1] for one in told) if told else None,
                "curve": _timed(told, "losses", first_s),
                "goal_s": next((at_s for at_s, share in accuracies if share >= work.goal), None),
                "accuracy_curve": accuracies,
            }
        }


def _timed(told: Sequence[Mapping[str, Any]], name: str, step_s: float) -> list[list[float]]:
    """Returns the first round's list of (step, value) as a list of [seconds, value]."""
    return [[step * step_s, value] for step, value in told[0][name]] if told else []


def _unlike(work: Sgd, received: Mapping[int, Received]) -> list[WrongValue]:
    """Returns what is wrong if members have not left the sums of the whole training, or have other
    sums than the first member."""
    wrong: list[WrongValue] = []
    first: Array | None = None
    for rank, one in received.items():
        found = one.whole
        if found is None or (found.dtype, found.shape) != (dtype_of(work.dtype), (work.elements,)):
            got = "nothing" if found is None else f"{name_of(found.dtype)} of {found.size}"
            expected = f"{work.dtype} of {work.elements}"
            wrong.append(WrongValue("result", rank, None, expected, got))
        elif first is None:
            first = found
        elif found.tobytes() != first.tobytes():
            at = int(np.flatnonzero(found != first)[0]) if (found != first).any() else 0
            pair = numbers(first)[at].item(), numbers(found)[at].item()
            wrong.append(WrongValue("result", rank, at, *pair))
    if not received:
        wrong.append(WrongValue("result", 0, None, "sums of a training", "nothing"))
    return wrong


def _step(
    resolved: ResolvedScenario,
    job: ActiveJob,
    bucket: Bucket,
    gradients: Sequence[Array],
    received: Mapping[int, Received],
) -> Verdict:
    chunks = resolved.system.chunks(resolved.scenario, job.job)
    first_chunk = bucket.first * chunks
    place = slice(bucket.start, bucket.start + bucket.elements)

    def inputs(start: int, count: int) -> list[Array]:
        return [gradient[start : start + count] for gradient in gradients]

    def cut(array: Values | None) -> Values | None:
        return None if array is None else array[place]

    own = [
        Received(
            cut(one.result), cut(one.sums), more=reductions.presence_of(one, first_chunk, chunks)
        )
        for one in received.values()
    ]
    verdict = verify_sums(resolved, job, inputs, own)
    if verdict.first is None:
        return verdict
    at = verdict.first.index
    index = None if at is None else at + bucket.start
    return replace(
        verdict,
        first=replace(verdict.first, rank=list(received)[verdict.first.rank], index=index),
    )


def _measures(work: Sgd, models: Sequence[Array], held_out: Array) -> Mapping[str, Any]:
    """Returns the loss and the accuracy of some of the models, each as (step, value)."""
    last = len(models) - 1
    chosen = sorted({round(last * point / CURVE_POINTS) for point in range(CURVE_POINTS + 1)})
    judged = [(step, *work.judged(models[step], held_out)) for step in chosen]
    return {
        "losses": [(step, loss) for step, loss, _ in judged],
        "accuracies": [(step, accuracy) for step, _, accuracy in judged],
    }
