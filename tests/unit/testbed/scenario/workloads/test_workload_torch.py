"""Training scripts in scenarios: what of a training is right, what its metrics are, and what is
wrong with a scenario that cannot have one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agglab.hosts.agreement import OPERATIONS, Agreement
from agglab.hosts.bfloat16 import cast, dtype_of
from agglab.hosts.script_ledger import INPUT, OUTCOME, Ledger, sample_name
from agglab.testbed.cli.main import main
from agglab.testbed.cli.packing.named_files import OwnFiles, code_in, rewritten, strays
from agglab.testbed.experiment import scenario_run as running
from agglab.testbed.results.provenance import manifest
from agglab.testbed.scenario import ScenarioError, load, workloads
from agglab.testbed.scenario.metric_names import metric_of, metrics
from agglab.testbed.scenario.workloads import script_imports
from agglab.testbed.scenario.workloads.torch import summary
from agglab.testbed.schema.document import read_file
from agglab.testbed.systems.received_arrays import Received

TEXT = "name: t\ntopology: {workers: 4}\nworkload: {kind: torch, script: train.py, rounds: 1}\n"
STEPS, ELEMENTS = 40, 300
SECOND = 1_000_000_000


@pytest.fixture
def scenario(tmp_path: Path) -> Callable[..., Any]:
    (tmp_path / "train.py").write_text("import torch\n")

    def load_text(*settings: str, text: str = TEXT) -> Any:
        (tmp_path / "t.yaml").write_text(text)
        return load(tmp_path / "t.yaml", settings)

    return load_text


def account(rank: int, ranks: int = 4, type: str = "int32", **changes: Any) -> Received:
    """What an agent leaves of STEPS reductions, each of every rank's rank + 1, at all places.
    changes: `result_of`, a reduction whose result is one off; `parameters`; `input_of`, a sampled
    one whose input is; `steps`; `present`, bits of the workers that are in all sums."""
    ledger = Ledger("1")
    dtype = dtype_of(type)
    for number in range(changes.get("steps", STEPS)):
        present = changes.get("present", 2**ranks - 1)
        total = np.full(ELEMENTS, sum(each + 1 for each in range(ranks) if present >> each & 1))
        if number == changes.get("result_of"):
            total[5] += 1
        given = np.full(ELEMENTS, rank + 1)
        if number == changes.get("input_of"):
            given[9] += 1
        total, given = cast(total, dtype), cast(given, dtype) if ledger.samples_next else None
        named = np.full(changes.get("chunks", 0), changes.get("named", present), np.uint64)
        begin_ns = number * SECOND
        operation = OPERATIONS.index("AVG" if number == changes.get("average_of") else "SUM")
        presence = named if len(named) else None
        times_ns = begin_ns, begin_ns + SECOND // 2
        ledger.add(given, total, None, *times_ns, presence, Agreement(operation))
    reports = [
        {"step": step, "loss": 2.0 - step, "t_ns": (10 + 2 * step) * SECOND} for step in range(3)
    ]
    reports.append({"epoch": 1, "accuracy": 0.75, "t_ns": 16 * SECOND})
    reports.append({"parameters": changes.get("parameters", "same"), "t_ns": 17 * SECOND})
    told = {"began_ns": 8 * SECOND, "reports": reports, "counts": {"allreduce.system": STEPS}}
    text = np.frombuffer(json.dumps(told).encode(), np.uint8)
    return Received(ledger.rows.view(np.uint8), more={OUTCOME: text, **ledger.sample})


def judged(suite: Any, received: dict[int, Received]) -> Any:
    resolved = suite.points[0].resolved
    job = resolved.whole(resolved.jobs[0])
    return workloads.KINDS["torch"].verdict(resolved, job, 0, received)


def accounts(**changes: Any) -> dict[int, Received]:
    """Of four ranks, of which the third is as `changes` say."""
    return {rank: account(rank, **(changes if rank == 2 else {})) for rank in range(4)}


def test_a_training_whose_ranks_agree_is_right(scenario) -> None:
    verdict = judged(scenario(), accounts())
    assert verdict.right and verdict.exact
    assert verdict.measures["sampled"] > 2


def test_a_training_that_reduced_nothing_is_neither_exact_nor_wrong(scenario) -> None:
    verdict = judged(scenario(), {rank: account(rank, steps=0) for rank in range(4)})
    assert verdict.right and verdict.exact is None
    assert (verdict.measures["sampled"], verdict.measures["reductions"]) == (0, 0)


@pytest.mark.parametrize(
    "changes, what, index",
    [
        ({"result_of": 17}, "reduction", 17),
        ({"average_of": 17}, "reduction", 17),
        ({"parameters": "other"}, "parameters", None),
        ({"input_of": 1}, "result of reduction 1", 9),
        ({"steps": STEPS - 1}, "reductions", None),
    ],
)
def test_what_is_wrong_at_one_rank_is_found(scenario, changes, what, index) -> None:
    verdict = judged(scenario(), accounts(**changes))
    assert not verdict.exact and not verdict.right
    assert (verdict.first.what, verdict.first.index) == (what, index)
    # A sum that does not fit an input is wrong at all ranks, the first one's first.
    assert verdict.first.rank == (0 if "input_of" in changes else 2)


def test_ranks_that_make_something_else_of_a_sum_are_both_named(scenario) -> None:
    """As may happen with `system: gloo`, which compares nothing before it sums."""
    first = judged(scenario(), accounts(average_of=17)).first
    assert first.expected.startswith("SUM of 300 int32 ")
    assert first.got.startswith("AVG of 300 int32 ")


def test_a_sum_that_is_wrong_everywhere_alike_is_found(scenario) -> None:
    """Equal results prove nothing of the sums: the sample does."""
    received = {rank: account(rank, result_of=1) for rank in range(4)}
    verdict = judged(scenario(), received)
    assert (verdict.first.what, verdict.first.index) == ("result of reduction 1", 5)
    assert (verdict.first.expected, verdict.first.got) == (10, 11)


def test_integers_that_travelled_have_to_be_right(scenario) -> None:
    """SwitchML hands out the sums behind its floats; a sample without them is not verified."""
    received = {rank: account(rank, type="float32") for rank in range(4)}
    verdict = judged(scenario(), received)
    assert not verdict.exact and verdict.first.what == "sum of reduction 0"
    assert judged(scenario("system=ring"), received).right


def test_sums_of_bfloat16_are_judged_as_what_they_are(scenario) -> None:
    """The program is compiled for the type, and every bit of the sample's sums has to be right."""
    suite = scenario("workload.dtype=bfloat16")
    resolved = suite.points[0].resolved
    assert resolved.system.sources(resolved.scenario)["switch"].name == "switchml_bfloat16"
    right = {rank: account(rank, type="bfloat16") for rank in range(4)}
    assert judged(suite, right).right
    wrong = {rank: account(rank, type="bfloat16", result_of=1) for rank in range(4)}
    verdict = judged(suite, wrong)
    assert (verdict.first.what, verdict.first.index) == ("result of reduction 1", 5)
    assert (verdict.first.expected, verdict.first.got) == (10.0, 11.0)


