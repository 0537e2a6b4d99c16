"""Runs of a small scenario in virtual time for the tests of systems: its text, what is asked of its
metrics, and predictions that are made wrong on purpose. The fixture `tried` runs it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.scenario import load
from agglab.testbed.systems.base import RightResults, Traffic, Truth

ELEMENTS, ROUNDS, LANES = 10_000, 2, 64
DISORDER = """
faults:
- {kind: duplicate, link: "h*", probability: 2%}
- {kind: reorder, link: "h1-*", probability: 2%, delay: 3ms}
- {kind: jitter, link: "s1->h*", jitter: 2ms}
"""

Run = Callable[..., tuple[int, dict[str, Any]]]
"""tried(text, "key=value", ...): the run's exit code, and its metrics.json."""


def scenario_text(
    system: str,
    topology: str = "kind: rack, workers: 4",
    workload: str = "kind: allreduce",
    dtype: str = "float32",
    loss: str = "0%",
    switch: str = "",
    more: Sequence[str] = (),
) -> str:
    """A scenario of ROUNDS rounds of ELEMENTS elements. topology, workload, switch: keys of these
    sections; more: further lines."""
    of_rounds = f"elements: {ELEMENTS}, dtype: {dtype}, rounds: {ROUNDS}"
    return "\n".join(
        [
            "name: tried",
            f"system: {system}",
            "backend: virtual",
            *more,
            f"topology: {{{topology}}}",
            f"links: {{rate: 50mbit, queue: 4MB, loss: {loss}}}",
            f"switch: {{lanes: {LANES}{switch and ', '}{switch}}}",
            f"workload: {{{workload}, {of_rounds}}}",
            "expect: {exact: true}",
        ]
    )


def run_in(folder: Path) -> Run:
    """`tried`, whose files are in this folder."""

    def tried(text: str, *settings: str) -> tuple[int, dict[str, Any]]:
        path = folder / "tried.yaml"
        path.write_text(text)
        code = run(load(path, settings), folder / "results", settings, io.StringIO())
        return code, json.loads((folder / "results/tried/latest/metrics.json").read_text())

    return tried


def ways(metrics: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What the metrics say of each direction of each link."""
    return {name: way for link in metrics["links"].values() for name, way in link.items()}


def is_clean(code: int, metrics: dict[str, Any]) -> bool:
    """Whether every sum is right. Asserts that the run passed, without a finding or a restart."""
    assert (code, metrics["reason"], metrics["findings"]) == (0, "", [])
    assert metrics["accounts"]["balanced"] is metrics["links_as_predicted"] is True
    assert metrics["rounds"] == ROUNDS and metrics["restarts"] == 0
    return metrics["exact"] is True and metrics["wrong_results"] == metrics["wrong_sums"] == 0


def predict_otherwise(
    patch: pytest.MonkeyPatch, system: type, direction: str, bytes_off: int
) -> None:
    """The system's prediction is wrong by so many bytes for one direction of a link."""
    right = system.traffic  # type: ignore[attr-defined]

    def wrong(self: Any, *asked: Any) -> Traffic:
        traffic = right(self, *asked)

        def of_round(number: int) -> dict[str, int]:
            sizes = dict(traffic.of_round(number))
            return {**sizes, direction: sizes[direction] + bytes_off}

        return replace(traffic, of_round=of_round)

    patch.setattr(system, "traffic", wrong)


def judge_otherwise(
    patch: pytest.MonkeyPatch, system: type, change: Callable[[int, Truth], Truth]
) -> None:
    """The system expects other results. change: takes the first element of a block and its truth,
    and returns another."""
    right = system.right_results  # type: ignore[attr-defined]

    def wrong(self: Any, *asked: Any) -> RightResults:
        results = right(self, *asked)
        return replace(results, truth=lambda at, inputs: change(at, results.truth(at, inputs)))

    patch.setattr(system, "right_results", wrong)
