"""Finds parsers that can go round for ever. Agglab's switch ends such a parser with an error and
goes on, but other switches hang, so no program that has one is right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def circle(description: Mapping[str, Any]) -> list[str]:
    """Returns the states of a parser that follow one another in a circle without taking a byte off
    the packet; empty if there is no such circle. description: the program's BMv2 JSON."""
    widths = _widths(description)
    for parser in description["parsers"]:
        following = {
            state["name"]: [each["next_state"] or "" for each in state["transitions"]]
            for state in parser["parse_states"]
            if not any(_takes_bits(operation, widths) for operation in state["parser_ops"])
        }
        for start in following:
            if way := _back_to(start, following):
                return way
    return []


def _widths(description: Mapping[str, Any]) -> dict[str, int]:
    """Returns how many bits each header has at least: those of its fields with a fixed width."""
    types = {
        each["name"]: sum(field[1] for field in each["fields"] if field[1] != "*")
        for each in description["header_types"]
    }
    return {header["name"]: types[header["header_type"]] for header in description["headers"]}


def _takes_bits(operation: Mapping[str, Any], widths: Mapping[str, int]) -> bool:
    """Returns whether an operation takes something off every packet, so that it can be repeated
    only until the packet's end. A packet may say that it is to be advanced by 0."""
    given = operation["parameters"][:1]
    kind, value = (given[0].get("type"), given[0].get("value")) if given else ("", "")
    if operation["op"] in ("extract", "extract_VL"):
        return kind != "regular" or widths[value] > 0
    if operation["op"] == "advance":
        return bool(kind == "hexstr" and int(value, 16) > 0)
    return bool(operation["op"] == "shift")


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
