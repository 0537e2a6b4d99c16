"""Reads calculations: hashes over fields, constants, headers and the payload."""

from __future__ import annotations

from p4native.switch.bmv2_json.scope import Scope, claim
from p4native.switch.model import Calculation, CalculationInput
from p4native.switch.node import Node
from p4native.switch.storage import Header

MAX_KEY_BITS = 16384
ALGORITHMS = {
    *("crc16", "crc32", "crcCCITT", "csum16", "cksum16", "xor16", "xor32", "identity"),
    *("crc8_custom", "crc16_custom", "crc32_custom", "crc64_custom"),
}
MAX_INPUTS = 4096
MAX_INPUT_BITS = 1 << 19


def packet_header(node: Node, scope: Scope) -> Header:
    """Returns the header that `node` names, which must not be metadata."""
    header = scope.header(node)
    if header.metadata:
        raise node.error(f"'{header.name}' is metadata and not a packet header")
    return header


def read_calculations(root: Node, scope: Scope) -> None:
    for node in root.list("calculations"):
        read_calculation(node, node["name"].text(), scope)


def read_calculation(node: Node, name: str, scope: Scope) -> Calculation:
    """Reads one calculation, or the selector of an action profile, which has no name of its own."""
    algorithm = node["algo"].text()
    if algorithm not in ALGORITHMS:
        raise node["algo"].error(f"algorithm '{algorithm}' is not supported")
    inputs = tuple(read_input(n, scope) for n in node["input"].elements())
    if len(inputs) > MAX_INPUTS or sum(map(input_bits, inputs)) > MAX_INPUT_BITS:
        raise node["input"].error(f"has more than {MAX_INPUT_BITS // 8} bytes")
    calculation = Calculation(name, len(scope.calculations), algorithm, inputs)
    claim(scope.calculations, node, name, calculation)
    return calculation


def input_bits(item: CalculationInput) -> int:
    """Returns the largest number of bits that an input other than the payload can have."""
    if item.kind == "header" and item.header:
        return item.header.type.max_bits
    return item.field.bits if item.field else max(item.bits, 1)


def read_input(node: Node, scope: Scope) -> CalculationInput:
    kind = node["type"].text()
    if kind == "field":
        header_node, field_node = node["value"].elements(2)
        header = scope.header(header_node)
        return CalculationInput("field", header, scope.field_of(field_node, header.type))
    if kind == "hexstr":
        bits = node["bitwidth"].integer(1, MAX_KEY_BITS)
        value = node["value"].hex_integer()
        if not 0 <= value < 1 << bits:
            raise node["value"].error(f"does not fit {bits} bits")
        return CalculationInput("constant", value=value, bits=bits)
    if kind == "header":
        return CalculationInput("header", packet_header(node["value"], scope))
    if kind == "payload":
        return CalculationInput("payload")
    raise node["type"].error("must be field, hexstr, header or payload")
