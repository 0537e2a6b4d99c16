"""The JSON Schema (draft 7) of scenario files, with which editors complete and check keys.

It is made from the declarations that also read scenarios, and marks no valid file as wrong. Only
`agglab check` finds what depends on several keys at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import Field, fields
from typing import Any, TypeAlias

from agglab.testbed import systems
from agglab.testbed.scenario import compare
from agglab.testbed.scenario.job_sweep import JOBS
from agglab.testbed.scenario.metric_names import metrics, regex_of
from agglab.testbed.scenario.reader import SWEEP_VALUES_MAX
from agglab.testbed.scenario.sweep_range import SCALES
from agglab.testbed.schema.expectations import AT, FINDINGS, MAY, OF_FAILURE
from agglab.testbed.schema.fault_kinds import KINDS, FaultEntry
from agglab.testbed.schema.finding_kinds import FINDING_KINDS
from agglab.testbed.schema.key import JOB_NAME, Key, default_of, key_of, yaml_name
from agglab.testbed.schema.kinds import AutoOr, Number, Text, duration
from agglab.testbed.schema.metric import LIST, Metric
from agglab.testbed.schema.network_sections import OF_KIND, Topology
from agglab.testbed.schema.scenario import Scenario, keys, swept_keys

Schema: TypeAlias = "dict[str, Any]"
DRAFT = "http://json-schema.org/draft-07/schema#"
NOT_OF_A_CONTENDER = {*compare.OF_THE_SCENARIO, *compare.FIXED}
EITHER_OR = (("at", "at_chunk"), ("for", "until"))
"""Keys of faults of which an entry has one at most."""
_NUMBER = Number(-1e300, 1e300).json_schema()
_WORD = Text().json_schema()
_WORDS = {"type": "array", "items": _WORD, "minItems": 1, "uniqueItems": True}


def schema() -> Schema:
    """Returns the JSON Schema of a scenario file, as an object that `json` can write. The sections
    and metrics are those of all systems that are installed. A scenario with a system of a user's
    own may have others."""
    every = [systems.find(name) for name in systems.names()]
    described = _described_metrics(every)
    whole = _object({**_section(Scenario), **_systems_sections(every)})
    del whole["additionalProperties"]  # a system of a user's own has a section
    whole["properties"] |= {
        "system": _system(),
        "topology": {**whole["properties"]["topology"], "allOf": _keys_of_topologies()},
        "faults": {"type": "array", "items": {"oneOf": [_fault(kind) for kind in KINDS]}},
        "expect": _expect(described),
        "sweep": _sweep(every),
        "compare": _compare(),
    }
    strict = {
        "propertyNames": {"enum": list(whole["properties"])},
        "properties": {"expect": {"propertyNames": _metric_names(described)}},
    }
    return {
        "$schema": DRAFT,
        "$id": "urn:agglab:scenario",
        "title": "Agglab scenario",
        "description": "An experiment in in-network aggregation; docs/scenarios.md has all keys.",
        "definitions": _expected_kinds(),
        **whole,
        "if": _names_a_system_of_ones_own(),
        "else": strict,
    }


def _object(properties: Mapping[str, Any], **more: Any) -> Schema:
    return {
        "type": "object",
        "properties": dict(properties),
        "additionalProperties": False,
        **more,
    }


def _section(cls: type) -> dict[str, Schema]:
    """Returns the schema of each key of a section. Keys that are read in a way of their own, such
    as `expect`, are left out."""
    return {yaml_name(item): _field(item) for item in fields(cls) if "special" not in item.metadata}


def _field(item: Field[Any]) -> Schema:
    found = key_of(item)
    if found and "many" in item.metadata:
        one = found.kind.json_schema()
        values = {"anyOf": [one, {"type": "array", "items": one}]}
        return {"description": _text(found), **values}
    if found and "map" in item.metadata:
        one = found.kind.json_schema()
        many = {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]}
        value = many if item.metadata["map"] == "many" else one
        about = {"description": _text(found), "minProperties": 1}
        return {**about, "type": "object", "additionalProperties": value}
    if found:
        return {"description": _text(found), **_default(found, item), **found.kind.json_schema()}
    if "section" in item.metadata:
        return _object(_section(item.metadata["section"]))
    return {"type": "array", "items": _object(_section(item.metadata["items"]))}


def _text(found: Key) -> str:
    """Returns the meaning of a key and what is allowed, as plain text."""
    return f"{found.doc}. Allowed: {found.kind.allowed}".replace("`", "")


def _default(found: Key, item: Field[Any]) -> Schema:
    default = default_of(item)
    if default is None and not isinstance(found.kind, AutoOr):
        return {}
    return {"default": found.kind.write(default)}


def _systems_sections(every: Iterable[systems.System]) -> dict[str, Schema]:
    return {each.name: _object(_section(each.options)) for each in every if each.options}


def _system() -> Schema:
    about = next(found for path, found, _ in keys() if path == "system")
    ours = {"anyOf": [{"enum": systems.names()}, _OWN_SYSTEM]}
    return {"description": _text(about), "default": systems.default(), **ours}


_OWN_SYSTEM: Schema = {"type": "string", "pattern": ":"}
"""The name of a system that Agglab does not know by name: `path/to/mine.py:Mine`."""


def _names_a_system_of_ones_own() -> Schema:
    """Returns a schema of the scenarios that name such a system themselves, in `sweep` or in
    `compare`."""
    own = {"properties": {"system": _OWN_SYSTEM}, "required": ["system"]}
    swept = {"properties": {"system": {"contains": _OWN_SYSTEM}}, "required": ["system"]}
    contending = {"not": {"additionalProperties": {"not": own}}}
    inside = {"sweep": swept, "compare": contending}
    below = ({"properties": {key: value}, "required": [key]} for key, value in inside.items())
    return {"anyOf": [own, *below]}


def _keys_of_topologies() -> list[Schema]:
    """Returns for each kind of topology a schema that allows its keys only. A topology without a
    kind is of the default kind."""
    default = default_of(next(item for item in fields(Topology) if item.name == "kind"))
    rules = []
    for kind, names in OF_KIND.items():
        is_this = {"properties": {"kind": {"const": kind}}}
        condition = is_this if kind == default else {**is_this, "required": ["kind"]}
        rules.append({"if": condition, "then": {"propertyNames": {"enum": ["kind", *names]}}})
    return rules


def _fault(name: str) -> Schema:
    kind = KINDS[name]
    every = _section(FaultEntry)
    own = {key: every[key] for key in kind.keys if key != "kind"}
    is_default = name == every["kind"]["default"]
    return _object(
        {"kind": {"const": name, "description": kind.doc.replace("`", "")}, **own},
        title=name,
        required=[*([] if is_default else ["kind"]), kind.target, *kind.needs],
        **{"not": {"anyOf": [{"required": list(pair)} for pair in EITHER_OR]}},
    )


def _described_metrics(every: Iterable[systems.System]) -> dict[str, Metric]:
    """Returns each metric for which an expectation can be stated, by its path. Names in a path are
    `*`."""
    described: dict[str, Metric] = {}
    for each in every:
        for path, metric in metrics(each).items():
            if metric.kind != LIST and (path not in described or not described[path].meaning):
                described[path] = metric
    return described


def _metric_names(described: Mapping[str, Metric]) -> Schema:
    exact = [path for path in described if "*" not in path]
    patterns = [_anchored(path) for path in described if "*" in path]
    of_several_runs = [r"^(ratio|growth)\."]
    return {
        "anyOf": [
            {"enum": ["failure", FINDINGS, *exact]},
            {"pattern": "|".join([*of_several_runs, *patterns])},
        ]
    }


def _expect(described: Mapping[str, Metric]) -> Schema:
    values = {path: _expected(metric) for path, metric in described.items()}
    within_limits = _limits({AT: {"anyOf": [_WORD, _WORDS]}})
    return {
        "type": "object",
        "properties": {
            "failure": _failure(),
            FINDINGS: _findings(),
            **{path: value for path, value in values.items() if "*" not in path},
        },
        "patternProperties": {
            r"^(ratio|growth)\.": {"anyOf": [_NUMBER, within_limits]},
            **{_anchored(path): value for path, value in values.items() if "*" in path},
        },
    }


def _anchored(path: str) -> str:
    return f"^{regex_of(path)}$"


def _expected(metric: Metric) -> Schema:
    """Returns the schema of an expectation of one metric."""
    kind = "measured" if metric.measured else metric.kind
    reference = {"$ref": f"#/definitions/{kind}"}
    if not metric.meaning:
        return reference
    unit = f" ({metric.unit})" if metric.unit else ""
    # Draft 7 ignores what stands beside a `$ref`.
    return {"description": metric.meaning.replace("`", "") + unit, "allOf": [reference]}


def _expected_kinds() -> dict[str, Schema]:
    """Returns the schema of an expectation for each type of metrics."""
    flag: Schema = {"type": "boolean"}
    return {
        "flag": {"anyOf": [flag, _object({"equals": flag})]},
        "text": {"anyOf": [_WORD, _WORDS, _object({"equals": _WORD})]},
        "number": {"anyOf": [_NUMBER, _limits({})]},
        "measured": _limits({}),
    }


def _limits(more: Mapping[str, Schema]) -> Schema:
    limits = dict.fromkeys(("equals", "min", "max"), _NUMBER)
    return _object({**limits, **more}, minProperties=1)


def _findings() -> Schema:
    kinds = {"type": "array", "items": {"enum": list(FINDING_KINDS)}, "minItems": 1}
    return {"anyOf": [kinds, _object({MAY: kinds}, required=[MAY])]}


def _failure() -> Schema:
    values = {**dict.fromkeys(OF_FAILURE, _WORD), "within": duration().json_schema()}
    return _object(values, minProperties=1)


def _sweep(every: Iterable[systems.System]) -> Schema:
    sections = {each.name: each.options for each in every if each.options}
    axes = {path: _axis(key.kind.json_schema()) for path, key in swept_keys(sections).items()}
    axes["system"] = _axis(_system())
    return _object({**axes, JOBS: _axis({})}, minProperties=1)


def _axis(value: Schema) -> Schema:
    values = {"type": "array", "items": value, "minItems": 1, "maxItems": SWEEP_VALUES_MAX}
    number = {"type": ["string", "number"]}
    ends = {"from": number, "to": number, "step": number, "count": {"type": "integer"}}
    between = _object({**ends, "scale": {"enum": list(SCALES)}}, required=["from", "to"])
    return {"anyOf": [values, between]}


def _compare() -> Schema:
    """Returns the schema of contenders, each of which has keys of the scenario."""
    refused = [key for key in NOT_OF_A_CONTENDER if "." not in key]
    names = {"pattern": f"^(?:{JOB_NAME.pattern})$", "not": {"enum": list(compare.FOLDERS)}}
    contender = {"allOf": [{"$ref": "#"}, {"propertyNames": {"not": {"enum": sorted(refused)}}}]}
    return {
        "type": "object",
        "propertyNames": names,
        "additionalProperties": contender,
        "minProperties": 2,
        "maxProperties": compare.CONTENDERS_MAX,
    }
