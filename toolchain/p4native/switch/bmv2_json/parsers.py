"""Reads parsers, deparsers, checksums and field lists."""

from __future__ import annotations

from p4native.switch.bmv2_json.actions import read_primitive
from p4native.switch.bmv2_json.calculations import packet_header
from p4native.switch.bmv2_json.expressions import Reader, member_of
from p4native.switch.bmv2_json.headers import MAX_HEADERS_BYTES
from p4native.switch.bmv2_json.scope import Scope, claim
from p4native.switch.expression import Const, Data, FieldOf, Lookahead
from p4native.switch.model import (
    Checksum,
    Deparser,
    FieldList,
    Parser,
    ParserOp,
    State,
    Transition,
    ValueSet,
)
from p4native.switch.node import Node
from p4native.switch.storage import HeaderType


def read_parser(node: Node, scope: Scope) -> Parser:
    """Reads a parser. Its states may refer to each other in any order."""
    states: dict[str, State] = {}
    nodes = node["parse_states"].elements()
    names = {n["name"].text() for n in nodes}
    for state_node in nodes:
        state = StateReader(scope, names).read(state_node)
        claim(states, state_node, state.name, state)
    first = node.get("init_state")
    return Parser(next_state(first, names) if first else None, states)


def next_state(node: Node | None, names: set[str]) -> str | None:
    if node is None:
        return None
    if node.text() not in names:
        raise node.error(f"no parser state is called '{node.text()}'")
    return node.text()


