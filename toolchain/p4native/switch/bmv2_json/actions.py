"""Reads actions and their primitives. Primitives with different names and the same meaning are read
as one (see SPELLINGS)."""

from __future__ import annotations

from collections.abc import Callable

from p4native.switch.bmv2_json.expressions import Reader, header_type_of, sample_union
from p4native.switch.bmv2_json.scope import Scope, claim_id
from p4native.switch.expression import (
    Arithmetic,
    Const,
    Data,
    Expression,
    FieldOf,
    HeaderRef,
    StackRef,
    UnionStackRef,
)
from p4native.switch.model import Action, Argument, LearnList, Param, Primitive
from p4native.switch.node import Node

MAX_PARAM_BITS = 16384
MAX_ARGS_BYTES = 65535


def read_any_stack(reader: Reader, node: Node) -> Expression:
    found = reader.read(node)
    if not isinstance(found, StackRef | UnionStackRef):
        raise node.error("must be a header stack")
    return found


def read_string(_reader: Reader, node: Node) -> str:
    if node["type"].text() != "string":
        raise node["type"].error("must be 'string'")
    return node["value"].text()


def named(what: str, kind: str, table: str) -> Callable[[Reader, Node], Argument]:
    """Returns a reader of {"type": kind, "value": name}. The name must be one of those in
    scope.<table>."""

    def read(reader: Reader, node: Node) -> Argument:
        if node["type"].text() != kind:
            raise node["type"].error(f"must be '{kind}'")
        found: Argument = reader.scope.find(node["value"], what, getattr(reader.scope, table))
        return found

    return read


def ignore(_reader: Reader, _node: Node) -> str:
    return ""


def read_vector(reader: Reader, node: Node) -> Argument:
    """Returns the values that log_msg prints, with None for a value that is not a number. p4c
    writes `{}` where there are no values."""
    if node["type"].text() != "parameters_vector":
        raise node["type"].error("must be 'parameters_vector'")
    if node["value"].value == {}:
        return ()
    found = [reader.read(item) for item in node["value"].elements()]
    return tuple(v if isinstance(v, Data) else None for v in found)


def read_target_field(reader: Reader, node: Node) -> Argument:
    found = reader.lvalue(node)
    if not isinstance(found, FieldOf):
        raise node.error("must be a field")
    return found


def read_learn_list(reader: Reader, node: Node) -> LearnList:
    number = reader.data(node)
    if not isinstance(number, Const) or number.value not in reader.scope.learn_lists:
        raise node.error("must be the id of a learn list")
    return reader.scope.learn_lists[number.value]


COUNTER = named("counter", "counter_array", "counters")
REGISTER = named("register", "register_array", "registers")
METER = named("meter", "meter_array", "meters")
CALCULATION = named("calculation", "calculation", "calculations")

SIGNATURES: dict[str, tuple[Callable[[Reader, Node], Argument], ...]] = {
    "assign": (Reader.lvalue, Reader.data),
    "assign_VL": (Reader.variable_field, Reader.variable_field),
    "assign_header": (Reader.changed_header, Reader.header),
    "assign_union": (Reader.union, Reader.union),
    "assign_header_stack": (read_any_stack, read_any_stack),
    "assign_union_stack": (read_any_stack, read_any_stack),
    "push": (read_any_stack, Reader.data),
    "pop": (read_any_stack, Reader.data),
    "_jump": (Reader.data,),
    "_jump_if_zero": (Reader.data, Reader.data),
    "exit": (),
    "assert": (Reader.data,),
    "assume": (Reader.data,),
    "log_msg": (read_string, read_vector),
    "modify_field_rng_uniform": (Reader.lvalue, Reader.data, Reader.data),
    "drop": (),
    "mark_to_drop": (Reader.changed_header,),
    "add_header": (Reader.changed_header,),
    "add_header_fast": (Reader.changed_header,),
    "remove_header": (Reader.changed_header,),
    "clone_ingress_pkt_to_egress": (Reader.data, Reader.data),
    "clone_egress_pkt_to_egress": (Reader.data, Reader.data),
    "resubmit": (Reader.data,),
    "recirculate": (Reader.data,),
    "modify_field_with_hash_based_offset": (Reader.lvalue, Reader.data, CALCULATION, Reader.data),
    "no_op": (),
    "count": (COUNTER, Reader.data),
    "register_read": (read_target_field, REGISTER, Reader.data),
    "register_write": (REGISTER, Reader.data, Reader.data),
    "truncate": (Reader.data,),
    "execute_meter": (METER, Reader.data, read_target_field),
    "generate_digest": (ignore, read_learn_list),
}

