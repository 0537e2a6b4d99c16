"""The tables in docs/ say what the code does; `BLESS=1` (make bless) writes them anew."""

import os
import re
from pathlib import Path

import pytest

from agglab.testbed.cli.main import COMMANDS
from agglab.testbed.scenario import load
from agglab.testbed.scenario.describe import (
    fault_table,
    finding_table,
    key_table,
    metric_table,
    series_table,
)
from agglab.testbed.schema.network_sections import OF_KIND
from agglab.testbed.systems import spoofing
from agglab.testbed.systems.summing.attack import KINDS

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize(
    ("name", "mark", "table"),
    [
        ("scenarios.md", "keys", key_table()),
        ("scenarios.md", "faults", fault_table()),
        ("results.md", "metrics", metric_table()),
        ("results.md", "findings", finding_table()),
        ("results.md", "series", series_table()),
    ],
)
def test_golden_tables(name: str, mark: str, table: str) -> None:
    path = DOCS / name
    text = path.read_text()
    pattern = rf"(<!-- {mark}: [^\n]* -->\n).*?(<!-- end -->)"
    written = re.sub(pattern, lambda m: m[1] + table + "\n" + m[2], text, flags=re.DOTALL)
    if os.environ.get("BLESS"):
        path.write_text(written)
        text = written
    assert text == written, f"docs/{name}: `make bless` writes the table anew"


def first_column(name: str, heading: str) -> list[str]:
    """Of the tables below a heading of a page in docs/."""
    section = (DOCS / name).read_text().partition(f"\n{heading}\n")[2].partition("\n##")[0]
    return re.findall(r"^\| ([^|]*) \|", section, re.MULTILINE)


def test_every_topology_has_a_row() -> None:
    assert first_column("scenarios.md", "### Topologies")[1:] == [f"`{kind}`" for kind in OF_KIND]


def test_every_command_has_a_row() -> None:
    shown = " ".join(first_column("scenarios.md", "## The command line"))
    assert re.findall(r"`\./agglab ([\w-]+)", shown) == list(COMMANDS)


def test_the_examples_are_valid(tmp_path: Path) -> None:
    examples = re.findall(r"```yaml\n(.*?)```", (DOCS / "scenarios.md").read_text(), re.DOTALL)
    assert len(examples) == 11
    for example in examples:
        path = tmp_path / "example.yaml"
        path.write_text(example)
        load(path)


def test_the_table_of_what_an_attack_sends_is_the_codes() -> None:
    text = (DOCS / "scenarios.md").read_text()
    section = text.partition("### What an attack sends")[2].partition("###")[0]
    rows = re.findall(r"^\| `(\w+)` \| .* \| (\w+) \|$", section, re.MULTILINE)
    kinds = [*KINDS.items(), *spoofing.KINDS.items()]
    assert rows == [(name, kind.counted) for name, kind in kinds]
