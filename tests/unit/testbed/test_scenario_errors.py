"""Every mistake in a scenario is one line with the place, the key's path and what is allowed."""

from pathlib import Path

import pytest

from testbed.scenario import ScenarioError, load


def complaints(tmp_path: Path, text: str | bytes, *settings: str) -> list[str]:
    path = tmp_path / "s.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ScenarioError) as caught:
        load(path, settings)
    lines = str(caught.value).splitlines()
    assert len(lines) == len(caught.value.problems)
    return [line.removeprefix(f"{tmp_path}/") for line in lines]


ONE_MISTAKE = {
    "unknown key": ("sede: 3", "s.yaml:1: sede: unknown key, did you mean 'seed'?; allowed: name,"),
    "unknown nested key": (
        "links:\n  rat: 1mbit",
        "s.yaml:2: links.rat: unknown key, did you mean 'rate'?; allowed: rate, delay, loss, mtu,",
    ),
    "duplicate key": ("seed: 1\nseed: 2", "s.yaml:2: seed: is given twice, first in line 1"),
    "no unit": ("links: {rate: 100}", "s.yaml:1: links.rate: '100' has no unit; allowed: a rate"),
    "wrong unit": (
        "links: {rate: 100 parsec}",
        "s.yaml:1: links.rate: '100 parsec' has the unknown unit 'parsec'; allowed: a rate from "
        "8kbit to 400gbit in bit, kbit, mbit, gbit",
    ),
    "time for a rate": ("links: {rate: 5ms}", "s.yaml:1: links.rate: '5ms' has the unknown unit"),
    "not a quantity": (
        "links: {rate: fast}",
        "s.yaml:1: links.rate: 'fast' is not a rate; allowed",
    ),
    "negative rate": ("links: {rate: -1mbit}", "s.yaml:1: links.rate: '-1mbit' is too small"),
    "not a number": (
        "topology: {workers: four}",
        "s.yaml:1: topology.workers: 'four' is not a whole number; allowed: a whole number from 1",
    ),
    "number in quotes": (
        "topology: {workers: '4'}",
        "s.yaml:1: topology.workers: '4' in quotes is text, not a number",
    ),
    "half a worker": (
        "topology: {workers: 2.5}",
        "s.yaml:1: topology.workers: '2.5' is not a whole",
    ),
    "no workers": (
        "topology: {workers: 0}",
        "s.yaml:1: topology.workers: '0' is too small; allowed: a whole number from 1 to 64",
    ),
    "more workers than the bitmap": (
        "topology: {workers: 65}",
        "s.yaml:1: topology.workers: '65' is too large; allowed: a whole number from 1 to 64",
    ),
    "a number without end": ("seed: " + "9" * 5000, "s.yaml:1: seed: '9999"),
    "loss of everything": (
        "links: {loss: 100%}",
        "s.yaml:1: links.loss: '100%' is impossible; allowed: a percentage or a fraction from 0",
    ),
    "percent without sign": (
        "links: {loss: 5}",
        "s.yaml:1: links.loss: '5' would be 500 %, a percentage needs '%'",
    ),
    "negative loss": ("links: {loss: -1%}", "s.yaml:1: links.loss: '-1%' is impossible"),
    "yes is not true": ("switch: {pcap: yes}", "s.yaml:1: switch.pcap: 'yes' is not true or false"),
    "unknown choice": (
        "workload: {dtype: float64}",
        "s.yaml:1: workload.dtype: unknown 'float64', did you mean 'float32'?; allowed: float32,",
    ),
    "list for a value": ("seed: [1]", "s.yaml:1: seed: is a list, not a value; allowed: a whole"),
    "mapping for a value": ("seed: {a: 1}", "s.yaml:1: seed: is a mapping, not a value"),
    "value for a section": ("links: fast", "s.yaml:1: links: is not a mapping; allowed: rate,"),
    "no value": ("seed:", "s.yaml:1: seed: has no value; allowed: a whole number from 0"),
    "not a mapping": ("- a\n- b", "s.yaml:1: is not a mapping; allowed: name, description, seed,"),
    "a name that is a path": ("name: ../x", "s.yaml:1: name: '../x' is not a name of letters"),
    "too many lanes": (
        "switch: {lanes: 366}",
        "s.yaml:1: switch.lanes: 366 lanes do not fit an MTU of 1500 bytes; allowed: at most 365,",
    ),
    "window above slots": (
        "switch: {slots: 8}\nworkload: {window: 9}",
        "s.yaml:2: workload.window: a window of 9 chunks is more than the switch has slots; allow",
    ),
    "more slots than an index": (
        "switch: {slots: 32769}",
        "s.yaml:1: switch.slots: '32769' is too large; allowed: a whole number from 1 to 32768",
    ),
    "tensors beyond memory": (
        "topology: {workers: 64}\nworkload: {elements: 1e9}",
        "s.yaml:2: workload.elements: the tensors of 64 workers need more than 8 GiB",
    ),
    "unknown program": (
        "switch: {program: switchmk}",
        "s.yaml:1: switch.program: no such program 'switchmk', did you mean 'switchml'?; allowed:",
    ),
    "a program whose name no file can have": (
        f"switch: {{program: {'a' * 300}}}",
        "s.yaml:1: switch.program: no such program 'aaa",
    ),
    "entries whose name no file can have": (
        f"switch: {{entries: {'a' * 300}}}",
        "s.yaml:1: switch.entries: no such file or folder 'aaa",
    ),
    "missing program file": (
        "switch: {program: no/such.p4}",
        "s.yaml:1: switch.program: no such program 'no/such.p4'; allowed: switchml (from p4/)",
    ),
    "override of nothing": (
        "links:\n  overrides:\n  - {match: h9-s1, loss: 1%}",
        "s.yaml:3: links.overrides[0].match: 'h9-s1' matches no link, did you mean 'h4-s1'?; "
        "allowed: h1-s1, h2-s1,",
    ),
    "override with an unknown key": (
        "links:\n  overrides:\n  - {macth: h1-s1}",
        "s.yaml:3: links.overrides[0].macth: unknown key, did you mean 'match'?",
    ),
    "unknown metric": (
        "expect: {exat: true}",
        "s.yaml:1: expect.exat: unknown metric 'exat', did you mean 'exact'?; allowed: docs/res",
    ),
    "unknown matcher": (
        "expect: {link_bound_ratio: {mx: 1}}",
        "s.yaml:1: expect.link_bound_ratio: unknown key 'mx', did you mean 'max'?",
    ),
    "order of a flag": ("expect: {exact: {min: 1}}", "s.yaml:1: expect.exact: has no order"),
    "number for a flag": ("expect: {exact: 1}", "s.yaml:1: expect.exact: '1' is not true or false"),
    "min above max": (
        "expect: {link_bound_ratio: {min: 2, max: 1}}",
        "s.yaml:1: expect.link_bound_ratio: min 2 is above max 1",
    ),
    "growth of one run": (
        "expect: {growth.link_bound_ratio: 1}",
        "s.yaml:1: expect.growth.link_bound_ratio: 'growth.link_bound_ratio' needs a sweep",
    ),
    "expected worker that is not": (
        "topology: {workers: 3}\nexpect: {workers.3.timeouts: 0}",
        "s.yaml:2: expect.workers.3.timeouts: no such worker (by rank) '3'; allowed: 0, 1, 2",
    ),
    "expected failure of nobody": (
        "expect:\n  failure:\n    worker: h9",
        "s.yaml:3: expect.failure.worker: no such host with a worker 'h9'; allowed: h1, h2, h3, h4",
    ),
    "expected failure of another job's worker": (
        "jobs: [{name: a, workers: h1}, {name: b, workers: h2}]\n"
        "expect: {failure: {job: a, worker: h2}}",
        "s.yaml:2: expect.failure.worker: no such host with a worker 'h2'; allowed: h1",
    ),
    "expected failure, misspelt": (
        "expect: {failure: {worke: h1}}",
        "s.yaml:1: expect.failure: unknown key 'worke', did you mean 'worker'?; allowed: worker:",
    ),
    "expected failure without a value": (
        "expect: {failure: {worker: }}",
        "s.yaml:1: expect.failure: 'worker' has no value",
    ),
    "expected switch that is not": (
        "expect: {switches.s2.cpu_s: 1}",
        "s.yaml:1: expect.switches.s2.cpu_s: no such switch 's2'; allowed: s1",
    ),
    "expected link, turned round": (
        "expect: {links.s1-h1.h1->s1.seen: 1}",
        "s.yaml:1: expect.links.s1-h1.h1->s1.seen: no such link 's1-h1', did you mean 'h1-s1'?",
    ),
    "expected direction that is not": (
        "expect: {links.h1-s1.h2->s1.seen: 1}",
        "s.yaml:1: expect.links.h1-s1.h2->s1.seen: no such direction 'h2->s1', did you mean 'h1->",
    ),
    "expected job that is not": (
        "expect: {jobs.job2.exact: true}",
        "s.yaml:1: expect.jobs.job2.exact: no such job 'job2', did you mean 'job1'?; allowed: job1",
    ),
    "expected worker of a job that is not": (
        "expect: {jobs.job1.workers.4.sent: 1}",
        "s.yaml:1: expect.jobs.job1.workers.4.sent: no such worker (by rank) '4'; allowed: 0, 1, 2",
    ),
    "expected share that is not": (
        "expect: {fairness.shares.a: 1}",
        "s.yaml:1: expect.fairness.shares.a: no such job 'a'; allowed: job1",
    ),
    "expected count that is not": (
        "expect: {switches.s1.jobs.job1.stal: 1}",
        "s.yaml:1: expect.switches.s1.jobs.job1.stal: no such count of packets 'stal', did you "
        "mean 'stale'?",
    ),
    "expected of one job of two": (
        "jobs: [{name: a}, {name: b}]\nexpect: {workers.0.sent: 1}",
        "s.yaml:2: expect.workers.0.sent: 'workers.0.sent' is of one job, and there are 2; "
        "allowed: jobs.a.workers.0.sent, jobs.b.workers.0.sent",
    ),
    "expected growth of no worker": (
        "sweep: {seed: [1, 2]}\nexpect: {growth.workers.9.sent: 1}",
        "s.yaml:2: expect.growth.workers.9.sent: no such worker (by rank) '9'; allowed: 0, 1, 2, 3",
    ),
    "expected verdict that is none": (
        "expect: {fidelity.verdict: cpubound}",
        "s.yaml:1: expect.fidelity.verdict: no such verdict 'cpubound', did you mean 'cpu-bound'?",
    ),
    "a key of another section": (
        "loss: 1%",
        "s.yaml:1: loss: unknown key, did you mean 'links.loss'?; allowed: name,",
    ),
    "a word in capitals": (
        "backend: VIRTUAL",
        "s.yaml:1: backend: unknown 'VIRTUAL', did you mean 'virtual'?",
    ),
    "half a word": (
        "topology: {kind: fat}",
        "s.yaml:1: topology.kind: unknown 'fat', did you mean 'fat_tree'?",
    ),
    "sweep over nothing": ("sweep: {seed: []}", "s.yaml:1: sweep.seed: is not a list; allowed"),
    "sweep of an unknown key": (
        "sweep: {topology.worker: [1]}",
        "s.yaml:1: sweep.topology.worker: unknown key 'topology.worker', did you mean",
    ),
    "wrong value in a sweep": (
        "sweep:\n  topology.workers: [2, 0]",
        "s.yaml:2: topology.workers: '0' is too small",
    ),
    "too many runs": (
        "sweep: {seed: [1,2,3,4,5,6,7,8,9], switch.slots: [1,2,3,4,5,6,7,8]}",
        "s.yaml:1: sweep: makes 72 runs; allowed: at most 64",
    ),
    "syntax": ("links: {rate: 1mbit", "s.yaml:1: not YAML: "),
    "tab": ("links:\n\trate: 1mbit", "s.yaml:2: not YAML: "),
    "two documents": ("seed: 1\n---\nseed: 2", "s.yaml:2: not YAML: "),
    "a tag": ("seed: !!python/object/apply:os.system [ls]", "s.yaml:1: "),
    "a key that is a list": ("? [a]\n: 1", "s.yaml:1: a key must be a word"),
    "an escape of no character": ('name: "\\UFFFFFFFF"', "s.yaml: not YAML: an escape"),
    "a control character": ("name: a\x07b", "s.yaml:1: character U+0007 is not allowed in YAML"),
    "empty": ("", "s.yaml: is empty; allowed: a mapping"),
    "only a comment": ("# nothing\n", "s.yaml: is empty; allowed: a mapping"),
    "not UTF-8": (b"name: x\ndescription: caf\xe9\n", "s.yaml:2: byte 0xe9 is not UTF-8 text"),
    "huge": ("#" * 100_001, "s.yaml: is larger than 100000 bytes"),
    "deep": ("[" * 500 + "]" * 500, "s.yaml:1: nested deeper than 12 levels"),
    "a loop": ("links: &a {overrides: [*a]}", "s.yaml:1: "),
}


