"""`agglab schema`: editors that check a scenario with it agree with the reader, key by key."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import jsonschema
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scenario_mistakes import ONE_MISTAKE, WRONG

from agglab.testbed import systems
from agglab.testbed.base.paths import FIGURE_FOLDER, SCENARIO_FOLDER
from agglab.testbed.base.problems import Where
from agglab.testbed.cli.main import main
from agglab.testbed.scenario import ScenarioError, load
from agglab.testbed.scenario.json_schema import schema
from agglab.testbed.schema.document import Scalar, written
from agglab.testbed.schema.kinds import InvalidText, Kind
from agglab.testbed.schema.scenario import keys

SHIPPED = sorted([*SCENARIO_FOLDER.glob("*.yaml"), *FIGURE_FOLDER.glob("*.yaml")])
CHECKER = jsonschema.Draft7Validator(schema())
TEXTS = (
    *(
        "0",
        "1",
        "4",
        "-1",
        "-0",
        "-0%",
        "2.5",
        "1_000",
        "1e3",
        "1e6",
        "64",
        "65",
        ".5",
        "+3",
        "0.1",
        "1.0",
    ),
    *(
        "1mbit",
        "100Mbit",
        "10 mbit/s",
        "0s",
        "5ms",
        "5µs",
        "2us",
        "1 min",
        "2kB",
        "64KiB",
        "1_000kB",
    ),
    *("1%", "0.1 %", "100%", "99.9%", "true", "false", "True", "auto", "rack", "fat_tree", "bmv2"),
    *(
        "x",
        "h*",
        "h1-s1",
        "h1->s1",
        "a b",
        "mine.py:Mine",
        "a.yaml",
        "2024",
        "",
        "é",
        "off",
        "none",
    ),
)


class Yaml12(yaml.SafeLoader):
    """Reads plain scalars as YAML 1.2's core schema does, like editors. Quoted ones are text."""

    yaml_implicit_resolvers: ClassVar = {}


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ("~", "n", "N", "")),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    _whole = re.compile(f"^(?:{_pattern})$")
    Yaml12.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _whole, [*_first])


def _number(text: str) -> Any:
    value = float(text)
    return int(value) if value.is_integer() else value


Yaml12.add_constructor(
    "tag:yaml.org,2002:float", lambda loader, node: _number(loader.construct_scalar(node))
)


def accepts(text: str) -> bool:
    return CHECKER.is_valid(yaml.load(text, Yaml12))


def test_it_is_a_json_schema() -> None:
    jsonschema.Draft7Validator.check_schema(schema())


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_scenarios_and_figures_are_valid(path: Path) -> None:
    CHECKER.validate(yaml.load(path.read_text(), Yaml12))


def declared() -> Iterator[tuple[str, Kind]]:
    """Yields the path and the kind of every key, those of systems included."""
    for path, key, _ in keys():
        yield path, key.kind
    for name in systems.names():
        if own := systems.find(name).options:
            yield from ((path, key.kind) for path, key, _ in keys(own, f"{name}."))


def agreement(kind: Kind, text: str) -> tuple[bool, bool]:
    """Returns whether the reader and whether the schema accept a plain scalar."""
    try:
        kind.read(Scalar(text, False, Where("s.yaml")))
        read = True
    except InvalidText:
        read = False
    return read, jsonschema.Draft7Validator(kind.json_schema()).is_valid(yaml.load(text, Yaml12))


@pytest.mark.parametrize(
    ("path", "kind"), [pytest.param(path, kind, id=str(path)) for path, kind in declared()]
)
def test_no_value_that_the_reader_accepts_is_marked_as_wrong(path: str, kind: Kind) -> None:
    refused_by_both = 0
    for text in filter(None, TEXTS):  # an empty value is refused before its kind is asked
        read, valid = agreement(kind, text)
        assert valid or not read, f"{path}: {text!r} is allowed, but the schema refuses it"
        refused_by_both += not read and not valid
    assert refused_by_both or "characters" in kind.allowed or "pattern" in kind.allowed, path


UNSEEN = Path(__file__).parent / "json_schema_unseen.txt"
"""The mistakes that one key alone does not show, such as a host that the topology does not have."""


def unseen() -> Iterator[str]:
    for mistake, (text, _) in {**ONE_MISTAKE, **WRONG}.items():
        with contextlib.suppress(
            yaml.YAMLError, ValueError, RecursionError, AttributeError, OverflowError
        ):
            if CHECKER.is_valid(yaml.load(text, Yaml12)):
                yield mistake


def test_golden_mistakes_that_the_schema_cannot_see() -> None:
    text = "\n".join(unseen()) + "\n"
    if os.environ.get("BLESS"):
        UNSEEN.write_text(text)
    assert text == UNSEEN.read_text(), "read the difference; BLESS=1 accepts it"


@pytest.mark.parametrize(
    "text",
    [
        "{sede: 3}",
        "{links: {rat: 1mbit}}",
        "{links: {rate: 100}}",
        "{topology: {kind: rack, racks: 2}}",
        "{faults: [{kind: loss, link: h1-s1, frames: 3}]}",
        "{faults: [{kind: loss, link: h1-s1}]}",
        "{expect: {exat: true}}",
        "{expect: {exact: 1}}",
        "{expect: {allreduce.time_s.median: 3}}",
        "{expect: {findings: [slowly]}}",
        "{sweep: {links.los: [1%]}}",
        "{sweep: {links.loss: [1]}}",
        "{compare: {a: {}, b: {seed: 2}}}",
        "{compare: {a: {workload: {dtyp: int32}}, b: {}}}",
        "{jobs: [{workload: {kind: none}}]}",
        "{system: swichml}",
        "{mine: {rate: 3}}",
    ],
)
def test_a_mistake_is_marked(text: str) -> None:
    assert not accepts(text)


OWN = "tests/mine.py:Mine"


@pytest.mark.parametrize(
    "text",
    [
        f"{{system: '{OWN}', mine: {{rate: 3}}, expect: {{workers.0.mine: 4}}}}",
        f"{{compare: {{a: {{system: '{OWN}'}}, b: {{}}}}, expect: {{workers.0.mine: 4}}}}",
        f"{{sweep: {{system: [ring, '{OWN}']}}, mine: {{}}}}",
    ],
)
def test_a_system_of_ones_own_has_keys_and_metrics_of_its_own(text: str) -> None:
    assert accepts(text)
    assert not accepts(text.replace(f"'{OWN}'", "ps"))


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.sampled_from([*keys()]), st.sampled_from(TEXTS)), max_size=4))
def test_no_scenario_that_loads_is_marked(tmp_path_factory, entries) -> None:
    lines = (
        f"{path.replace('[]', '')}={text}" for (path, _, _), text in entries if "[" not in path
    )
    path = tmp_path_factory.getbasetemp() / "random.yaml"
    path.write_text("{seed: 1}")
    try:
        suite = load(path, list(lines))
    except ScenarioError:
        return
    CHECKER.validate(yaml.load(written(suite.document), Yaml12))


def test_the_command_writes_it(tmp_path: Path, capsys) -> None:
    assert main(["schema"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == schema()
    assert main(["schema", "--out", str(tmp_path / "s.json")]) == 0
    assert json.loads((tmp_path / "s.json").read_text()) == printed
    assert main(["schema", "--out", str(tmp_path / "no/s.json")]) == 2
    assert "cannot write" in capsys.readouterr().err
