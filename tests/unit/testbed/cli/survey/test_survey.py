"""The table of all systems: its numbers, its page, and the command that measures it."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from agglab.testbed import systems
from agglab.testbed.base.paths import REPOSITORY
from agglab.testbed.cli import main
from agglab.testbed.cli.survey.cases import SCENARIO, WRITTEN, Case, cases
from agglab.testbed.cli.survey.figures import BusiestDirection, Figures, figures
from agglab.testbed.cli.survey.measure import Row, Table, measure, usable
from agglab.testbed.cli.survey.page import COLUMNS, head, markdown, page, section, title
from agglab.testbed.run.programs.program import source_lines
from agglab.testbed.scenario import load
from agglab.testbed.scenario.workloads import KINDS

PAGE = REPOSITORY / "systems" / "README.md"
OWN = Path(__file__).parents[2] / "own_system"
SMALL = ["workload.elements=2000", "workload.rounds=1"]
DENSE = WRITTEN[0]
ON_PAGE = [case for case in cases() if case.on_page]


def resolved(tmp_path: Path, text: str = SCENARIO):
    (tmp_path / "survey.yaml").write_text(text)
    (point,) = load(tmp_path / "survey.yaml").points
    return point.resolved


def of_job(median_s: float, **more) -> dict:
    times = {"median": median_s, "all": [median_s] * 2}
    return {"rounds": 2, "allreduce": {"time_s": times}, "link_bound_ratio": 1.5, **more}


METRICS = {
    "ok": True,
    "reason": "",
    "exact": True,
    "wrong_results": 0,
    "jobs": {"a": of_job(0.25), "b": of_job(0.5, error={"max_abs": 1e-7})},
    "totals": {"sent": 700, "retransmitted": 7},
    "switches": {"s1": {"register_bits": 64}, "s2": {"register_bits": 4096}},
    "links": {
        "h1-s1": {"h1->s1": {"bytes": 800_000}, "s1->h1": {"bytes": 1_600_000}},
        "h2-s1": {"h2->s1": {"bytes": 1_200_000}, "s1->h2": {"bytes": 400_000}},
        "p1-s1": {"p1->s1": {"bytes": 6_400_000}, "s1->p1": {"bytes": 0}},
    },
}
"""Of two rounds."""


def test_the_figures_of_a_run(tmp_path: Path) -> None:
    found = figures(METRICS, resolved(tmp_path).jobs)
    assert found == Figures(
        time_s=0.5,
        times_bound=1.5,
        up_bytes=600_000,
        down_bytes=800_000,
        busiest=BusiestDirection("p1->s1", 3_200_000),
        tensor_bytes=200_000,
        register_bits=4096,
        sent=350,
        again=3.5,
        exact=True,
        error=1e-7,
    )


def test_wrong_floats_are_not_exact(tmp_path: Path) -> None:
    jobs = resolved(tmp_path).jobs
    assert figures({**METRICS, "wrong_results": 1}, jobs).exact is False
    assert figures({**METRICS, "exact": False}, jobs).exact is False


@pytest.mark.parametrize("reason", ["h1: worker 0 is dead", ""])
def test_a_run_without_a_round_has_a_reason_alone(tmp_path: Path, reason: str) -> None:
    metrics = {"ok": False, "reason": reason}
    found = figures(metrics, resolved(tmp_path).jobs)
    assert found == Figures(broken=reason or "no round was completed")


def test_lines_of_code_are_neither_blank_nor_comments(tmp_path: Path) -> None:
    (tmp_path / "shared.p4").write_text("/* two\nlines */ const int A = 1;\n")
    program = tmp_path / "program.p4"
    program.write_text(
        '#include <core.p4>\n#include "shared.p4"\n#include "shared.p4"\n'
        "// a comment\n\ncontrol C() {  // another\n  apply {}\n}\n"
    )
    assert source_lines(program) == 1 + 3 + 3


def test_every_kind_of_workload_has_a_case() -> None:
    virtual = {kind for kind, known in KINDS.items() if "virtual" in known.clocks}
    assert {case.kind for case in cases()} == virtual < set(KINDS)


def row(**lossless) -> Row:
    return Row(systems.find(systems.default()), "", Figures(**lossless), Figures(), 12)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_what_a_system_does_not_have_is_a_dash() -> None:
    table = Table(DENSE, [row(time_s=0.0125, register_bits=0, exact=False)])
    head, _, line = map(cells, markdown(table).splitlines())
    shown = dict(zip(head, line, strict=True))
    assert shown.pop("system") == systems.default()
    assert {name: cell for name, cell in shown.items() if cell != "-"} == {
        "time": "12.5 ms",
        "registers": "0",
        "P4 lines": "12",
        "exact": "NO",
    }
    assert list(COLUMNS) == head[1:]


@pytest.mark.parametrize(("bits", "shown"), [(64, "0.1 kbit"), (3_091_200, "3.09 Mbit")])
def test_bits_of_registers(bits: int, shown: str) -> None:
    assert f"| {shown} |" in markdown(Table(DENSE, [row(register_bits=bits)]))


def test_the_page_says_why_a_row_is_broken() -> None:
    text = page([], [Table(DENSE, [row(broken="h1: worker 0 is dead")])], SCENARIO)
    assert f"\n{systems.default()}: h1: worker 0 is dead\n" in text


def test_a_system_that_cannot_be_used_is_named() -> None:
    told: list[str] = []
    assert usable(["no-such", "ring"], told.append) == [systems.find("ring")]
    (line,) = told
    assert line.startswith("no-such: skipped, because it cannot be used: ")


def test_a_system_of_real_links_is_in_no_table_and_the_page_says_so() -> None:
    ring = systems.find("ring")
    clocks = {"abilities": replace(ring.abilities, clocks=("mininet",))}
    real = type("Real", (type(ring),), clocks)()
    assert list(measure([real], [DENSE], SMALL, pytest.fail)) == []
    assert "only on real links" in " ".join(head([real], SCENARIO).split())
    assert "only on real links" not in " ".join(head([ring], SCENARIO).split())


class Point:
    """A package's entry point."""

    name = "gather"

    def load(self):
        return systems.find(f"{OWN}/gather.py:Gather")