@pytest.mark.parametrize("mistake", ONE_MISTAKE)
def test_one_mistake_is_one_line(tmp_path: Path, mistake: str) -> None:
    text, expected = ONE_MISTAKE[mistake]
    found = complaints(tmp_path, text)
    assert len(found) == 1, found
    assert found[0].startswith(expected), found[0]


def test_every_mistake_is_found_in_one_pass(tmp_path: Path) -> None:
    text = """
name: a b
sed: 3
topology: {kind: tree, workers: 0}
links: {rate: 100, loss: 100%, delay: 5 parsec}
switch: {lanes: 0, program: foo}
expect: {exact: 1, foo: 3}
"""
    paths = {line.split(": ")[1] for line in complaints(tmp_path, text)}
    assert {path for path in paths if path.startswith("links.")} == {
        "links.rate",
        "links.loss",
        "links.delay",
    }
    others = {"name", "sed", "topology.kind", "topology.workers"}
    others |= {"switch.lanes", "switch.program", "expect.exact", "expect.foo"}
    assert paths >= others
    assert len(paths) == 11


def test_an_alias_bomb_is_bounded(tmp_path: Path) -> None:
    levels = "".join(f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]\n" for i in range(1, 9))
    found = complaints(tmp_path, "l0: &l0 [x]\n" + levels)
    assert len(found) == 1
    assert "more than 5000 values" in found[0]


def test_a_mistake_on_the_command_line_is_placed_there(tmp_path: Path) -> None:
    found = complaints(tmp_path, "seed: 1", "links.loss=7")
    assert found == [
        "--set 'links.loss=7': links.loss: '7' would be 700 %, a percentage needs '%'; "
        "allowed: a percentage or a fraction from 0 to below 100% (0.1% is 0.001)"
    ]
    assert complaints(tmp_path, "seed: 1", "nonsense")[0].startswith("--set 'nonsense': is not a")


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"no-such\.yaml: cannot read the file: No such file"):
        load(tmp_path / "no-such.yaml")
    with pytest.raises(ScenarioError, match="cannot read the file: Is a directory"):
        load(tmp_path)


def test_a_file_that_is_not_there_names_the_most_similar(tmp_path: Path) -> None:
    for name in ("maximum.p4", "run.json", "maximum.py"):
        (tmp_path / name).touch()
    text = "switch: {program: maximum, entries: runn.json}\nworkload: {worker: 'maximun:M'}"
    found = complaints(tmp_path, text)
    assert [line.partition("did you mean ")[2].partition("?")[0] for line in found] == [
        "'maximum.py'",
        "'run.json'",
        "'maximum.p4'",
    ]
