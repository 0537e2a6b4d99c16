"""Every mistake of a file is reported at once: the single mistakes of the other tests, together."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from scenario_mistakes import ONE_MISTAKE, WRONG

from agglab.testbed.scenario import ScenarioError, load
from agglab.testbed.schema import document as doc
from agglab.testbed.schema.document import Items, Node, Scalar, parse

# Keys on whose values the message about a key depends, by the beginning of its path.
OF_ALL_JOBS = ("topology", "jobs")
READS: Mapping[str, tuple[str, ...]] = {
    "faults": (*OF_ALL_JOBS, "workload", "timeouts", "links", "switch.lanes"),
    "expect": (*OF_ALL_JOBS, "sweep", "system"),
    "jobs": (*OF_ALL_JOBS, "system", "switch.slots", "switch.partition", "workload"),
    "links.overrides": ("topology", "links.mtu"),
    "links.queue": ("links.mtu",),
    "switch": ("system",),
    "switch.lanes": ("links.mtu",),
    "workload": (*OF_ALL_JOBS, "system", "switch.slots"),
    "topology": ("backend", "jobs", "topology.kind"),
    "sweep": ("sweep", "system", "jobs"),
}


def mistakes() -> dict[str, Node]:
    """The tree of every fixture that is a mapping in which no key is repeated."""
    found = {}
    for name, (text, _) in {**ONE_MISTAKE, **WRONG}.items():
        if isinstance(text, str):
            try:
                tree = parse(text, "s.yaml")
            except ScenarioError:
                continue
            if isinstance(tree, doc.Mapping) and len(leaves(tree)) == len(list(all_keys(tree))):
                found[name] = tree
    return found


def all_keys(node: Node, path: str = "") -> Iterator[str]:
    """Of every value that is no mapping; a repeated key is there twice."""
    if isinstance(node, doc.Mapping) and node.entries:
        for key, child in node.entries:
            yield from all_keys(child, f"{path}.{key.text}" if path else key.text)
    else:
        yield path


def leaves(node: Node) -> dict[str, str]:
    """Dotted path -> value, written; lists are values."""
    return dict(_leaves(node, ""))


def _leaves(node: Node, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, doc.Mapping) and node.entries:
        for key, child in node.entries:
            yield from _leaves(child, f"{path}.{key.text}" if path else key.text)
    else:
        yield path, written(node)


def written(node: Node) -> str:
    if isinstance(node, Scalar):
        return json.dumps(node.text) if node.quoted else node.text
    if isinstance(node, Items):
        return f"[{', '.join(map(written, node.items))}]"
    return "{" + ", ".join(f"{key.text}: {written(child)}" for key, child in node.entries) + "}"


def complaints(folder: Path, stated: Mapping[str, str]) -> list[str]:
    """Lines without places; the values are those of `leaves`."""
    tree: dict = {}
    for path, value in stated.items():
        *sections, key = path.split(".") if not path.startswith("expect.") else path.split(".", 1)
        if sections == ["sweep"] or path.startswith("sweep."):
            sections, key = ["sweep"], path.removeprefix("sweep.")
        place = tree
        for section in sections:
            place = place.setdefault(section, {})
        place[key] = value
    file = folder / "s.yaml"
    file.write_text("\n".join(block(tree)))
    with pytest.raises(ScenarioError) as caught:
        load(file)
    return [f"{each.path}: {each.what}; {each.allowed}" for each in caught.value.problems]


def block(tree: dict, depth: int = 0) -> Iterator[str]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield f"{'  ' * depth}{key}:"
            yield from block(value, depth + 1)
        else:
            yield f"{'  ' * depth}{key}: {value}"


def touch(one: str, other: str) -> bool:
    """Whether one of two paths is the other's, or in it."""
    a, b = f"{one}.", f"{other}."
    return a.startswith(b) or b.startswith(a)


def independent(one: dict[str, str], line: str, other: dict[str, str]) -> bool:
    """Whether nothing that `other` states has to do with the line, or with what `one` states."""
    path = line.partition(": ")[0]
    told = (path, *one)
    reads = [r for s, keys in READS.items() if any(p.startswith(s) for p in told) for r in keys]
    stated = [key for path in other for key in (path, path.removeprefix("sweep."))]
    return not any(touch(mine, theirs) for mine in (path, *one, *reads) for theirs in stated)


