"""Figures of the literature: what a figure may say, its variants, the page; and that each relation
holds in virtual time."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import needs
import pytest

from agglab.testbed.base.errors import MachineLacks
from agglab.testbed.cli import main
from agglab.testbed.cli.arguments import CLOCKS, REAL, VIRTUAL
from agglab.testbed.cli.figures import command
from agglab.testbed.cli.figures.variants import find, names, variant
from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.report import vega
from agglab.testbed.scenario import ScenarioError, Suite, load

BASE = """
name: small
topology: {kind: rack}
links: {rate: 50mbit, queue: 2MB}
workload: {elements: 4_000, rounds: 2}
sweep: {topology.workers: [2, 3]}
"""
FIGURE = "figure: {title: A title, source: 'A paper', relation: 'It <grows>.'}\n"
TWO = "compare: {a: {}, b: {system: ring}"
COMPARED = """
compare:
  switchml: {}
  ring: {system: ring}
  gloo: {system: gloo}
expect:
  exact: true
  growth.gloo.allreduce.time_s.median: {min: 1}
  growth.ring.allreduce.time_s.median: {min: 1.1}
  ratio.ring.gloo.allreduce.time_s.median: {max: 1}
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("section", "complaint"),
    [
        ("{x: topology.workers}", "figure: has no title"),
        ("{title: a, x: links.loss}", "figure.x: 'links.loss' is not a swept key"),
        ("{title: a, y: [allreduce.time]}", r"figure.y\[0\]: unknown metric 'allreduce.time'"),
        ("{title: a, y: [link_bound_s, exact]}", r"figure.y\[1\]: 'exact' is not a number"),
        (
            "{title: a, mark: {metric: windowshare}}",
            "figure.mark.metric: unknown .*window_share",
        ),
        (
            "{title: a, over_time: [job.sent_rat]}",
            r"figure.over_time\[0\]: unknown metric over time .*did you mean .*job.sent_rate",
        ),
        ("{title: a, over_time: [job.program.seen]}", "unknown metric over time"),
        ("{title: a, scale: cubic}", "figure.scale: .*linear, steps"),
        ("{title: a, colour: red}", "figure.colour: unknown key"),
        ("{title: a, facets: links.los}", "figure.facets: 'links.los' is not a swept key"),
        ("{title: a, facets: contender}", "figure.facets: 'contender' is not a swept key"),
        ("{title: a, facets: topology.workers}", "figure.facets: .* is on the x axis already"),
        ("{title: a, where: {links.loss: 1%}}", "figure.where.links.loss: .* is not a swept key"),
        (
            "{title: a, where: {topology.workers: [2, 9]}}",
            "figure.where.topology.*never is '9'",
        ),
        ("{title: a, where: {}}", "figure.where: is empty"),
        ("{title: a, labels: [a]}", "figure.labels: is not a mapping"),
        ("{title: a, labels: {rings: Ring}}", "figure.labels.rings: the figure has no 'rings'"),
        ("{title: a, units: {allreduce.time_s.median: m}}", "figure.units.* unknown value 'm'"),
        ("{title: a, units: {exact: ms}}", "figure.units.exact: the figure has no 'exact'"),
        (
            "{title: a, units: {allreduce.time_s.median: MB}}",
            "small.yaml:[0-9]+: figure.units.allreduce.time_s.median: 'MB' is a unit of bytes, and "
            "'allreduce.time_s.median' is seconds.*ns, us, ms, s, min",
        ),
        ("{title: a, units: {topology.workers: ms}}", "is a plain number.*thousand, million"),
        ("{title: a, size: {width: 85}}", "figure.size.width: '85' has no unit"),
        ("{title: a, size: {width: 85km}}", "figure.size.width: .*unknown unit 'km'"),
        ("{title: a, size: 85mm}", "figure.size: is not a mapping"),
        ('{title: a, font: {family: "a;b"}}', "figure.font.family: 'a;b' is not a name"),
        ("{title: a, font: {size: 400}}", "figure.font.size: '400' is too large"),
        ("{title: a, format: [pdf, gif]}", r"figure.format\[1\]: unknown value 'gif'"),
    ],
)
def test_what_no_figure_can_be_is_refused(tmp_path: Path, section: str, complaint: str) -> None:
    with pytest.raises(ScenarioError, match=complaint):
        load(written(tmp_path, f"{BASE}figure: {section}\n"))


