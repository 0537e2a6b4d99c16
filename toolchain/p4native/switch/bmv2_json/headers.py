"""Reads header_types, headers, stacks, unions, aliases and errors."""

from __future__ import annotations

from p4native.switch.bmv2_json.scope import CORE_ERRORS, Scope, claim, claim_id
from p4native.switch.node import Node
from p4native.switch.storage import Field, Header, HeaderType, Stack, Union, UnionStack

MAX_FIELD_BITS = 16384
MAX_HEADER_BYTES = 1 << 16
"""The longest header: no packet is longer. A field of variable width may be declared wider."""
MAX_DECLARED_BYTES = 1 << 28
MAX_HEADERS = 4096
MAX_HEADERS_BYTES = 1 << 20


def read_headers(root: Node, scope: Scope) -> None:
    """Reads everything that holds packet data, and adds it to the scope."""
    for node in root.list("header_types"):
        read_header_type(node, scope)
    seen: set[int] = set()
    for node in root.list("headers"):
        read_header(node, scope, seen)
    for node in root.list("header_stacks"):
        read_stack(node, scope)
    member_names = {
        node["name"].text(): tuple(m.elements(2)[0].text() for m in node["headers"].elements())
        for node in root.list("header_union_types")
    }
    for node in root.list("header_unions"):
        read_union(node, scope, member_names)
    for node in root.list("header_union_stacks"):
        read_union_stack(node, scope)
    for node in root.list("field_aliases"):
        name, target = node.elements(2)
        scope.aliases[name.text()] = scope.field(target)


def read_header_type(node: Node, scope: Scope) -> None:
    name = node["name"].text()
    limit = node.get("max_length")
    declared = limit.integer(0, MAX_DECLARED_BYTES) if limit else 0
    max_bytes = min(declared, MAX_HEADER_BYTES)
    if node.get("length_exp"):
        raise node["length_exp"].error("is not supported: use the operation 'extract_VL'")
    nodes = node["fields"].elements()
    fields = [read_field(n, i) for i, n in enumerate(nodes)]
    if len({f.name for f in fields}) != len(fields):
        raise node["fields"].error("two fields have the same name")
    fixed = sum(f.bits for f in fields)
    if sum(f.variable for f in fields) > 1:
        raise node["fields"].error("more than one field of variable width")
    for i, field in enumerate(fields):
        if field.variable:
            fields[i] = size_variable(field, nodes[i], max_bytes, fixed)
            if sum(f.bits for f in fields[:i]) % 8:
                raise nodes[i].error("a field of variable width must start on a byte")
    header_type = HeaderType(name, len(scope.header_types), tuple(fields), max_bytes=max_bytes)
    if header_type.max_bits > 8 * MAX_HEADER_BYTES:
        raise node["fields"].error(f"the header is longer than {MAX_HEADER_BYTES} bytes")
    claim(scope.header_types, node, name, header_type)


def size_variable(field: Field, node: Node, max_bytes: int, fixed_bits: int) -> Field:
    bits = 8 * max_bytes - fixed_bits
    if bits < 0 or not max_bytes:
        raise node.error("needs the header type's max_length, at least that of its other fields")
    return Field(field.name, field.index, bits, variable=True)


def read_field(node: Node, index: int) -> Field:
    parts = node.elements()
    if not 2 <= len(parts) <= 4:
        raise node.error("must be [name, bits] with an optional signed and saturating flag")
    name = parts[0].text()
    if parts[1].value == "*":
        return Field(name, index, 0, variable=True)
    bits = parts[1].integer(1, MAX_FIELD_BITS)
    signed = len(parts) > 2 and parts[2].truth()
    saturating = len(parts) > 3 and parts[3].truth()
    return Field(name, index, bits, signed, saturating)


def read_header(node: Node, scope: Scope, seen: set[int]) -> None:
    if len(scope.headers) >= MAX_HEADERS:
        raise node.error(f"more than {MAX_HEADERS} headers")
    name = node["name"].text()
    number = claim_id(seen, node)
    header_type = scope.header_type(node["header_type"])
    metadata = node.flag("metadata")
    if not metadata and header_type.fixed_bits % 8:
        raise node["header_type"].error(f"'{header_type.name}' is not a whole number of bytes")
    header = Header(name, len(scope.headers), number, header_type, metadata)
    claim(scope.headers, node, name, header)
    scope.headers_by_id[number] = header


def members(node: Node, scope: Scope) -> tuple[Header, ...]:
    """Returns the headers whose ids a stack or union lists. Refuses a header that belongs to
    another stack or union already."""
    found = []
    for item in node.elements():
        header = scope.headers_by_id.get(item.integer(0, 2**31 - 1))
        if header is None:
            raise item.error(f"no header has id {item.value}")
        if header.stack or header.union or header in found or header.metadata:
            raise item.error(f"'{header.name}' is metadata, or in another stack or union already")
        found.append(header)
    if not found:
        raise node.error("must have a header")
    return tuple(found)


def read_stack(node: Node, scope: Scope) -> None:
    header_type = scope.header_type(node["header_type"])
    headers = members(node["header_ids"], scope)
    stack = Stack(node["name"].text(), len(scope.stacks), header_type, headers)
    for i, header in enumerate(headers):
        if header.type is not header_type:
            raise node["header_ids"].error(f"'{header.name}' is not of the stack's header type")
        header.stack, header.stack_index = stack, i
    claim(scope.stacks, node, stack.name, stack)


def read_union(node: Node, scope: Scope, member_names: dict[str, tuple[str, ...]]) -> None:
    names = scope.find(node["union_type"], "header union type", member_names)
    headers = members(node["header_ids"], scope)
    if len(headers) != len(names):
        raise node["header_ids"].error(f"must have the {len(names)} members of the union type")
    number = node["id"].integer(0, 2**31 - 1)
    union = Union(node["name"].text(), len(scope.unions), number, names, headers)
    for i, header in enumerate(headers):
        header.union, header.member = union, i
    claim(scope.unions, node, union.name, union)
    scope.unions_by_id[number] = union


def read_union_stack(node: Node, scope: Scope) -> None:
    unions: list[Union] = []
    for item in node["header_union_ids"].elements():
        union = scope.unions_by_id.get(item.integer(0, 2**31 - 1))
        if union is None or union.stack or union in unions:
            raise item.error("must be the id of a header union that is in no other stack")
        if [h.type for h in union.headers] != [h.type for h in (unions or [union])[0].headers]:
            raise item.error("the unions of a stack must have the same type")
        unions.append(union)
    if not unions:
        raise node["header_union_ids"].error("must have a union")
    stack = UnionStack(node["name"].text(), len(scope.union_stacks), tuple(unions))
    for i, union in enumerate(unions):
        union.stack, union.stack_index = stack, i
    claim(scope.union_stacks, node, stack.name, stack)


def read_errors(root: Node, scope: Scope) -> None:
    """Reads the error codes. Core errors to which the program gives no number get the numbers after
    the largest one."""
    for node in root.list("errors"):
        name, value = node.elements(2)
        code = value.integer(0, 2**31 - 2)
        if name.text() in scope.errors or code in scope.errors.values():
            raise node.error("an error's name and number must be new")
        scope.errors[name.text()] = code
    following = max(scope.errors.values(), default=-1) + 1
    for name_text in CORE_ERRORS:
        if name_text not in scope.errors:
            scope.errors[name_text] = following
            following += 1