def test_the_report_of_several_mistakes_has_the_line_of_each(tmp_path: Path) -> None:
    alone = {
        name: (leaves(tree), complaints(tmp_path, leaves(tree)))
        for name, tree in mistakes().items()
    }
    assert len(alone) > 90

    @functools.cache
    def undisturbed(one: str, other: str) -> bool:
        """Whether the lines of one mistake stay the same beside the other."""
        stated, lines = alone[one]
        return all(independent(stated, line, alone[other][0]) for line in lines)

    together = set()
    for seed in range(60):
        order = sorted(alone)
        random.Random(seed).shuffle(order)
        chosen: list[str] = []
        for name in order:
            if all(undisturbed(name, other) and undisturbed(other, name) for other in chosen):
                chosen.append(name)
        merged = {path: value for name in chosen for path, value in alone[name][0].items()}
        report = complaints(tmp_path, merged)
        for name in chosen:
            assert set(alone[name][1]) <= set(report), (name, chosen, report)
        together.add(len(chosen))
        assert set(report) == {line for name in chosen for line in alone[name][1]}, chosen
    assert max(together) > 8


def test_every_entry_of_a_list_is_judged(tmp_path: Path) -> None:
    entries, expected = [], []
    for tree in mistakes().values():
        faults = tree.get("faults") if isinstance(tree, doc.Mapping) else None
        if set(leaves(tree)) == {"faults"} and isinstance(faults, Items) and len(faults.items) == 1:
            lines = complaints(tmp_path, leaves(tree))
            expected += [line.replace("faults[0]", f"faults[{len(entries)}]") for line in lines]
            entries.append(written(faults.items[0]))
    assert len(entries) > 12
    assert complaints(tmp_path, {"faults": f"[{', '.join(entries)}]"}) == expected


def paths(folder: Path, text: str) -> set[str]:
    file = folder / "s.yaml"
    file.write_text(text)
    with pytest.raises(ScenarioError) as caught:
        load(file)
    return {problem.path for problem in caught.value.problems}


def test_what_a_broken_part_decides_is_left_out_and_nothing_else(tmp_path: Path) -> None:
    declared = """
links: {loss: 5, overrides: [{match: h9-s1}, {match: h1-s1, rate: fast}, {match: h8-s1}]}
switch: {slots: 16}
jobs:
- {name: a, slots: 10, first_slot: 12, workers: x*}
- {name: a, share: 0, start: 2s, end: 1s}
- {name: c, slots: 12, first_slot: 1, workload: {dtype: text}}
faults:
- {kind: link_down, link: h9-s1, every: 3}
- {kind: worker_pause, job: z, worker: h1}
- {kind: loss, link: h1-s1, probability: 7}
- {kind: loss, link: h1-s1, probability: 1%}
- {kind: link_down, link: h1-s1, at: 2s, until: 1s}
expect: {jobs.z.exact: true, failure: {worker: h1, wthin: 1s}, switches.s7.cpu_s: {max: 1}}
"""
    of_keys = {"links.loss", "links.overrides[1].rate", "faults[0].every", "faults[2].probability"}
    of_keys |= {"jobs[0].first_slot", "jobs[1].name", "jobs[1].share", "jobs[1].end"}
    of_keys |= {"jobs[2].workload.dtype", "faults[1].job", "faults[4].until", "expect.jobs.z.exact"}
    of_keys |= {"expect.failure"}
    of_graph = {"links.overrides[0].match", "links.overrides[2].match", "jobs[0].workers"}
    of_graph |= {"faults[0].link", "faults[3]", "expect.switches.s7.cpu_s"}
    assert paths(tmp_path, declared) == of_keys | of_graph
    broken = "topology: {kind: fat_tree, k: 5}"
    assert paths(tmp_path, broken + declared) == of_keys | {"topology"}
    unreadable = "topology: {kind: custom, file: none.yaml}"
    assert paths(tmp_path, unreadable + declared) == of_keys | {""}
    misspelt = "topology: {workrs: 3}"
    assert paths(tmp_path, misspelt + declared) == of_keys | {"topology.workrs"}


def test_a_sweep_that_is_too_large_hides_nothing(tmp_path: Path) -> None:
    numbers = ", ".join(map(str, range(1, 4097)))
    text = f"sweep: {{seed: [{numbers}], workload.rounds: [1, 2]}}\nlinks: {{rate: 1}}\n"
    text += "switch: {lanes: 366}\nfaults: [{kind: link_down}]"
    assert paths(tmp_path, text) == {"sweep", "links.rate", "switch.lanes", "faults[0]"}