# P4_14 spellings of an assignment: name -> (operator, whether the target is the left operand).
SPELLINGS: dict[str, tuple[str, bool]] = {
    "add_to_field": ("+", True),
    "subtract_from_field": ("-", True),
    "add": ("+", False),
    "subtract": ("-", False),
    "bit_and": ("&", False),
    "bit_or": ("|", False),
    "bit_xor": ("^", False),
    "shift_left": ("<<", False),
    "shift_right": (">>", False),
}
SYNONYMS = {"modify_field": "assign", "copy_header": "assign_header"}


def read_actions(root: Node, scope: Scope) -> list[Action]:
    """Reads all actions, in the JSON's order, and adds them to the scope by their ids."""
    actions: list[Action] = []
    seen: set[int] = set()
    for node in root.list("actions"):
        params = tuple(read_param(n) for n in node.list("runtime_data"))
        number = claim_id(seen, node)
        action = Action(node["name"].text(), len(actions), number, params)
        if action.args_bytes > MAX_ARGS_BYTES:
            raise node["runtime_data"].error(f"has more than {MAX_ARGS_BYTES} bytes")
        reader = Reader(scope, params)
        nodes = node.list("primitives")
        action.primitives = tuple(read_primitive(n, reader) for n in nodes)
        check_jumps(action.primitives, nodes)
        scope.actions[number] = action
        actions.append(action)
    return actions


def read_param(node: Node) -> Param:
    return Param(node["name"].text(), node["bitwidth"].integer(1, MAX_PARAM_BITS))


def read_primitive(node: Node, reader: Reader) -> Primitive:
    op = node["op"].text()
    args = node.list("parameters")
    if op in SPELLINGS:
        return read_spelling(node, reader, *SPELLINGS[op], args)
    op = SYNONYMS.get(op, op)
    signature = SIGNATURES.get(op)
    if signature is None:
        raise node["op"].error(f"'{op}' is not a primitive of this switch")
    check_count(node, args, len(signature))
    read = tuple(r(reader, n) for r, n in zip(signature, args, strict=True))
    primitive = Primitive(op, read, node.path, node.source())
    check_types(primitive, node)
    return primitive


def check_count(node: Node, args: list[Node], count: int) -> None:
    if len(args) != count:
        raise node.error(f"'{node['op'].value}' has {count} parameters, not {len(args)}")


def read_spelling(
    node: Node, reader: Reader, operator: str, in_place: bool, args: list[Node]
) -> Primitive:
    check_count(node, args, 2 if in_place else 3)
    target = reader.lvalue(args[0])
    left: Data = target if in_place else reader.data(args[1])
    value = Arithmetic(node.path, operator, left, reader.data(args[-1]))
    return Primitive("assign", (target, value), node.path, node.source())


def check_types(primitive: Primitive, node: Node) -> None:
    """Checks those rules about a primitive's arguments that do not follow from the kinds of the
    arguments."""
    args = primitive.args
    if primitive.op == "assign_header":
        left, right = header_type_of(args[0]), header_type_of(args[1])  # type: ignore[arg-type]
        if left is not right:
            raise node.error(f"'{right.name}' cannot be assigned to '{left.name}'")
    elif primitive.op == "assign_union":
        check_unions(args, node)
    elif primitive.op in ("assign_header_stack", "assign_union_stack"):
        check_stacks(primitive, node)
    elif primitive.op == "mark_to_drop":
        header = args[0]
        if not isinstance(header, HeaderRef) or header.header.type.field("egress_spec") is None:
            raise node.error("needs a header with a field 'egress_spec'")


def check_unions(args: tuple[Argument, ...], node: Node) -> None:
    left, right = (sample_union(a) for a in args)  # type: ignore[arg-type]
    if [h.type for h in left.headers] != [h.type for h in right.headers]:
        raise node.error("the unions must have the same type")


def check_stacks(primitive: Primitive, node: Node) -> None:
    left, right = primitive.args
    if primitive.op == "assign_header_stack":
        if not isinstance(left, StackRef) or not isinstance(right, StackRef):
            raise node.error("needs two header stacks")
        same = left.stack.type is right.stack.type
        sizes = len(left.stack.headers), len(right.stack.headers)
    else:
        if not isinstance(left, UnionStackRef) or not isinstance(right, UnionStackRef):
            raise node.error("needs two header union stacks")
        first, second = left.stack.unions[0], right.stack.unions[0]
        same = [h.type for h in first.headers] == [h.type for h in second.headers]
        sizes = len(left.stack.unions), len(right.stack.unions)
    if not same or sizes[0] != sizes[1]:
        raise node.error("the stacks must have the same type and size")


def check_jumps(primitives: tuple[Primitive, ...], nodes: list[Node]) -> None:
    """Checks that each jump leads to a primitive of the same action or to the action's end."""
    for i, primitive in enumerate(primitives):
        if primitive.op in ("_jump", "_jump_if_zero"):
            target = primitive.args[-1]
            if not isinstance(target, Const) or not 0 <= target.value <= len(primitives):
                raise nodes[i].error(f"must jump to a constant, 0 to {len(primitives)} here")
