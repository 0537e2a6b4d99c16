"""Makes scapy layers of a compiled P4 program: a Python module with a class for each header, whose
layers follow one another as in the program's parser."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from pprint import pformat
from typing import Any

RUNTIME = Path(__file__).with_name("scapy_runtime.py")
IMPORTS = """\
from scapy.fields import BitField, StrLenField
from scapy.packet import bind_bottom_up, bind_top_down"""
Description = Mapping[str, Any]


def layers(program: Description, name: str) -> str:
    """Returns the text of the module. Its function `decode` reads a frame, and its classes can be
    put together with `/`.

    program: the contents of BMv2 JSON. name: of the program, for the module's description.
    """
    runtime = RUNTIME.read_text(encoding="utf-8").partition('"""\n\n')[2]
    future, _, rest = runtime.partition("\n\n")
    about = f"Scapy layers of the P4 program {name!a}, made by Agglab from its parser."
    parts = [
        f'"""{about}"""',
        f"{future}\n\n{IMPORTS}\n{rest.strip()}",
        *_classes(program),
        f"PROGRAM.update({pformat(_parser(program), width=99, sort_dicts=False)})",
        "\n".join(_bindings(program)),
    ]
    return "\n\n\n".join(part for part in parts if part) + "\n"


def class_name(origin: str) -> str:
    """Returns the name of the class of a header: an identifier of Python, whatever the JSON
    says."""
    name = re.sub(r"\W", "_", origin)
    name = name if name.isidentifier() else f"_{name}"
    return f"{name}_" if keyword.iskeyword(name) else name


def _origins(program: Description) -> dict[str, str]:
    """Returns the header type of each header, stack and member of a union that a parser may take,
    by the name that the parser has for it. An element of a stack counts as the stack."""
    types = {each["name"]: each["header_type"] for each in program["headers"]}
    numbers = {each["id"]: each["header_type"] for each in program["headers"]}
    stacks = {each["name"]: numbers[each["header_ids"][0]] for each in program["header_stacks"]}
    members = dict(_members(program, types))
    metadata = {each["name"] for each in program["headers"] if each["metadata"]}
    plain = {name: kind for name, kind in types.items() if name not in metadata and "[" not in name}
    return plain | stacks | members


def _members(program: Description, types: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yields the members of stacks of unions, such as `options.padding`."""
    for stack in program.get("header_union_stacks", ()):
        pattern = re.compile(rf"{re.escape(stack['name'])}\[0\]\.(\w+)")
        for name, kind in types.items():
            if match := pattern.fullmatch(name):
                yield f"{stack['name']}.{match[1]}", kind


def _classes(program: Description) -> Iterator[str]:
    fields = {each["name"]: each["fields"] for each in program["header_types"]}
    for origin, kind in _origins(program).items():
        rows = "".join(f"        {_field(*each)},\n" for each in fields[kind])
        listed = f"[\n{rows}    ]" if rows else "[]"
        yield (
            f"class {class_name(origin)}(Header):\n"
            f"    name = origin = {origin!r}\n"
            f"    fields_desc = {listed}\n\n\n"
            f"LAYERS[{origin!r}] = {class_name(origin)}"
        )


def _field(name: str, bits: int | str, *_: Any) -> str:
    if bits == "*":
        return f'StrLenField({name!r}, b"", length_from=lambda p: p.variable_bytes())'
    return f"BitField({name!r}, 0, {int(bits)})"


def _parser(program: Description) -> dict[str, Any]:
    """Returns the parser in the form that the runtime takes."""
    parser = program["parsers"][0]
    widths = _widths(program)
    return {
        "first": parser["init_state"],
        "states": {state["name"]: _state(state, widths) for state in parser["parse_states"]},
    }


def _widths(program: Description) -> dict[tuple[str, str], int]:
    """Returns the width of each field of each header in bits. A stack has its elements' fields."""
    fields = {each["name"]: each["fields"] for each in program["header_types"]}
    kinds = _origins(program) | {each["name"]: each["header_type"] for each in program["headers"]}
    return {
        (name, field[0]): field[1]
        for name, kind in kinds.items()
        for field in fields[kind]
        if field[1] != "*"
    }


def _state(state: Mapping[str, Any], widths: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    ops = [{"op": each["op"], "parameters": each["parameters"]} for each in state["parser_ops"]]
    keys = [(key, _bits(key, widths)) for key in state["transition_key"]]
    return {"ops": ops, "keys": keys, "transitions": [*_transitions(state, keys)]}


def _bits(key: Mapping[str, Any], widths: Mapping[tuple[str, str], int]) -> int:
    if key["type"] == "lookahead":
        return int(key["value"][1])
    return widths.get(tuple(key["value"]), 0)


def _transitions(state: Mapping[str, Any], keys: list[Any]) -> Iterator[tuple[Any, ...]]:
    """Yields (value, mask, next state) of each transition, up to one that only a control plane
    knows. The value is None if any fits."""
    all_ones = (1 << sum((bits + 7) // 8 * 8 for _, bits in keys)) - 1
    for each in state["transitions"]:
        if each["type"] == "default":
            yield None, 0, each["next_state"]
        elif each["type"] == "hexstr":
            mask = int(each["mask"], 16) if each["mask"] else all_ones
            yield int(each["value"], 16), mask, each["next_state"]
        else:
            return


def _bindings(program: Description) -> Iterator[str]:
    """Yields what `/` fills in: a header's only key, if a state with one header leads by it
    straight to another such state."""
    parser = program["parsers"][0]
    states = {state["name"]: state for state in parser["parse_states"]}
    known = _origins(program)
    for state in states.values():
        below, keys = _only(state), state["transition_key"]
        for each in state["transitions"] if len(keys) == 1 else ():
            above = _only(states.get(each["next_state"], {}))
            is_plain = each["type"] == "hexstr" and not each["mask"] and keys[0]["type"] == "field"
            if is_plain and below in known and above in known and keys[0]["value"][0] == below:
                field = keys[0]["value"][1]
                value = f"**{{{field!r}: {int(each['value'], 16)}}}"
                yield f"bind_bottom_up({class_name(below)}, {class_name(above)}, {value})"
                yield f"bind_top_down({class_name(below)}, {class_name(above)}, {value})"


def _only(state: Mapping[str, Any]) -> str:
    """Returns the name of the header that a state takes, if it does nothing else."""
    ops = state.get("parser_ops", ())
    is_one = len(ops) == 1 and ops[0]["op"] == "extract"
    return str(ops[0]["parameters"][0]["value"]) if is_one else ""
