"""Provides `key`, which declares from which YAML key a field of a dataclass is read."""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass, field
from typing import Any

from agglab.testbed.schema.kinds import Kind, Text

JOB_NAME = Text(
    "a name of letters, digits and '_' that starts with a letter", r"[A-Za-z][A-Za-z0-9_]*", 32
)


@dataclass(frozen=True)
class Key:
    """One key of a section of the scenario."""

    name: str
    kind: Kind
    doc: str


def key(name: str, kind: Kind, default: Any, doc: str) -> Any:
    """Returns a dataclass field that is read from the YAML key `name`. default: a value that was
    already read, not text, or a function that returns one."""
    metadata = {"key": Key(name, kind, doc)}
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


def keys_list(name: str, kind: Kind, doc: str, default: tuple[Any, ...] = ()) -> Any:
    """Returns a dataclass field that is read from a YAML list of values, or from a single value."""
    return field(default=default, metadata={"key": Key(name, kind, doc), "many": True})


def keys_map(name: str, kind: Kind, doc: str, many: bool = False) -> Any:
    """Returns a dataclass field that is read from a YAML mapping with any keys. many: whether each
    value is a list of values, or a single value that stands for one."""
    metadata = {"key": Key(name, kind, doc), "map": "many" if many else "one"}
    return field(default_factory=dict, metadata=metadata)


def key_of(item: Field[Any]) -> Key | None:
    found = item.metadata.get("key")
    assert found is None or isinstance(found, Key)
    return found


def default_of(item: Field[Any]) -> Any:
    """Returns the value that a field has if the file does not state it."""
    return item.default if item.default_factory is MISSING else item.default_factory()


def yaml_name(item: Field[Any]) -> str:
    """Returns the YAML key of a dataclass field."""
    found = key_of(item)
    return found.name if found else item.name