class StateReader:
    """A reader of parser states."""

    def __init__(self, scope: Scope, names: set[str]) -> None:
        self.scope = scope
        self.names = names
        self.reader = Reader(scope, in_parser=True)

    def read(self, node: Node) -> State:
        ops = tuple(self.read_op(n) for n in node.list("parser_ops"))
        key = tuple(self.reader.data(n) for n in node.list("transition_key"))
        bits = tuple(key_bits(k, n) for k, n in zip(key, node.list("transition_key"), strict=True))
        transitions: list[Transition] = []
        default: str | None = None
        for item in node.list("transitions"):
            kind = transition_kind(item)
            following = next_state(item.get("next_state"), self.names)
            if kind == "default":
                default = following
            elif key:
                transitions.append(self.read_transition(item, kind, bits, following))
        name = node["name"].text()
        return State(name, ops, key, bits, tuple(transitions), default, node.source())

    def read_transition(
        self, node: Node, kind: str, bits: tuple[int, ...], following: str | None
    ) -> Transition:
        length = sum((b + 7) // 8 for b in bits)
        mask = node.get("mask")
        if kind == "parse_vset":
            value_set = self.read_value_set(node["value"], bits)
            return Transition(None, mask.hex_bytes(length) if mask else None, following, value_set)
        value = node["value"].hex_bytes(length)
        return Transition(value, mask.hex_bytes(length) if mask else None, following)

    def read_value_set(self, node: Node, bits: tuple[int, ...]) -> ValueSet:
        value_set = self.scope.find(node, "value set", self.scope.value_sets)
        if value_set.bits not in ((), bits):
            raise node.error(f"'{value_set.name}' is compared with other widths elsewhere")
        value_set.bits = bits
        return value_set

    def read_op(self, node: Node) -> ParserOp:
        op = node["op"].text()
        readers = {
            "extract": self.read_extract,
            "extract_VL": self.read_extract_variable,
            "set": self.read_set,
            "verify": self.read_verify,
            "shift": self.read_shift,
            "advance": self.read_advance,
            "primitive": self.read_primitive,
        }
        if op not in readers:
            raise node["op"].error(f"'{op}' is not an operation of parsers")
        return readers[op](node)

    def target(self, node: Node) -> tuple[ParserOp, HeaderType]:
        kind = node["type"].text()
        value = node["value"]
        op = ParserOp("extract", node.path)
        if kind == "regular":
            header = self.scope.header(value)
            op.target = header
            if header.metadata:
                raise value.error("metadata cannot be extracted")
            return op, header.type
        if kind == "stack":
            stack = self.scope.stack(value)
            op.target = stack
            return op, stack.type
        if kind == "union_stack":
            stack_node, member_node = value.elements(2)
            union_stack = self.scope.union_stack(stack_node)
            member = member_of(union_stack.unions[0], member_node)
            op.target = (union_stack, member)
            return op, union_stack.unions[0].headers[member].type
        raise node["type"].error("must be regular, stack or union_stack")

    def read_extract(self, node: Node) -> ParserOp:
        (target,) = node["parameters"].elements(1)
        op, header_type = self.target(target)
        if header_type.variable:
            raise node.error("a header of variable length needs the operation 'extract_VL'")
        return op

    def read_extract_variable(self, node: Node) -> ParserOp:
        target, length = node["parameters"].elements(2)
        op, header_type = self.target(target)
        if not header_type.variable:
            raise node.error("'extract_VL' needs a header of variable length")
        op.length = self.reader.data(length)
        return op

    def read_set(self, node: Node) -> ParserOp:
        target, value = node["parameters"].elements(2)
        destination = self.reader.lvalue(target)
        return ParserOp("set", node.path, destination=destination, value=self.reader.data(value))

    def read_verify(self, node: Node) -> ParserOp:
        condition, error = node["parameters"].elements(2)
        if isinstance(error.value, int):
            code: Data = Const(error.path, error.integer(0, 2**31 - 1))
        else:
            code = self.reader.data(error)
        checked = self.reader.boolean(condition)
        return ParserOp("verify", node.path, condition=checked, value=code)

    def read_shift(self, node: Node) -> ParserOp:
        (amount,) = node["parameters"].elements(1)
        bits = 8 * amount.integer(0, 2**16)
        return ParserOp("advance", node.path, value=Const(amount.path, bits))

    def read_advance(self, node: Node) -> ParserOp:
        (amount,) = node["parameters"].elements(1)
        return ParserOp("advance", node.path, value=self.reader.data(amount))

    def read_primitive(self, node: Node) -> ParserOp:
        (call,) = node["parameters"].elements(1)
        primitive = read_primitive(call, self.reader)
        if primitive.op in ("_jump", "_jump_if_zero"):
            raise call.error("a parser has nothing to jump to")
        return ParserOp("primitive", node.path, primitive=primitive)


def key_bits(key: Data, node: Node) -> int:
    """Returns the width of one field of a transition key."""
    if isinstance(key, Lookahead):
        return key.bits
    if isinstance(key, FieldOf):
        return key.field.bits if key.field else 1
    raise node.error("must be a field or a lookahead")


def transition_kind(node: Node) -> str:
    kind = node.get("type")
    value = node.get("value")
    text = kind.text() if kind else "hexstr"
    if text == "hexstr" and (value is None or value.value == "default"):
        return "default"
    if text not in ("default", "hexstr", "parse_vset"):
        raise node["type"].error("must be default, hexstr or parse_vset")
    return text


def read_deparser(node: Node, scope: Scope) -> Deparser:
    headers = tuple(packet_header(n, scope) for n in node["order"].elements())
    if sum(h.type.max_bits // 8 for h in headers) > MAX_HEADERS_BYTES:
        raise node["order"].error(f"has more than {MAX_HEADERS_BYTES} bytes")
    reader = Reader(scope)
    primitives = []
    for item in node.list("primitives"):
        primitive = read_primitive(item, reader)
        if primitive.op in ("_jump", "_jump_if_zero"):
            raise item.error("a deparser has nothing to jump to")
        primitives.append(primitive)
    return Deparser(headers, tuple(primitives))


def read_checksums(root: Node, scope: Scope) -> list[Checksum]:
    found = []
    for node in root.list("checksums"):
        if node["type"].text() != "generic":
            raise node["type"].error("must be 'generic'")
        header, field = scope.field(node["target"])
        calculation = scope.find(node["calculation"], "calculation", scope.calculations)
        condition = node.get("if_cond")
        found.append(
            Checksum(
                node["name"].text(),
                header,
                field,
                calculation,
                Reader(scope).boolean(condition) if condition else None,
                node.flag("update", True),
                node.flag("verify", True),
            )
        )
        if field.variable:
            raise node["target"].error("must be a field of fixed width")
    return found


def read_field_lists(root: Node, scope: Scope) -> None:
    for node in root.list("field_lists"):
        number = node["id"].integer(0, 2**31 - 1)
        fields = []
        for item in node["elements"].elements():
            kind = item["type"].text()
            if kind == "field":
                fields.append(scope.field(item["value"]))
            elif kind != "hexstr":
                raise item["type"].error("must be field or hexstr")
        if number in scope.field_lists:
            raise node["id"].error(f"id {number} exists twice")
        scope.field_lists[number] = FieldList(number, tuple(fields))
