"""A switch's program that withholds a sum or ignores a contribution is to blame for the round that
hangs, and not the worker whose later chunks wait behind. Whole runs in virtual time."""

from __future__ import annotations

import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from agglab.testbed.base.paths import REPOSITORY
from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.scenario import load

TEXT = """
name: hang
backend: virtual
topology: {{workers: 4, servers: {servers}}}
links: {{rate: 100mbit, loss: {loss}}}
system: {system}
switch: {{program: {program}, lanes: 64{slots}}}
workload: {{{workload}, rounds: {rounds}, give_up: 500ms{more}}}
"""
ALL_REDUCE = {
    "workload": "elements: 40_000, dtype: int32, window: 16",
    "slots": ", slots: 32",
    "servers": "0",
    "rounds": "1",
    "loss": "0%",
    "more": "",
}

HEART = {"switchml": "include/aggregation.p4", "atp": "include/pooling.p4"}
"""The file that decides who gets an answer, if it is not the program's own."""


def reason(folder: Path, system: str, *changes: tuple[str, str], **keys: str) -> str:
    """The reason of a run of a system whose program has these faults."""
    shutil.copytree(REPOSITORY / "p4", folder / "p4")
    program = folder / "p4" / HEART.get(system, f"{system}.p4")
    source = program.read_text()
    for old, new in changes:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    program.write_text(source)
    path = folder / "hang.yaml"
    settings = {**ALL_REDUCE, **keys}
    path.write_text(TEXT.format(system=system, program=folder / f"p4/{system}.p4", **settings))
    assert run(load(path), folder / "results", [], io.StringIO()) == 1
    metrics: dict[str, Any] = json.loads((folder / "results/hang/latest/metrics.json").read_text())
    return str(metrics["failure"]["reason"])


WITHHELD = {
    "switchml": [("meta.answered = true;\n                    answer_one();",
                  "meta.answered = true;\n                    wait();")],
    "omnireduce": [("                        answer_one();", "                        wait();")],
    "netrpc": [("                        answer_one();", "                        wait();")],
    "atp": [("result_to_one.count(meta.job);\n        standard_metadata.egress_spec = port;",
             "mark_to_drop(standard_metadata);")],
}  # fmt: skip


@pytest.mark.long(but=["switchml"])
@pytest.mark.parametrize("system", WITHHELD)
def test_a_switch_that_withholds_sums_is_to_blame(tmp_path: Path, system: str) -> None:
    said = reason(tmp_path, system, *WITHHELD[system], loss="1%")
    assert said.startswith("switch s1 holds the sum and gives no valid answer for chunk"), said
    assert "got no answer" in said and "never sent" not in said


WITH_SERVERS = {
    "libra": {
        "workload": "kind: push_pull, elements: 8_000, vocabulary: 2048, dtype: int32",
        "slots": "",
        "rounds": "3",
        "more": '}\nlibra: {servers: "p*", hot: 1024, sample_every: 100',
    },
    "mlfabric": {
        "workload": "kind: async_sgd, updates: 40, compute: 20ms, learning_rate: 0.02",
        "slots": ", slots: 256",
        "more": '}\nmlfabric: {servers: "p*", group: 4',
    },
}
REPLICATED = "if (standard_metadata.instance_type == INSTANCE_REPLICATION"
SWALLOWED = {
    "libra": "if (hdr.libra.isValid() ? hdr.libra.item == 5 "
    ": standard_metadata.ingress_port == 2) { drop(); } else ",
    "mlfabric": "if (hdr.push.isValid() ? hdr.push.chunk == 0 : hdr.udp.isValid() "
    "&& standard_metadata.ingress_port == 2) { mark_to_drop(standard_metadata); } else ",
}


@pytest.mark.long(but=["libra-1%"])
@pytest.mark.parametrize("loss", ["0%", "1%"])
@pytest.mark.parametrize("system", WITH_SERVERS)
def test_a_switch_that_merges_packets_and_swallows_some_is_to_blame(
    tmp_path: Path, system: str, loss: str
) -> None:
    """The program counts the sums of one chunk as sent, and sends neither them nor what workers
    send past the sums. What it rightly keeps, copies and refuses is no evidence against it."""
    swallows = (REPLICATED, SWALLOWED[system] + REPLICATED)
    said = reason(tmp_path, system, swallows, loss=loss, servers="1", **WITH_SERVERS[system])
    assert said.startswith("switch s1 did not send on packets of "), said
    received, handled = map(int, re.findall(r"received (\d+) .* refused (\d+)", said)[0])
    assert 0 < received - handled < 200


@pytest.mark.long(but=["libra-h2"])
@pytest.mark.parametrize(("system", "host"), [("libra", "h2"), ("mlfabric", "p1")])
def test_a_switch_that_merges_packets_is_not_to_blame_for_a_link(
    tmp_path: Path, system: str, host: str
) -> None:
    keys = dict(WITH_SERVERS[system])
    keys["more"] += f"}}\nfaults: [{{kind: link_down, link: {host}-s1, at: 5ms}}]\n#"
    said = reason(tmp_path, system, loss="1%", servers="1", **keys)
    assert re.match("h[1-4]: worker", said) and "switch s1" not in said, said


@pytest.mark.long
def test_chunks_behind_the_one_that_blocks_are_counted_once(tmp_path: Path) -> None:
    """Loss takes results, and the switch does not send them again. Of each slot, the oldest chunk
    blocks. Whoever has its sum waits for the slot's next chunk."""
    said = reason(tmp_path, "switchml", *WITHHELD["switchml"], loss="1%")
    assert said.endswith("wait behind them") or "waits behind" in said
    assert "holds 4 of 4 contributions to chunk" in said


@pytest.mark.long
def test_a_switch_that_ignores_a_worker_is_to_blame(tmp_path: Path) -> None:
    ignores = (
        "            || hdr.aggregation.slot >= meta.slots\n",
        "            || hdr.aggregation.slot >= meta.slots\n"
        "            || (meta.worker == 4 && hdr.aggregation.slot == 5)\n",
    )
    said = reason(tmp_path, "switchml", ignores)
    assert said.startswith("switch s1 received and does not hold chunk 5 of job1; slot 5 of s1")
    assert "holds 3 of 4 contributions to chunk 5 (tag 1, not h3), h3 sent it" in said


@pytest.mark.long
def test_a_worker_that_sends_nothing_is_still_to_blame(tmp_path: Path) -> None:
    """A link that is down loses more packets than a worker sends: nobody can blame the switch."""
    said = reason(
        tmp_path, "switchml", more="}\nfaults: [{kind: link_down, link: h2-s1, at: 10ms}]\n#"
    )
    assert said.startswith("h2: worker 1 never ")
    assert "switch s1" not in said.split(";")[0]