def test_every_key_of_a_figure_s_looks_is_read(tmp_path: Path) -> None:
    looks = (
        "figure: {title: a, facets: contender, where: {contender: [a], topology.workers: 2}, "
        "labels: {a: Ours, topology.workers: Workers}, units: {allreduce.time_s.median: ms}, "
        "size: {width: 85mm, height: 2in}, font: {family: X Y, size: 8}, format: pdf}\n"
    )
    figure = load(written(tmp_path, BASE + looks + TWO + "}\n")).figure
    assert figure and figure.where == {"contender": ("a",), "topology.workers": ("2",)}
    assert (figure.facets, figure.format, figure.font.family) == ("contender", ("pdf",), "X Y")
    assert (round(figure.size.width), figure.size.height) == (241, 144)


def test_files_that_a_figure_asks_for_need_vega_before_the_run_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, BASE + FIGURE.replace("}", ", format: [svg]}"))
    run_it = ["run", str(path), "--set", "backend=virtual", "--results", str(tmp_path / "out")]
    monkeypatch.setattr(vega, "is_installed", lambda: False)
    assert main.main(run_it) == 3
    assert "this machine lacks vl-convert-python" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@needs.mark("vl-convert-python")
def test_charts_are_written_as_files_and_drawn_anew_by_another_section(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, BASE + FIGURE.replace("}", ", format: [svg]}"))
    run_it = ["run", str(path), "--set", "backend=virtual", "--results", str(tmp_path / "out")]
    assert main.main(run_it) == 0
    folder = tmp_path / "out/small/latest"
    assert "DejaVu" not in (folder / "figure-0.svg").read_text()
    other = tmp_path / "other.yaml"
    looks = ", size: {width: 100mm}, font: {family: DejaVu Sans}}"
    other.write_text(path.read_text().replace(", format: [svg]}", looks))
    asked = ["--figure", str(other), "--format", "svg", "--format", "pdf", "--chart", "figure-0"]
    capsys.readouterr()
    assert main.main(["report", str(folder), *asked]) == 0
    said = capsys.readouterr().out.split()
    assert said == [f"{folder}/{name}" for name in ("report.html", "figure-0.svg", "figure-0.pdf")]
    svg = (folder / "figure-0.svg").read_text()
    assert "DejaVu Sans" in svg and 'width="283"' in svg
    assert (folder / "figure-0.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--chart", "time"], "--chart and --fonts are about files"),
        (["--format", "svg", "--chart", "tim"], "no chart 'tim', did you mean 'time'"),
        (["--format", "svg", "--fonts", "/none"], "--fonts /none: is not a folder"),
    ],
)
@needs.mark("vl-convert-python")
def test_wrong_words_of_report_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], complaint: str
) -> None:
    run_it = ["run", str(written(tmp_path, BASE)), "--set", "backend=virtual"]
    assert main.main([*run_it, "--results", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    assert main.main(["report", str(tmp_path / "out/small/latest"), *words]) == 2
    err = capsys.readouterr().err
    assert complaint in err and err.count("\n") == 1


def test_a_counter_of_the_program_can_be_drawn_over_time(tmp_path: Path) -> None:
    load(written(tmp_path, f"{BASE}figure: {{title: a, over_time: [switch.program.seen]}}\n"))


def test_a_figure_needs_a_sweep(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="figure: is only drawn for a sweep"):
        load(written(tmp_path, "figure: {title: a}\n"))


def test_in_virtual_time_contenders_that_need_real_links_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch_is(monkeypatch, there=True)
    path = written(tmp_path, BASE + FIGURE + COMPARED)
    suites = {}
    for clock in CLOCKS:
        chosen = variant(path, clock, long=False)
        file = tmp_path / f"{clock}.yaml"
        file.write_text(chosen.text)
        suites[clock] = load(file, chosen.settings)
    assert suites[REAL].contenders == ("switchml", "ring", "gloo")
    assert suites[VIRTUAL].contenders == ("switchml", "ring")
    expected = {clock: {e.metric for e in (*s.growth, *s.ratios)} for clock, s in suites.items()}
    assert expected[VIRTUAL] == {"growth.ring.allreduce.time_s.median"}
    assert len(expected[REAL]) == 3
    assert all(p.resolved.virtual for p in suites[VIRTUAL].points)
    assert not any(p.resolved.virtual for p in suites[REAL].points)


def torch_is(monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    """Lets Gloo's system find PyTorch, or miss it as on a machine where only set-up has run."""
    monkeypatch.setattr(
        "agglab.systems.gloo.system.importlib.util.find_spec",
        lambda name: object() if there else None,
    )


def test_on_real_links_only_contenders_that_the_machine_lacks_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch_is(monkeypatch, there=False)
    path = written(tmp_path, BASE + FIGURE + COMPARED)
    file = tmp_path / "real.yaml"
    file.write_text(variant(path, REAL, long=False).text)
    assert load(file).contenders == ("switchml", "ring")


@pytest.mark.parametrize(
    ("compared", "code", "said"),
    [
        (
            COMPARED,
            3,
            "growth.gloo.allreduce.time_s.median, ratio.ring.gloo.allreduce.time_s.median (the run "
            "was made without gloo)",
        ),
        (TWO + ", gloo: {system: gloo}}\n", 3, "the run was made without gloo"),
        (TWO + "}\n", 0, ""),
    ],
)
def test_a_relation_that_was_not_tested_does_not_count_as_held(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], compared: str, code: int, said: str
) -> None:
    path = written(tmp_path, BASE + FIGURE + compared.replace("{min: 1.1}", "{min: 1}"))
    options = ["figures", str(path), "--clock", "virtual", "--results", str(tmp_path / "out")]
    assert main.main(options) == code
    page, out = (tmp_path / "out/index.html").read_text(), capsys.readouterr().out
    assert ("The relation holds." in page) == (not said)
    assert (f"Not tested: {said}. What the run did test holds." in page) == bool(said)
    assert (f"figure small: the relation was not tested as a whole: {said}\n" in out) == bool(said)


def test_a_relation_that_one_clock_tested_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gloo takes part on real links, which another system stands in for here."""
    path = written(tmp_path, BASE + FIGURE + TWO + ", gloo: {system: gloo}}\n")
    real_run = command.run

    def run_without_gloo(suite: Suite, *rest: Any) -> int:
        if "gloo" not in suite.contenders:
            return real_run(suite, *rest)
        folder = tmp_path / "out" / REAL / "small" / "latest"
        folder.mkdir(parents=True)
        (folder / "scenario.yaml").write_text(path.read_text())
        return 0

    monkeypatch.setattr(command, "run", run_without_gloo)
    monkeypatch.setattr("agglab.systems.gloo.system.Gloo.lacks", lambda *_: iter(()))
    assert main.main(["figures", str(path), "--results", str(tmp_path / "out")]) == 0


def test_published_numbers_stand_beside_what_was_measured(tmp_path: Path) -> None:
    published = FIGURE.replace("relation:", "published: 'twice <as> fast', relation:")
    expected = "expect: {growth.allreduce.time_s.median: {max: 1.5}}\n"
    path = written(tmp_path, BASE + published + expected)
    options = [str(path), "--clock", "virtual", "--results", str(tmp_path / "out")]
    assert command.main(options) == 0
    page = (tmp_path / "out/index.html").read_text()
    assert "<p>Published: twice &lt;as&gt; fast</p>" in page
    assert "<td>growth.allreduce.time_s.median</td><td>&lt;= 1.5</td><td>1<" in page


def test_what_is_no_figure_has_no_variant(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="is not a figure"):
        variant(written(tmp_path, BASE), VIRTUAL, long=False)
    with pytest.raises(ScenarioError, match="unknown figure, did you mean 'pool-size'"):
        find("poolsize")


def test_the_page_shows_each_figure_and_a_relation_that_does_not_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grows = "expect: {growth.allreduce.time_s.median: {max: LIMIT}}\n"
    results = ["--clock", "virtual", "--results", str(tmp_path / "out")]
    for limit, code, told in (("1.5", 0, "The relation holds."), ("0.5", 1, "does not hold: ")):
        path = written(tmp_path, BASE + FIGURE + grows.replace("LIMIT", limit))
        assert main.main(["figures", str(path), *results]) == code
        page = (tmp_path / "out/index.html").read_text()
        assert told in page and "It &lt;grows&gt;." in page and "<figure class='chart'>" in page
    assert "page  " in capsys.readouterr().out


def test_a_figure_is_drawn_from_its_folder_alone(tmp_path: Path) -> None:
    """A number that is changed there changes the page."""
    path, out = written(tmp_path, BASE + FIGURE), tmp_path / "out"
    options = [str(path), "--clock", "virtual", "--results", str(out)]
    assert command.main(options) == 0
    page = out / "index.html"
    before = page.read_text()
    assert command.main([*options, "--draw"]) == 0
    assert page.read_text() == before
    metrics = out / "virtual/small/latest/metrics.json"
    tree = json.loads(metrics.read_text())
    tree["points"][1]["metrics"]["allreduce"]["time_s"]["median"] *= 3
    metrics.write_text(json.dumps(tree))
    assert command.main([*options, "--draw"]) == 0
    assert page.read_text() != before


def test_a_figure_over_time_is_drawn_from_the_series_alone(tmp_path: Path) -> None:
    """A rate that is changed in one run's series.csv changes the page."""
    figure = FIGURE.replace("}", ", y: [], over_time: [job.sent_rate]}")
    recorded = "series: {every: 100us}\n"
    path, out = written(tmp_path, BASE + recorded + figure), tmp_path / "out"
    options = [str(path), "--clock", "virtual", "--results", str(out)]
    assert command.main(options) == 0
    page = out / "index.html"
    before = page.read_text()
    assert command.main([*options, "--draw"]) == 0
    assert page.read_text() == before
    series = out / "virtual/small/latest/point-1/series.csv"
    rows = [row.split(",") for row in series.read_text().splitlines()]
    changed = next(row for row in rows if row[1] == "job" and row[3] == "sent_rate")
    changed[4] = str(3 * float(changed[4]) + 1e6)
    series.write_text("".join(",".join(row) + "\n" for row in rows))
    assert command.main([*options, "--draw"]) == 0
    assert page.read_text() != before


def test_a_figure_that_cannot_run_here_does_not_end_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relation that does not hold weighs more than a machine that lacks something."""
    files = []
    for name, expected in (("lacking", ""), ("wrong", "\nexpect: {exact: false}\n"), ("fine", "")):
        path = written(tmp_path, (BASE + FIGURE + expected).replace("small", name))
        files.append(str(path.rename(tmp_path / f"{name}.yaml")))
    real_run = command.run

    def run_or_lack(suite: Suite, *rest: Any) -> int:
        if suite.name == "lacking":
            raise MachineLacks("a queue", "get one")
        return real_run(suite, *rest)

    monkeypatch.setattr(command, "run", run_or_lack)
    options = ["--clock", "virtual", "--results", str(tmp_path / "out")]
    for chosen, code in ((files, 1), ((files[0], files[2]), 3), ((files[2],), 0)):
        assert command.main([*chosen, *options]) == code
    told = capsys.readouterr()
    assert "this machine lacks a queue: get one" in told.err
    assert "figure lacking, virtual: this machine lacks something that the figure needs" in told.out
    assert "figure wrong, virtual: FAILED" in told.out


def test_a_figure_that_never_ran_says_so_on_the_page(tmp_path: Path) -> None:
    path = written(tmp_path, BASE + FIGURE)
    options = [str(path), "--clock", "virtual", "--results", str(tmp_path), "--draw"]
    assert command.main(options) == 0
    page = (tmp_path / "index.html").read_text()
    assert "<p>Not tested: this machine has not run the figure.</p>" in page


@pytest.mark.long
def test_long_settings_are_valid(tmp_path: Path) -> None:
    for name in names():
        for clock in CLOCKS:
            chosen = variant(find(name), clock, long=True)
            file = tmp_path / f"{name}.yaml"
            file.write_text(chosen.text)
            assert chosen.settings and load(file, chosen.settings).figure


@pytest.mark.at_most(4)
@pytest.mark.long(but=["input-type"])
@pytest.mark.parametrize("name", names())
def test_each_relation_holds_in_virtual_time(tmp_path: Path, name: str) -> None:
    chosen = variant(find(name), VIRTUAL, long=False)
    file = tmp_path / f"{name}.yaml"
    file.write_text(chosen.text)
    suite = load(file)
    assert suite.figure and suite.figure.source and suite.figure.relation
    assert run(suite, tmp_path, (), io.StringIO()) == 0
