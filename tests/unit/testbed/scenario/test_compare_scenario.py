"""`compare:` in a scenario: what each contender is, what is refused, and which keys another system
leaves out."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path

import pytest

from agglab.testbed.cli import main
from agglab.testbed.scenario import ScenarioError, Suite, load, suite_to_yaml, to_yaml
from agglab.testbed.schema.document import parse, written

BASE = """
topology: {workers: 4, servers: 1}
switch: {program: switchml, slots: 64}
workload: {elements: 1000, rounds: 2}
"""
FOUR = (
    BASE
    + """
compare:
  switchml: {}
  ring: {system: ring, expect: {link_bound_ratio: {max: 1.1}}}
  ps: {system: ps, ps: {servers: 'p*'}}
  narrow: {switch: {slots: 16}}
"""
)


def suite(tmp_path: Path, text: str, *settings: str) -> Suite:
    path = tmp_path / "s.yaml"
    path.write_text(text)
    loaded = load(path, settings)
    again = tmp_path / "elsewhere" / "again.yaml"
    again.parent.mkdir(exist_ok=True)
    again.write_text(suite_to_yaml(loaded))
    assert plain(load(again)) == plain(loaded), "a scenario as asked loads as itself"
    return loaded


def plain(suite: Suite) -> list[object]:
    """Its runs, of whose programs only the files matter."""
    return [
        (
            p.settings,
            p.contender,
            list(p.resolved.programs.values()),
            replace(s, switch=replace(s.switch, program=None)),
        )
        for p in suite.points
        for s in (p.resolved.scenario,)
    ]


def test_contenders_with_other_windows_have_the_same_queues(tmp_path: Path) -> None:
    """Also where only one of them is run again from its own scenario, as by a Dask worker."""
    text = "compare: {a: {system: ring}, b: {system: ring, workload: {window: 900}}, c: {}}"
    runs = [point.resolved for point in suite(tmp_path, text).points]
    assert len({run.graph for run in runs}) == 1
    (way,) = {way for link in runs[0].graph.links for _, _, _, way in link.directions()}
    assert (way.queue_packets, way.queue_bytes) == (None, 1800 * 1514)
    alone = tmp_path / "alone.yaml"
    for run in runs:
        alone.write_text(to_yaml(run))
        (point,) = load(alone).points
        assert point.resolved.graph == run.graph


def test_queues_that_are_equal_anyway_stay_as_they_are(tmp_path: Path) -> None:
    runs = [point.resolved for point in suite(tmp_path, FOUR).points]
    assert {run.scenario.links.queue_bytes for run in runs} == {None}


def complaints(tmp_path: Path, text: str, *settings: str) -> list[str]:
    path = tmp_path / "s.yaml"
    path.write_text(text)
    with pytest.raises(ScenarioError) as caught:
        load(path, settings)
    return [line.removeprefix(f"{path}:") for line in str(caught.value).splitlines()]


def test_each_contender_is_the_scenario_with_its_own_keys_laid_over(tmp_path: Path) -> None:
    loaded = suite(tmp_path, FOUR + "expect: {exact: true}")
    assert loaded.contenders == ("switchml", "ring", "ps", "narrow")
    assert [point.contender for point in loaded.points] == list(loaded.contenders)
    by_name = {point.contender: point.resolved.scenario for point in loaded.points}
    assert [s.system for s in by_name.values()] == ["switchml", "ring", "ps", "switchml"]
    assert by_name["switchml"].switch.slots == 64
    assert by_name["narrow"].switch.slots == 16
    assert {s.workload.elements for s in by_name.values()} == {1000}
    expected = {name: [e.metric for e in s.expect] for name, s in by_name.items()}
    assert expected["ring"] == ["exact", "link_bound_ratio"]
    assert expected["switchml"] == expected["ps"] == expected["narrow"] == ["exact"]
    assert not any(s.compare for s in by_name.values()), "a scenario of its own"


def test_the_program_of_the_scenario_is_of_its_system_alone(tmp_path: Path) -> None:
    programs = {
        p.contender: p.resolved.programs["s1"].path.stem for p in suite(tmp_path, FOUR).points
    }
    assert programs == {
        "switchml": "switchml",
        "ring": "forwarding",
        "ps": "forwarding",
        "narrow": "switchml",
    }


def test_a_program_is_kept_where_a_contender_names_the_same_system(tmp_path: Path) -> None:
    own = (Path(__file__).parents[4] / "p4/switchml.p4").read_text()
    (tmp_path / "mine.p4").write_text(own)
    text = "switch: {program: mine.p4}\ncompare: {a: {system: switchml}, b: {system: ring}}"
    programs = {p.contender: p.resolved.programs["s1"].path for p in suite(tmp_path, text).points}
    assert programs["a"] == tmp_path / "mine.p4"
    assert programs["b"].stem == "forwarding"


def test_every_point_of_a_sweep_is_a_comparison(tmp_path: Path) -> None:
    text = (
        FOUR
        + """
