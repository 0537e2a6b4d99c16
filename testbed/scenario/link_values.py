"""Finds which links a pattern matches, and which value of `links` each of their directions has."""

from __future__ import annotations

from dataclasses import fields
from fnmatch import fnmatchcase
from typing import Any

from agglab.testbed.schema.key import yaml_name
from agglab.testbed.schema.scenario import LinkOverride, Links
from agglab.testbed.schema.trust import EVERYTHING, Trust

FIELDS = {yaml_name(item): item.name for item in fields(LinkOverride)}


def matches(pattern: str | None, link: str, direction: str) -> bool:
    """Returns whether the pattern matches. A pattern with '->' is compared with directions. Any
    other pattern is compared with links, and so matches both directions."""
    return pattern is not None and fnmatchcase(direction if "->" in pattern else link, pattern)


def stated(
    links: Links, key: str, link: str, direction: str, trust: Trust = EVERYTHING
) -> tuple[str, Any]:
    """Returns the path that states a direction's value of a key, and the value. The path is that of
    the last override that states the value or, if there is none, the section itself. The value is
    None if it was not read without error."""
    found = f"links.{key}", getattr(links, FIELDS[key]) if trust(f"links.{key}") else None
    for i, override in enumerate(links.overrides):
        path = f"links.overrides[{i}]"
        if not (trust(f"{path}.match") and matches(override.match, link, direction)):
            continue
        if not trust(f"{path}.{key}"):
            found = f"{path}.{key}", None
        elif (own := getattr(override, FIELDS[key])) is not None:
            found = f"{path}.{key}", own
    return found
