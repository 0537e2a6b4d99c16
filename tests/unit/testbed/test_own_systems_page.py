"""docs/own-systems.md, word for word in virtual time; and its system broken, which is found."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from agglab.testbed.run import run
from agglab.testbed.scenario import load

PAGE = (Path(__file__).parents[3] / "docs/own-systems.md").read_text()
FILES = re.findall(r"`mine/([\w.]+)`:\n\n```\w+\n(.*?)```", PAGE, re.DOTALL)


def conducted(folder: Path, *settings: str) -> tuple[int, dict[str, Any]]:
    suite = load(folder / "exchange.yaml", ["backend=virtual", *settings])
    code = run(suite, folder / "results", [], io.StringIO())
    return code, json.loads((folder / "results/exchange/latest/metrics.json").read_text())


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """The files as the page has them."""
    assert [name for name, _ in FILES] == ["exchange_endpoint.py", "exchange.py", "exchange.yaml"]
    for name, text in FILES:
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_it_is_exact_under_loss(mine: Path, dtype: str) -> None:
    code, metrics = conducted(mine, f"workload.dtype={dtype}")
    assert (code, metrics["reason"]) == (0, "")
    assert metrics["totals"]["injected_drops"] > 0 and metrics["totals"]["retransmitted"] > 0


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_it_carries_what_it_predicts(mine: Path, workers: int) -> None:
    words = ["links.loss=0%", f"topology.workers={workers}", "workload.elements=1001"]
    code, metrics = conducted(mine, *words, "expect={exact: true, links_as_predicted: true}")
    assert (code, metrics["reason"]) == (0, "")
    assert metrics["totals"]["retransmitted"] == 0


@pytest.mark.parametrize(
    ("file", "old", "new", "found"),
    [
        ("exchange_endpoint.py", "total = total + values", "total = total - values", "result["),
        ("exchange_endpoint.py", "self.out[begin:end] = total", "self.out[begin] = total[0]", "["),
        ("exchange.py", "size = 4 *", "size = 1 + 4 *", "links_as_predicted"),
        ("exchange.py", "size = 4 *", "size = -1 + 4 *", "links_as_predicted"),
    ],
)
def test_what_is_broken_is_found(mine: Path, file: str, old: str, new: str, found: str) -> None:
    text = (mine / file).read_text()
    assert text.count(old) == 1
    (mine / file).write_text(text.replace(old, new))
    expected = "expect={exact: true, links_as_predicted: true}"
    code, metrics = conducted(mine, "links.loss=0%", "workload.elements=1001", expected)
    assert code == 1 and found in metrics["reason"]