DEADLINE = ("switchml.deadline=5ms", "switch.lanes=64")
CHUNKS = -(-ELEMENTS // 64)


def test_sums_with_a_deadline_are_those_of_the_workers_that_are_in_them(scenario) -> None:
    without_third = {rank: account(rank, present=0b1011, chunks=CHUNKS) for rank in range(4)}
    assert judged(scenario(*DEADLINE), without_third).right
    assert not judged(scenario(), without_third).right


@pytest.mark.parametrize(
    "changes, what",
    [
        ({"named": 0b1111}, "presence"),  # one rank names others
        ({"chunks": 0}, "presence"),
        ({"chunks": CHUNKS + 1}, "presence"),
    ],
)
def test_ranks_that_do_not_say_alike_who_is_in_a_sum_are_wrong(scenario, changes, what) -> None:
    one = {"present": 0b1011, "chunks": CHUNKS}
    received = {rank: account(rank, **one | (changes if rank == 2 else {})) for rank in range(4)}
    verdict = judged(scenario(*DEADLINE), received)
    assert not verdict.right and verdict.first.rank == 2
    assert verdict.first.what == f"{what} of reduction 0"


def test_workers_that_are_named_and_not_in_the_sum_are_found(scenario) -> None:
    named = {rank: account(rank, present=0b1011, named=0b1111, chunks=CHUNKS) for rank in range(4)}
    verdict = judged(scenario(*DEADLINE), named)
    assert (verdict.first.expected, verdict.first.got) == (10, 7)


def test_an_agent_that_has_left_nothing_is_wrong(scenario) -> None:
    verdict = judged(scenario(), {**accounts(), 1: Received(None)})
    assert (verdict.first.what, verdict.first.rank) == ("training", 1)


def test_a_sample_that_one_rank_lacks_is_wrong(scenario) -> None:
    received = accounts()
    lacking = {k: v for k, v in received[3].more.items() if k != sample_name(INPUT, 0)}
    received[3] = Received(received[3].result, more=lacking)
    assert judged(scenario(), received).first.rank == 3


def test_of_a_round_that_others_left_only_agreement_is_asked(scenario) -> None:
    received = accounts()
    assert judged(scenario(), {rank: received[rank] for rank in (0, 2)}).right


def test_metrics_follow_from_reports_and_reductions(scenario) -> None:
    found = summary([judged(scenario(), accounts()).measures])["training"]
    assert found["loss"] == {"first": 2, "last": 0} and found["accuracy"] == 0.75
    assert found["curve"] == [(2, 2), (4, 1), (6, 0)] and found["accuracy_curve"] == [(8, 0.75)]
    assert found["steps"] == 3
    assert found["step_s"] == {"median": 2, "min": 2, "max": 2, "all": [2, 2]}
    assert found["reductions"] == STEPS and found["reduced_bytes"] == STEPS * ELEMENTS * 4
    assert found["reducing_s"] == STEPS / 2
    assert found["ranks"]["3"]["steps"] == 3


@pytest.mark.parametrize("dtype, size", [("float32", 4), ("float16", 2), ("bfloat16", 2)])
def test_values_have_the_bytes_of_their_type(scenario, dtype: str, size: int) -> None:
    judgement = judged(scenario(), {rank: account(rank, type=dtype) for rank in range(4)})
    assert judgement.measures["reduced_bytes"] == STEPS * ELEMENTS * size


def test_every_metric_has_a_name_that_can_be_expected(scenario) -> None:
    suite = scenario()
    found = summary([judged(suite, accounts()).measures])["training"]

    def paths(tree: Any, prefix: str) -> list[str]:
        if not isinstance(tree, dict):
            return [prefix]
        return [path for name, value in tree.items() for path in paths(value, f"{prefix}.{name}")]

    system = suite.points[0].resolved.system
    stated = {metric.path for metric in workloads.KINDS["torch"].metrics}
    assert stated <= set(metrics(system))
    assert {metric_of(path, system).path for path in paths(found, "training")} == stated


def test_several_trainings_have_the_mean_of_each(scenario) -> None:
    one = judged(scenario(), accounts()).measures
    both = summary([one, {**one, "accuracy": 0.25}])["training"]
    assert both["accuracy"] == 0.5 and both["curve"] == one["curve"]
    assert summary([]) == {}


@pytest.mark.parametrize(
    "setting, path, words",
    [
        ("backend=virtual", "workload.kind", "cannot run in virtual time"),
        ("workload.script=trian.py", "workload.script", "no such file 'trian.py', did you mean"),
        ("workload.script=train.sh", "workload.script", "is not the path of a .py file"),
        ("workload.dtype=int32", "workload.dtype", "torch has no int32"),
        ("workload.kind=allreduce", "workload.script", "has no meaning for allreduce"),
        ("system=libra", "workload.kind", "libra does not support torch"),
        ("system=mlfabric", "workload.kind", "mlfabric does not support torch"),
    ],
)
def test_a_scenario_that_cannot_train_says_so(scenario, setting, path, words) -> None:
    with pytest.raises(ScenarioError) as found:
        scenario(setting)
    assert any(p.path == path and words in p.what for p in found.value.problems)


def test_a_training_needs_a_script(scenario) -> None:
    with pytest.raises(ScenarioError, match=r"workload\.script: is missing"):
        scenario(text=TEXT.replace("script: train.py, ", ""))


def test_every_system_that_reduces_dense_tensors_trains(scenario) -> None:
    for system in ("switchml", "ring", "ps", "gloo", "omnireduce", "netrpc"):
        more = ("topology.servers=1",) if system in ("ps", "omnireduce", "netrpc") else ()
        assert scenario(f"system={system}", *more).points[0].resolved.jobs[0].work.kind == "torch"


def test_a_script_is_told_by_its_full_path_and_hash(scenario, tmp_path: Path) -> None:
    suite = scenario("workload.arguments=[--epochs, '3']")
    work = suite.points[0].resolved.jobs[0].work
    assert (work.script, work.arguments) == (str(tmp_path / "train.py"), ("--epochs", "3"))
    facts = manifest(suite, [], [])["inputs"]["torch"]
    (tmp_path / "train.py").write_text("import torch  # another\n")
    assert set(facts) == {"train.py sha256"}
    assert manifest(suite, [], [])["inputs"]["torch"] != facts


def test_contenders_may_give_the_script_other_arguments_and_no_other_script(scenario) -> None:
    contenders = "compare: {plain: {}, other: {workload: {%s}}}\n"
    suite = scenario(text=TEXT + contenders % "arguments: [--overlap, by-layer]")
    works = [each.resolved.jobs[0].work for each in suite.points]
    assert [work.arguments for work in works] == [(), ("--overlap", "by-layer")]
    with pytest.raises(ScenarioError, match=r"compare\.other\.workload\.script"):
        scenario(text=TEXT + contenders % "script: train.py")


def test_a_pack_has_the_script_and_what_lies_beside_it(scenario, tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("")
    scenario()
    full = TEXT.replace("train.py", str(tmp_path / "train.py"))
    (tmp_path / "full.yaml").write_text(full)
    own = OwnFiles()
    root = rewritten(read_file(tmp_path / "full.yaml"), own.named)
    assert sorted(own.files) == ["own/0/beside.py", "own/0/train.py"]
    assert code_in(root) == ["own/0/train.py"] and not strays(root)


def test_what_a_script_imports_and_is_not_there_is_told_before_the_run(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import os, torch\nimport beside\nfrom nowhere.at import all\nfrom . import near\n"
        "try:\n    import perhaps\nexcept ImportError:\n    pass\n"
    )
    (tmp_path / "beside.py").write_text("")
    assert script_imports.imported(script) == ["os", "torch", "beside", "nowhere"]
    lacking = [what for what, _ in script_imports.lacks(script) if "PyTorch" not in what]
    assert lacking == ["the Python module nowhere, which train.py imports"]
    script.write_text("def (")
    assert script_imports.imported(script) == []


def test_without_pytorch_a_run_says_how_to_get_it(scenario, tmp_path, monkeypatch, capsys) -> None:
    scenario("system=ring")
    monkeypatch.setattr(script_imports, "_is_there", lambda module, folder: False)
    monkeypatch.setattr(running, "check_usable", lambda: None)
    assert main(["run", str(tmp_path / "t.yaml"), "--results", str(tmp_path)]) == 3
    said = capsys.readouterr().err
    assert "PyTorch, which `workload.kind: torch` needs" in said and "pip install torch" in said
