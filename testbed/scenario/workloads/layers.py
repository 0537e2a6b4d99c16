"""Implements `layers`: the communication of training, without its arithmetic. Results are verified
bucket by bucket."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from agglab.hosts.workloads import Layers, Work
from agglab.testbed.scenario.workloads import reductions
from agglab.testbed.scenario.workloads.all_reduce import AllReduce
from agglab.testbed.scenario.workloads.correctness import Verdict, combine
from agglab.testbed.schema import models
from agglab.testbed.schema.metric import counted, measured
from agglab.testbed.schema.models import Layer, Model, ModelError
from agglab.testbed.systems.base import ActiveJob, ResolvedScenario
from agglab.testbed.systems.received_arrays import Received, Values

if TYPE_CHECKING:
    from agglab.testbed.schema.workload_section import Workload as Section

NS_PER_S = 1_000_000_000
VALUE_BYTES = 4
UNREADABLE = Model("", "", 1, None, (Layer("unknown", 1, 1.0),))
"""A stand-in for a model that cannot be read, which is reported as a separate problem."""


class LayersWorkload(AllReduce):
    kind = Layers.kind
    keys = (
        *("model", "accelerator", "bucket_bytes", "priorities", "scale", "stands_for_bps"),
        *("density", "block", "overlap"),
    )
    free = ("bucket_bytes", "priorities")
    unread = ("elements", "worker")
    metrics = (
        measured(
            "iteration.time_s",
            "s",
            "median time of an iteration, which is a round: the backward pass, "
            "the sums, and the forward pass that needs these",
        ),
        measured("iteration.computing_s", "s", "time that its passes take"),
        measured(
            "iteration.exposed_s",
            "s",
            "the rest of its time, in which nothing is computed because the sums are not there yet",
        ),
        counted("iteration.efficiency", "", "iteration.computing_s / iteration.time_s"),
        counted("iteration.buckets", "all-reduces", "all-reduces in an iteration"),
    )

    def work(self, section: Section, workers: int) -> Layers:
        """Returns the work for links with the rate that the scenario's links represent. `on_links`
        then adapts the work to the real rate."""
        try:
            model = models.read(section.model)
        except ModelError:
            model = UNREADABLE
        passes_s = model.passes_s(section.accelerator)
        forward_ns, backward_ns = (
            tuple(round(s / section.scale * NS_PER_S) for s in each)
            for each in zip(*passes_s, strict=True)
        )
        return Layers(
            dtype=section.dtype,
            sizes=tuple(max(1, round(layer.values / section.scale)) for layer in model.layers),
            forward_ns=forward_ns,
            backward_ns=backward_ns,
            sparse=tuple(n for n, layer in enumerate(model.layers) if layer.is_sparse),
            density=section.density,
            block=section.block,
            overlap=section.overlap,
            workers=workers,
            bucket=max(1, round(section.bucket_bytes / VALUE_BYTES / section.scale)),
            priorities=section.priorities,
            link_bps=section.stands_for_bps or 0,
        )

    def on_links(self, work: Work, slowest_bps: int) -> Layers:
        """Returns the work for links that are slower than the links that they represent. The
        forward and backward passes take longer in the same proportion."""
        assert isinstance(work, Layers)
        slower = work.link_bps / slowest_bps if work.link_bps else 1.0
        return replace(
            work,
            forward_ns=tuple(round(ns * slower) for ns in work.forward_ns),
            backward_ns=tuple(round(ns * slower) for ns in work.backward_ns),
            link_bps=slowest_bps,
        )

    def verdict(
        self,
        resolved: ResolvedScenario,
        job: ActiveJob,
        number: int,
        received: Mapping[int, Received],
    ) -> Verdict:
        work, verdicts = job.job.work, []
        assert isinstance(work, Layers)
        parts = reductions.active(job)
        first_chunks = reductions.first_chunks(resolved, parts, work.order)
        for bucket, each, first_chunk in zip(work.buckets, parts, first_chunks, strict=True):
            place = slice(bucket.start, bucket.start + bucket.elements)
            chunks = resolved.system.chunks(resolved.scenario, each.job)
            own = {
                rank: replace(
                    _part(one, place, work.elements),
                    more=reductions.presence_of(one, first_chunk, chunks),
                )
                for rank, one in received.items()
            }
            verdict = super().verdict(resolved, each, number, own)
            if verdict.first and verdict.first.index is not None:
                first = replace(verdict.first, index=verdict.first.index + bucket.start)
                verdict = replace(verdict, first=first)
            verdicts.append(verdict)
        return combine(verdicts)

    def summary(
        self, work: Work, times_s: Sequence[float], verdicts: Sequence[Verdict]
    ) -> Mapping[str, Any]:
        assert isinstance(work, Layers)
        computing_s = work.computing_ns / NS_PER_S
        time_s = median(times_s) if times_s else None
        return {
            "iteration": {
                "time_s": time_s,
                "computing_s": computing_s,
                "exposed_s": None if time_s is None else time_s - computing_s,
                "efficiency": computing_s / time_s if time_s else None,
                "buckets": len(work.buckets),
            }
        }


def _part(one: Received, place: slice, elements: int) -> Received:
    """Returns a worker's part of one bucket. An array that does not have the length of all buckets
    together has an empty part."""

    def cut(array: Values | None) -> Values | None:
        if array is None:
            return None
        return array[place] if array.shape == (elements,) else np.empty(0, array.dtype)

    return Received(cut(one.result), cut(one.sums), cut(one.out))
