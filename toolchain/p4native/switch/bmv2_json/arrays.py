"""Reads registers, counters, meters, learn lists and value sets."""

from __future__ import annotations

from p4native.switch.bmv2_json.scope import Scope, claim
from p4native.switch.expression import FieldOf, HeaderRef
from p4native.switch.model import Counter, LearnList, Meter, ValueSet
from p4native.switch.node import Node
from p4native.switch.storage import Register

MAX_CELLS = 2**28
MAX_REGISTER_BITS = 16384
MAX_SAMPLE_BYTES = 16384
METER_RATES = 2


def read_arrays(root: Node, scope: Scope) -> None:
    """Reads registers, counters and meters. Direct counters and meters are numbered separately,
    because they belong to a table."""
    for node in root.list("register_arrays"):
        register = Register(
            node["name"].text(),
            len(scope.registers),
            node["id"].integer(0, 2**31 - 1),
            node["size"].integer(0, MAX_CELLS),
            node["bitwidth"].integer(1, MAX_REGISTER_BITS),
        )
        claim(scope.registers, node, register.name, register)
    for node in root.list("counter_arrays"):
        name, number = node["name"].text(), node["id"].integer(0, 2**31 - 1)
        if node.flag("is_direct"):
            table = node["binding"].text()
            direct = Counter(name, len(scope.direct_counters), number, 0, table)
            claim(scope.direct_counters, node, name, direct)
        else:
            size = node["size"].integer(0, MAX_CELLS)
            claim(scope.counters, node, name, Counter(name, len(scope.counters), number, size))
    for node in root.list("meter_arrays"):
        read_meter(node, scope)


def read_meter(node: Node, scope: Scope) -> None:
    name, number = node["name"].text(), node["id"].integer(0, 2**31 - 1)
    if node["rate_count"].integer(0, 2**31) != METER_RATES:
        raise node["rate_count"].error(f"must be {METER_RATES}")
    kind = node["type"].text()
    if kind not in ("packets", "bytes"):
        raise node["type"].error("must be packets or bytes")
    if not node.flag("is_direct"):
        size = node["size"].integer(0, MAX_CELLS)
        meter = Meter(name, len(scope.meters), number, size, kind == "bytes")
        claim(scope.meters, node, name, meter)
        return
    target = node["result_target"]
    header, field = scope.field(target)
    if field.variable:
        raise target.error("must be a field of fixed width")
    place = FieldOf(target.path, HeaderRef(target.path, header), field)
    index, table = len(scope.direct_meters), node["binding"].text()
    direct = Meter(name, index, number, 0, kind == "bytes", table, place)
    claim(scope.direct_meters, node, name, direct)


def read_learn_lists(root: Node, scope: Scope) -> None:
    """Reads the fields of each digest. Actions refer to a digest by its id."""
    for node in root.list("learn_lists"):
        number = node["id"].integer(1, 2**31 - 1)
        fields = []
        for item in node["elements"].elements():
            if item["type"].text() != "field":
                raise item["type"].error("must be 'field'")
            header, field = scope.field(item["value"])
            if field.variable:
                raise item["value"].error("a field of variable width cannot be in a digest")
            fields.append((header, field))
        if sum(f.bytes for _, f in fields) > MAX_SAMPLE_BYTES:
            raise node["elements"].error(f"has more than {MAX_SAMPLE_BYTES} bytes")
        if number in scope.learn_lists:
            raise node["id"].error(f"id {number} exists twice")
        index = len(scope.learn_lists)
        scope.learn_lists[number] = LearnList(node["name"].text(), index, number, tuple(fields))


def read_value_sets(root: Node, scope: Scope) -> None:
    """Reads the parser's value sets. The fields that are compared with a value set become known
    only when the states of the parser are read."""
    for node in root.list("parse_vsets"):
        size = node.get("max_size")
        limit = size.integer(0, 2**31 - 1) if size else None
        name = node["name"].text()
        claim(scope.value_sets, node, name, ValueSet(name, len(scope.value_sets), limit))
