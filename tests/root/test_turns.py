"""Two runs on real links, alive at once and interleaved round by round: both are exact."""

from __future__ import annotations

import io
import itertools
import json
from pathlib import Path

import pytest

from agglab.testbed.experiment.single_run import Experiment
from agglab.testbed.real import isolated
from agglab.testbed.results.metrics import compute
from agglab.testbed.run.programs.prepare import prepare
from agglab.testbed.run.result_folder import RunFolder
from agglab.testbed.scenario import load

pytestmark = pytest.mark.root

TEXT = """
name: {name}
system: {name}
topology: {{workers: 3}}
links: {{rate: 100mbit, loss: 1%}}
workload: {{elements: 20_000, dtype: int32, rounds: 3}}
"""
SYSTEMS = ("switchml", "ring")


@pytest.mark.long
def test_two_runs_take_turns_on_real_links(tmp_path: Path) -> None:
    runs = {}
    for name in SYSTEMS:
        (tmp_path / f"{name}.yaml").write_text(TEXT.format(name=name))
        (point,) = load(tmp_path / f"{name}.yaml").points
        runs[name] = point.resolved
    prepared = {name: prepare(resolved) for name, resolved in runs.items()}

    def interleaved(scratch: Path) -> int:
        turns = {}
        for name, resolved in runs.items():
            folder = RunFolder(tmp_path / name)
            run = Experiment(resolved, prepared[name], folder, scratch / name, io.StringIO())
            turns[name] = run.turns()
        while turns:
            for name, turn in list(turns.items()):
                try:
                    next(turn)
                except StopIteration as end:
                    metrics = compute(runs[name], end.value)
                    (tmp_path / f"{name}.json").write_text(json.dumps(metrics))
                    del turns[name]
        return 0

    assert isolated(interleaved) == 0
    spans: list[tuple[int, int, str]] = []
    for name in SYSTEMS:
        metrics = json.loads((tmp_path / f"{name}.json").read_text())
        assert (metrics["exact"], metrics["rounds"]) == (True, 3)
        assert metrics["wrong_results"] == 0 and not metrics.get("failure")
        log = [json.loads(line) for line in (tmp_path / name / "events.jsonl").open()]
        begun = [event["t_ns"] for event in log if event["event"] == "round_begin"]
        judged = [event["t_ns"] for event in log if event["event"] == "verified"]
        spans += [(begin, end, name) for begin, end in zip(begun, judged, strict=True)]
    spans.sort()
    assert [name for *_, name in spans] == [*SYSTEMS] * 3
    assert all(a[1] < b[0] for a, b in itertools.pairwise(spans)), "one at a time"
