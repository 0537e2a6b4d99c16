"""Finds parsers that can go round for ever. Agglab's switch ends such a parser with an error and
goes on, but other switches hang, so no program that has one is right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CONSUMING = ("extract", "extract_VL", "advance", "shift")
"""The operations of BMv2 JSON that take bytes off the packet, which end at its end."""


def circle(description: Mapping[str, Any]) -> list[str]:
    """Returns the states of a parser that follow one another in a circle without taking a byte off
    the packet; empty if there is no such circle. description: the program's BMv2 JSON."""
    for parser in description["parsers"]:
        following = {
            state["name"]: [each["next_state"] or "" for each in state["transitions"]]
            for state in parser["parse_states"]
            if not any(operation["op"] in CONSUMING for operation in state["parser_ops"])
        }
        for start in following:
            if way := _back_to(start, following):
                return way
    return []


def _back_to(start: str, following: Mapping[str, list[str]]) -> list[str]:
    """Returns the shortest way from a state back to it; empty if there is none."""
    ways, seen = [[start]], {start}
    while ways:
        way = ways.pop(0)
        for state in following[way[-1]]:
            if state == start:
                return way
            if state in following and state not in seen:
                seen.add(state)
                ways.append([*way, state])
    return []