sweep: {topology.workers: [2, 3]}
expect:
  exact: true
  growth.ring.allreduce.time_s.median: {max: 2}
  ratio.ring.switchml.allreduce.time_s.median: {min: 1.1}
"""
    )
    loaded = suite(tmp_path, text)
    assert [len(group) for group in loaded.groups] == [4, 4]
    for group, workers in zip(loaded.groups, (2, 3), strict=True):
        assert [point.contender for point in group] == list(loaded.contenders)
        assert {point.resolved.scenario.topology.workers for point in group} == {workers}
        assert {point.settings for point in group} == {(("topology.workers", str(workers)),)}
    assert [e.metric for e in loaded.growth] == ["growth.ring.allreduce.time_s.median"]
    assert [e.metric for e in loaded.ratios] == ["ratio.ring.switchml.allreduce.time_s.median"]
    for point in loaded.points:
        assert not any(
            e.metric.startswith(("growth", "ratio")) for e in point.resolved.scenario.expect
        )


TWO = "compare: {a: {}, b: {system: ring}}\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("compare: 5", "1: compare: needs from 2 to 16 contenders; allowed: name: {the keys"),
        ("compare: {a: {}}", "1: compare: needs from 2 to 16 contenders"),
        ("compare: {a: {}, b: 3}", "1: compare.b: is not a mapping"),
        ("compare: {a: {}, b: {}, a: {}}", "1: compare.a: is given twice"),
        ("compare: {a: {}, b.c: {}}", "1: compare.b.c: 'b.c' is not a name of letters"),
        (
            "compare: {a: {}, logs: {}}",
            "1: compare.logs: is a name that the result folder already uses",
        ),
        (
            "compare:\n  a: {}\n  b: {seed: 4}",
            "3: compare.b.seed: must be the same for all contenders, because they share one "
            "network and one workload; allowed: state it outside `compare`",
        ),
        (
            "compare: {a: {}, b: {topology: {workers: 2}}}",
            "1: compare.b.topology: must be the same",
        ),
        (
            "compare: {a: {}, b: {links: {loss: 1%}}}",
            "1: compare.b.links: must be the same for all",
        ),
        ("compare: {a: {}, b: {faults: []}}", "1: compare.b.faults: must be the same for all"),
        ("compare: {a: {}, b: {jobs: []}}", "1: compare.b.jobs: must be the same for all"),
        (
            "compare: {a: {}, b: {backend: virtual}}",
            "1: compare.b.backend: must be the same for all",
        ),
        (
            "compare: {a: {}, b: {workload: {dtype: int32}}}",
            "1: compare.b.workload.dtype: has other tensors than a: int32, not float32; allowed: "
            "another type of floats",
        ),
        (
            "compare: {a: {}, b: {name: c}}",
            "1: compare.b.name: belongs to the whole scenario, not to one contender",
        ),
        (
            "compare: {a: {}, b: {sweep: {}}}",
            "1: compare.b.sweep: belongs to the whole scenario, not to one contender",
        ),
        (
            "compare: {a: {}, b: {expect: {ratio.a.b.rounds: 1}}}",
            "1: compare.b.expect.ratio.a.b.rounds: is about several runs",
        ),
        ("compare: {a: {}, b: {swich: {}}}", "1: compare.b.swich: unknown key, did you mean"),
        ("compare: {a: {}, b: {system: rign}}", "1: compare.b.system: unknown system 'rign', did"),
        (
            "compare: {a: {}, b: {system: ring, switch: {slots: 4}}}",
            "1: compare.b.switch.slots: has no meaning for ring; allowed: remove this key",
        ),
        ("system: ring\nswitch: {slots: 4}", "2: switch.slots: has no meaning for ring"),
        (
            TWO + "switch: {lanes: 0}",
            "2: switch.lanes: '0' is too small",
        ),
        (
            TWO + "expect: {switches.s1.packets.new: {min: 1}}",
            "2: compare.b.expect.switches.s1.packets.new: unknown metric",
        ),
        ("expect: {ratio.a.b.rounds: 1}", "1: expect.ratio.a.b.rounds: 'ratio.a.b.rounds' needs"),
        (
            TWO + "expect: {ratio.a.c.rounds: 1}",
            "2: expect.ratio.a.c.rounds: unknown contender 'c'; allowed: a, b",
        ),
        (TWO + "expect: {ratio.a.a.rounds: 1}", "2: expect.ratio.a.a.rounds: compares 'a' with"),
        (
            TWO + "expect: {ratio.a.b.round: 1}",
            "2: expect.ratio.a.b.round: unknown metric 'round', did you mean 'rounds'?",
        ),
        (
            TWO + "expect: {ratio.a.b.workers.9.sent: {min: 1}}",
            "2: expect.ratio.a.b.workers.9.sent: no such worker (by rank) '9'",
        ),
        (
            TWO + "expect: {ratio.a.b.exact: 1}",
            "2: expect.ratio.a.b.exact: 'exact' is not a number, so it cannot be divided",
        ),
        (TWO + "expect: {ratio.a.b.rounds: {mx: 1}}", "2: expect.ratio.a.b.rounds: unknown key"),
        (TWO + "expect: {growth.a.rounds: 1}", "2: expect.growth.a.rounds: 'growth.a.rounds' nee"),
        (
            TWO + "sweep: {seed: [1, 2]}\nexpect: {growth.rounds: 1}",
            "3: expect.growth.rounds: unknown contender 'rounds'",
        ),
        (
            "compare: {a: {}, b: {system: ps, ps: {servers: h4}}}",
            "1: compare.b: has other workers than a, because hosts with a server have no worker; "
            "allowed: `topology.servers`, or jobs that name their workers",
        ),
        (
            "switch: {slots: 8}\ncompare:\n  a: {}\n  b: {switch: {slots: 1,\n    slots: 2}}",
            "5: compare.b.switch.slots: is given twice, first in line 4",
        ),
        (
            "compare: {a: {}, b: {system: ring, system: ps}}",
            "1: compare.b.system: is given twice, first in line 1",
        ),
        (
            TWO + "sweep: {system: [ring, switchml]}",
            "1: compare.b.system: would override a key that `sweep` sets; allowed: this key "
            "either here or in `sweep`",
        ),
        (
            TWO + "jobs: [{name: x}, {name: y}]\nexpect: {ratio.a.b.link_bound_s: 1}",
            "3: expect.ratio.a.b.link_bound_s: 'ratio.a.b.link_bound_s' is of one job, and there "
            "are 2; allowed: ratio.a.b.jobs.x.link_bound_s, ratio.a.b.jobs.y.link_bound_s",
        ),
        (TWO + "sweep: {}", "2: sweep: is empty; allowed: dotted.key: [value"),
        (TWO + "sweep: {seed: []}", "2: sweep.seed: is empty; allowed: a list of values"),
        (
            TWO + "jobs: [{name: x, end: 1s}]",
            "2: jobs[0].end: would end the contenders after different numbers of rounds; allowed: "
            "in a comparison, `workload.rounds` alone",
        ),
    ],
)
def test_a_mistake_is_told_once_with_its_place(tmp_path: Path, text: str, says: str) -> None:
    (found,) = complaints(tmp_path, text)
    assert found.startswith(says), found


def test_a_mistake_of_some_contenders_names_them(tmp_path: Path) -> None:
    text = "compare:\n  a: {}\n  b: {system: ring}\n  c: {system: ring, workload: {windw: 1}}\n"
    found = complaints(tmp_path, text + "expect: {switches.s1.packets.new: 0}\nseed: -1")
    assert sorted(line.partition(": ")[2].partition(": ")[0] for line in found) == [
        "compare.b.expect.switches.s1.packets.new",
        "compare.c.expect.switches.s1.packets.new",
        "compare.c.workload.windw",
        "seed",
    ]


def test_too_many_runs_are_counted_with_the_contenders(tmp_path: Path) -> None:
    seeds = ", ".join(map(str, range(2049)))
    (found,) = complaints(tmp_path, f"{TWO}sweep: {{seed: [{seeds}]}}")
    assert found == "2: sweep: results in 4098 runs; allowed: at most 4096"


def test_of_too_many_runs_only_some_are_examined_for_other_mistakes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[object] = []
    load_module = importlib.import_module("agglab.testbed.scenario.load")
    make = load_module._point
    monkeypatch.setattr(load_module, "_point", lambda *given: read.append(given) or make(*given))
    seeds = ", ".join(map(str, range(2049)))
    found = complaints(tmp_path, f"{TWO}sweep: {{seed: [{seeds}]}}\nlinks: {{mtu: 5}}")
    assert [line for line in found if "mtu" in line] and len(found) == 2
    assert len(read) == load_module.READ_OF_TOO_MANY


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("switch: {slots: 32, partition: dynamic}", ["system=ring"]),
        ("switch: {slots: 32}\nsweep: {system: [ring]}", []),
        ("switch: {slots: 32}\ncompare: {a: {system: ring}, b: {system: ring}}", []),
        ("jobs: [{slots: 8, share: 2, workers: h1}, {workers: [h2, h3]}]", ["system=ring"]),
    ],
)
def test_what_was_meant_for_another_system_is_left_out(
    tmp_path: Path, text: str, settings: list[str]
) -> None:
    for point in suite(tmp_path, text, *settings).points:
        assert point.resolved.scenario.system == "ring"
        plain = load_plain(tmp_path)
        assert point.resolved.scenario.switch.slots == plain.switch.slots, "the default"
        assert all(job.slots is None and job.share == 1 for job in point.resolved.scenario.jobs)


def load_plain(tmp_path: Path):
    path = tmp_path / "plain.yaml"
    path.write_text("system: ring")
    return load(path).points[0].resolved.scenario


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("system: ring", ["switch.slots=8"]),
        ("system: switchml", ["system=ring", "switch.slots=8"]),
        ("sweep: {system: [ring], switch.slots: [8]}", []),
    ],
)
def test_a_key_that_is_stated_beside_the_system_is_refused(
    tmp_path: Path, text: str, settings: list[str]
) -> None:
    (found,) = complaints(tmp_path, text, *settings)
    assert "switch.slots: has no meaning for ring; allowed: remove this key" in found


def test_quickstart_runs_with_every_system(tmp_path: Path) -> None:
    assert main.main(["check", "quickstart", "--set", "system=ring"]) == 0
    assert main.main(["check", "quickstart", "--set", "system=ps"]) == 0


def test_check_tells_what_will_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(TWO + "sweep: {topology.workers: [2, 4]}")
    assert main.main(["check", str(path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{path}: valid, 4 runs",
        "  workers 2: a, b",
        "  workers 4: a, b",
    ]


def test_own_files_are_found_from_a_copy_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "graph.yaml").write_text("switches: [s]\nlinks: [h1-s, h2-s]")
    (tmp_path / "mine.p4").write_text((Path(__file__).parents[4] / "p4/switchml.p4").read_text())
    (tmp_path / "mine.py").write_text(
        "from agglab.hosts import AllReducer\nclass Mine(AllReducer): ..."
    )
    text = """
topology: {kind: custom, file: graph.yaml}
compare:
  a: {switch: {program: mine.p4}}
  b: {workload: {worker: 'mine:Mine'}}
sweep: {seed: [1, 2]}
"""
    points = suite(tmp_path, text).points
    assert points[0].resolved.programs["s"].path == tmp_path / "mine.p4"
    assert points[1].resolved.scenario.workload.worker == f"{tmp_path / 'mine.py'}:Mine"


@pytest.mark.parametrize(
    "text",
    [
        "a: 1_000_000\nb: on\nc: 'on'\nd: '4'\ne: [1:30, 0.1%, '', x y]\nf: {}\ng: []\nh: ~\n",
        'a: {\'b c\': "d\\n e", f: \'g#h\', i: "j: k", l: "ä\\t"}',
    ],
)
def test_a_document_is_written_as_it_reads(text: str) -> None:
    def plain(node: object) -> object:
        if hasattr(node, "entries"):
            return [(plain(key), plain(value)) for key, value in node.entries]
        if hasattr(node, "items"):
            return [plain(item) for item in node.items]
        return (node.text, node.quoted)  # type: ignore[attr-defined]

    tree = parse(text, "here")
    assert plain(parse(written(tree), "there")) == plain(tree)