@pytest.mark.long
def test_a_system_of_a_package_has_a_row_that_says_what_it_cannot_do(
    monkeypatch, capsys, tmp_path: Path
) -> None:
    """It knows no losses."""
    monkeypatch.setattr(metadata, "entry_points", lambda group: [Point()])
    monkeypatch.setattr(systems, "names", lambda: ["gather", "ring"])
    systems.find.cache_clear()
    words = [word for setting in SMALL for word in ("--set", setting)]
    out = tmp_path / "page.md"
    assert main.main(["systems", "--measure", "--out", str(out), *words]) == 1
    text = out.read_text()
    assert "elements: 2000" in text
    rows = dict(line.split(" | ", 1) for line in re.findall(r"^\| (\w.* \|)$", text, re.M))
    assert set(rows) == {"system", "gather, int32", "ring"}
    assert rows["gather, int32"].endswith("| - | - | - |") and " yes |" in rows["gather, int32"]
    assert re.search(r"^gather, int32: round 0 was not complete", text, re.M)
    progress = capsys.readouterr().err
    assert re.search(r"^allreduce, ring, 1% loss: [\d.]+ ms, exact \([\d.]+ s\)$", progress, re.M)


def test_a_mistake_in_a_setting_is_one_line(capsys) -> None:
    assert main.main(["systems", "--measure", "--set", "links.rat=1gbit"]) == 2
    assert "links.rat" in capsys.readouterr().err


def test_a_page_that_cannot_be_written_is_named(monkeypatch, capsys, tmp_path: Path) -> None:
    monkeypatch.setattr(systems, "names", list)
    out = tmp_path / "no" / "page.md"
    assert main.main(["systems", "--measure", "--out", str(out)]) == 2
    assert f"cannot write {out}: No such file or directory" in capsys.readouterr().err


def test_an_interruption_ends_it(monkeypatch) -> None:
    monkeypatch.setattr("agglab.testbed.cli.survey.measure.run", lambda *_: 130)
    with pytest.raises(KeyboardInterrupt):
        list(measure([systems.find("ring")], [DENSE], SMALL, lambda _: None))


def test_bytes_are_multiples_of_the_tensor_where_there_is_one() -> None:
    run = row(up_bytes=3000.0, busiest=BusiestDirection("s1->h1", 5000.0), tensor_bytes=2000)
    assert "| 1.50 | - | s1->h1 2.50 |" in markdown(Table(DENSE, [run]))
    other = Case("calls", "Calls")
    assert "| 3.0 kB | - | s1->h1 5.0 kB |" in markdown(Table(other, [run]))


def section_of(text: str, heading: str) -> str:
    """With the heading and the line before it; empty if the page has no such section."""
    found = re.search(rf"\n{re.escape(heading)}\n.*?(?=\n## |\Z)", text, re.DOTALL)
    return found[0] if found else ""


def agrees(heading: str, wanted: str, text: str) -> bool:
    """Whether the page's section is as wanted. With BLESS it is written."""
    own = section_of(text, heading)
    if os.environ.get("BLESS"):
        PAGE.write_text(text.replace(own, wanted) if own else text + wanted)
        return True
    return own == wanted


def test_golden_head() -> None:
    """`agglab systems --measure --out systems/README.md` writes the whole page."""
    able = [systems.find(name) for name in systems.built_in()]
    wanted, text = head(able, SCENARIO), PAGE.read_text()
    first = title(cases()[0])
    own = text[: text.index(f"\n{first}\n")]
    if os.environ.get("BLESS"):
        PAGE.write_text(text.replace(own, wanted))
        return
    assert own == wanted
    assert re.findall(r"^## .*", text, re.M)[2:] == [
        title(case) for case in cases() if case.on_page
    ]


@pytest.mark.long
@pytest.mark.parametrize("case", ON_PAGE, ids=lambda case: case.title)
def test_golden_table(case: Case) -> None:
    (table,) = measure(usable(systems.built_in(), pytest.fail), [case], (), lambda _: None)
    assert [row.broken for row in table.rows if row.broken] == []
    assert all(row.lossless.exact and row.lossy.exact for row in table.rows)
    assert agrees(title(case), section(table), PAGE.read_text())
