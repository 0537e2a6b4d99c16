"""BMv2's semantics of its JSON, obviously rather than quickly: what the native code must equal.

It walks the JSON document itself (not the product's model) with Python integers. A packet becomes
a list of (port, frame). Where BMv2 would abort, switch.md says what happens instead.
"""

from __future__ import annotations

import binascii
import copy
from collections import deque
from typing import Any

DROP_PORT = 511
MASK32, MASK64 = (1 << 32) - 1, (1 << 64) - 1


class ParserError(Exception):
    """Parsing ends with an error code."""


class Field:
    """A value in a field: cut to its width on every write."""

    def __init__(self, bits: int, signed: bool = False, saturating: bool = False) -> None:
        self.bits, self.signed, self.saturating = bits, signed, saturating
        self.value = 0

    def set(self, value: int) -> None:
        low = -(1 << self.bits - 1) if self.signed else 0
        high = (1 << self.bits - self.signed) - 1
        if self.saturating:
            value = min(max(value, low), high)
        self.load(value)

    def load(self, raw: int) -> None:
        """Takes the bits as they are, which does not saturate."""
        value = raw % (1 << self.bits)
        negative = self.signed and value >> self.bits - 1 == 1
        self.value = value - (1 << self.bits) if negative else value

    def raw(self) -> int:
        return self.value % (1 << self.bits)


class Header:
    def __init__(self, type_json: dict[str, Any], metadata: bool) -> None:
        self.metadata = metadata
        self.valid = metadata
        self.type = type_json["name"]
        self.fields: dict[str, Field] = {}
        self.variable: str | None = None
        for name, bits, *flags in type_json["fields"]:
            if bits == "*":
                self.variable = name
            self.fields[name] = Field(0 if bits == "*" else bits, *flags)

    def bits(self) -> int:
        return sum(f.bits for f in self.fields.values())

    def reset(self) -> None:
        for field in self.fields.values():
            field.value = 0

    def load(self, value: int, bits: int) -> None:
        for field in self.fields.values():
            bits -= field.bits
            field.load(value >> bits)

    def number(self) -> int:
        value = 0
        for field in self.fields.values():
            value = value << field.bits | field.raw()
        return value


class Packet:
    """Headers and flags of one packet on its way."""

    def __init__(self, document: dict[str, Any]) -> None:
        types = {t["name"]: t for t in document["header_types"]}
        self.headers = {
            h["name"]: Header(types[h["header_type"]], h["metadata"]) for h in document["headers"]
        }
        names = {h["id"]: h["name"] for h in document["headers"]}
        self.stacks = {
            s["name"]: [names[i] for i in s["header_ids"]] for s in document["header_stacks"]
        }
        self.unions = {
            u["name"]: [names[i] for i in u["header_ids"]] for u in document["header_unions"]
        }
        self.next = dict.fromkeys(self.stacks, 0)
        self.aliases = {a: tuple(f) for a, f in document["field_aliases"]}
        self.payload = b""
        self.length = self.ingress_length = 0
        self.ingress_port = 0
        self.truncate: int | None = None
        self.error, self.checksum_error = 0, False
        self.clear()

    def clear(self) -> None:
        self.exit = False
        self.clone: tuple[int, int] | None = None
        self.resubmit = self.recirculate = 0

    def standard(self, name: str) -> Field | None:
        header, field = self.aliases.get(name, tuple(name.split(".")))
        found = self.headers.get(header)
        return found.fields.get(field) if found else None

    def set(self, name: str, value: int) -> None:
        field = self.standard(name)
        if field:
            field.set(value)

    def get(self, name: str) -> int:
        field = self.standard(name)
        return field.value if field else 0

    def copy(self) -> Packet:
        return copy.deepcopy(self)

    def reset_metadata(self) -> None:
        for header in self.headers.values():
            if header.metadata:
                header.reset()

    def make_valid(self, name: str) -> None:
        self.headers[name].valid = True
        for members in self.unions.values():
            for other in members:
                if name in members and other != name:
                    self.headers[other].valid = False


def truncated_div(a: int, b: int) -> int:
    quotient = abs(a) // abs(b) if b else 0
    return quotient if (a < 0) == (b < 0) else -quotient


ARITHMETIC = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": truncated_div,
    "%": lambda a, b: a - b * truncated_div(a, b) if b else 0,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << (b & MASK32),
    ">>": lambda a, b: a >> (b & MASK32),
    "usat_cast": lambda a, w: min(max(a, 0), (1 << w) - 1),
    "sat_cast": lambda a, w: min(max(a, -(1 << w - 1)), (1 << w - 1) - 1),
    "two_comp_mod": lambda a, w: (a + (1 << w - 1)) % (1 << w) - (1 << w - 1),
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
}


def csum16(data: bytes) -> int:
    data += b"\0" * (len(data) % 2)
    total = sum(int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def xor16(data: bytes) -> int:
    data += b"\0" * (len(data) % 2)
    value = 0
    for i in range(0, len(data), 2):
        value ^= int.from_bytes(data[i : i + 2], "big")
    return value


def crc16(data: bytes) -> int:
    value = 0
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0xA001 if value & 1 else 0)
    return value


HASHES = {
    "csum16": csum16,
    "xor16": xor16,
    "crc16": crc16,
    "crc16_custom": crc16,
    "crc32_custom": binascii.crc32,
    "crc32": binascii.crc32,
    "identity": lambda data: int.from_bytes(data[:8], "big"),
}


def constant_entries(
    table: dict[str, Any], actions: dict[int, dict[str, Any]]
) -> list[tuple[Any, int, str, list[int]]]:
    """Entries that the document has, as `Interpreter.entries` holds them."""
    found = []
    for entry in table.get("entries", []):
        match: list[Any] = []
        for key in entry["match_key"]:
            kind, value = key["match_type"], int(key.get("key", "0"), 16)
            if kind == "lpm":
                match.append((value, key["prefix_length"]))
            elif kind == "ternary":
                match.append((value, int(key["mask"], 16)))
            elif kind == "range":
                match.append((int(key["start"], 16), int(key["end"], 16)))
            else:
                match.append(value)
        call = entry["action_entry"]
        name = actions[call["action_id"]]["name"]
        args = [int(a, 16) for a in call["action_data"]]
        found.append((match, -entry["priority"], name, args))
    return found


class Interpreter:
    """A switch running one document. Registers and counters are lists by name; `entries` maps a
    table to (match values, priority: larger wins, action name, arguments) in order of addition."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.actions = {a["id"]: a for a in document["actions"]}
        self.registers = {r["name"]: [0] * r["size"] for r in document["register_arrays"]}
        self.register_bits = {r["name"]: r["bitwidth"] for r in document["register_arrays"]}
        self.counters = {
            c["name"]: [[0, 0] for _ in range(c["size"])] for c in document["counter_arrays"]
        }
        self.calculations = {c["name"]: c for c in document["calculations"]}
        self.lists = {f["id"]: f["elements"] for f in document["field_lists"]}
        self.errors: dict[str, int] = dict(document["errors"])
        self.entries: dict[str, list[tuple[Any, int, str, list[int]]]] = {}
        self.groups: dict[int, list[tuple[int, int]]] = {}
        self.sessions: dict[int, list[tuple[int, int]]] = {}
        self.states = {s["name"]: s for s in document["parsers"][0]["parse_states"]}

    # ---- expressions

    def value(self, node: Any, k: Packet, args: list[int] = ()) -> Any:  # type: ignore[assignment]
        kind, value = node["type"], node["value"]
        if kind == "expression":
            return self.expression(value, k, args)
        if kind == "hexstr":
            return int(value, 16)
        if kind == "bool":
            return value
        if kind == "field":
            return self.field(k.headers[value[0]], value[1])
        if kind in ("local", "runtime_data"):
            return args[value]
        if kind == "header":
            return k.headers[value]
        if kind == "header_stack":
            return value
        if kind == "stack_field":
            at = k.next[value[0]] - 1
            return self.field(k.headers[k.stacks[value[0]][at]], value[1]) if at >= 0 else 0
        if kind == "register":
            cells = self.registers[value[0]]
            index = self.value(value[1], k, args) & MASK64
            return cells[index] if index < len(cells) else 0
        raise NotImplementedError(kind)

    def field(self, header: Header, name: str) -> int:
        return int(header.valid) if name == "$valid$" else header.fields[name].value

    def expression(self, node: Any, k: Packet, args: list[int]) -> Any:
        if "type" in node:
            return self.value(node, k, args)
        op = node["op"]
        if op == "?":
            chosen = "left" if self.value(node["cond"], k, args) else "right"
            return self.value(node[chosen], k, args)
        if op == "access_field":
            header = self.value(node["left"], k, args)
            return list(header.fields.values())[node["right"]].value if header else 0
        right = self.value(node["right"], k, args)
        if op in ("not", "d2b", "b2d", "~"):
            return {"not": not right, "d2b": right != 0, "b2d": int(right), "~": ~int(right)}[op]
        if op == "valid":
            return bool(right and right.valid)
        if op in ("last_stack_index", "size_stack"):
            return (k.next[right] - (op == "last_stack_index")) & MASK64
        if node.get("left") is None:
            return right if op == "+" else -right
        left = self.value(node["left"], k, args)
        if op == "dereference_header_stack":
            names = k.stacks[left]
            index = right & MASK64
            return k.headers[names[index]] if index < len(names) else None
        if isinstance(left, Header):
            same = left.valid and right.valid and left.number() == right.number()
            return same if op == "==" else not same
        return ARITHMETIC[op](left, right)

    # ---- actions

    def run_action(self, action: dict[str, Any], args: list[int], k: Packet) -> None:
        at = 0
        while at < len(action["primitives"]):
            step = action["primitives"][at]
            jump = self.primitive(step["op"], step["parameters"], k, args)
            at = at + 1 if jump is None else jump

    def store(self, target: Any, value: int, k: Packet, args: list[int]) -> None:
        if target["type"] == "field":
            header, name = target["value"]
            k.headers[header].fields[name].set(value)
        elif target["type"] == "register":
            name, index = target["value"]
            at = self.value(index, k, args) & MASK64
            if at < len(self.registers[name]):
                self.registers[name][at] = value % (1 << self.register_bits[name])
        else:
            node = target["value"]["value"] if "type" in target["value"] else target["value"]
            assert node["op"] == "access_field"
            header = self.value(node["left"], k, args)
            if header:
                list(header.fields.values())[node["right"]].set(value)

    def primitive(self, op: str, p: list[Any], k: Packet, args: list[int]) -> int | None:
        def data(i: int) -> int:
            return int(self.value(p[i], k, args))

        if op == "assign":
            self.store(p[0], data(1), k, args)
        elif op == "_jump":
            return data(0)
        elif op == "_jump_if_zero":
            return data(1) if data(0) == 0 else None
        elif op == "exit":
            k.exit = True
        elif op == "mark_to_drop":
            k.set("standard_metadata.egress_spec", DROP_PORT)
            k.set("intrinsic_metadata.mcast_grp", 0)
        elif op == "register_read":
            cells, index = self.registers[p[1]["value"]], data(2) & MASK32
            if index < len(cells):
                self.store(p[0], cells[index], k, args)
        elif op == "register_write":
            name, index = p[0]["value"], data(1) & MASK32
            if index < len(self.registers[name]):
                self.registers[name][index] = data(2) % (1 << self.register_bits[name])
        elif op == "count":
            cells, index = self.counters[p[0]["value"]], data(1) & MASK32
            if index < len(cells):
                cells[index][0] += 1
                cells[index][1] += k.ingress_length
        elif op == "add_header":
            self.add_header(p[0]["value"], k)
        elif op == "remove_header":
            header = k.headers[p[0]["value"]]
            if header.valid:
                k.length -= header.bits() // 8
                header.valid = False
        elif op == "assign_header":
            self.assign_header(p, k)
        elif op in ("push", "pop"):
            self.shift(p[0]["value"], data(1) * (1 if op == "push" else -1), k)
        elif op in ("clone_ingress_pkt_to_egress", "clone_egress_pkt_to_egress"):
            k.clone = (data(0) & 0x7FFF, data(1) & 0xFFFF)
        elif op in ("resubmit", "recirculate"):
            setattr(k, op, data(0) & 0xFFFF)
        elif op == "truncate":
            k.truncate = min(data(0) & MASK64, k.truncate if k.truncate is not None else MASK64)
        elif op == "modify_field_with_hash_based_offset":
            size = data(3) & MASK64
            result = self.calculate(p[2]["value"], k) % (size or 1) + (data(1) & MASK64)
            self.store(p[0], result & MASK64, k, args)
        elif op == "execute_meter":
            self.store(p[2], 0, k, args)  # without rates all is green
        elif op == "assign_VL":
            target, source = (k.headers[q["value"][0]].fields[q["value"][1]] for q in p[:2])
            target.bits, target.value = source.bits, source.value
        elif op not in ("no_op", "log_msg", "assert", "assume"):
            raise NotImplementedError(op)
        return None

    def add_header(self, name: str, k: Packet) -> None:
        header = k.headers[name]
        if not header.valid:
            header.reset()
            k.make_valid(name)
            k.length += header.bits() // 8

    def assign_header(self, p: list[Any], k: Packet) -> None:
        target, source = p[0]["value"], k.headers[p[1]["value"]]
        if not source.valid:
            k.headers[target].valid = False
            return
        for name, field in source.fields.items():
            k.headers[target].fields[name].value = field.value
            k.headers[target].fields[name].bits = field.bits
        k.make_valid(target)

    def shift(self, stack: str, by: int, k: Packet) -> None:
        """push (by > 0) and pop: contents change places, those that come in are invalid."""
        names = k.stacks[stack]
        size = len(names)
        count = min(abs(by), size)
        if by > 0:
            pairs = [(i, i - count) for i in range(size - 1, count - 1, -1)]
            fresh = range(count)
            k.next[stack] = min(size, k.next[stack] + count)
        else:
            pairs = [(i, i + count) for i in range(size - count)] if by else []
            fresh = range(size - count, size)
            k.next[stack] = max(0, k.next[stack] - count)
        for a, b in pairs:
            k.headers[names[a]], k.headers[names[b]] = k.headers[names[b]], k.headers[names[a]]
        for i in fresh:
            k.headers[names[i]].valid = False

    # ---- calculations and checksums

    def calculate(self, name: str, k: Packet) -> int:
        calculation = self.calculations[name]
        bits, total, payload = 0, 0, b""
        for item in calculation["input"]:
            if item["type"] == "payload":
                payload = k.payload[: k.truncate]
                continue
            if item["type"] == "hexstr":
                width, value = item["bitwidth"], int(item["value"], 16)
            else:
                reference = item["value"]
                header = k.headers[reference if item["type"] == "header" else reference[0]]
                if not header.valid:
                    continue
                whole = item["type"] == "header"
                field = None if whole else header.fields[reference[1]]
                width = header.bits() if field is None else field.bits
                value = header.number() if field is None else field.raw()
            bits, total = bits + width, total << width | value
        data = (total << -bits % 8).to_bytes((bits + 7) // 8, "big") + payload
        return HASHES[calculation["algo"]](data)

    def checksums(self, verify: bool, k: Packet) -> None:
        for checksum in self.document["checksums"]:
            header, name = checksum["target"]
            wanted = checksum["verify"] if verify else checksum["update"]
            if not wanted or (verify and not k.headers[header].valid):
                continue
            if checksum["if_cond"] and not self.value(checksum["if_cond"], k):
                continue
            result = self.calculate(checksum["calculation"], k)
            field = k.headers[header].fields[name]
            if not verify:
                field.set(result)
            elif field.raw() & MASK64 != result:
                k.checksum_error = True

    # ---- parser and deparser

    def parse(self, k: Packet, frame: bytes) -> None:
        k.error, k.checksum_error = self.errors["NoError"], False
        self.frame, self.at = frame, 0
        name = self.document["parsers"][0]["init_state"]
        try:
            while name:
                state = self.states[name]
                for op in state["parser_ops"]:
                    self.parser_op(op["op"], op["parameters"], k)
                name = self.next_state(state, k)
        except ParserError as error:
            k.error = error.args[0]
        self.last_error = k.error
        k.payload = frame[self.at :]
        self.checksums(True, k)

    def fail(self, name: str) -> None:
        raise ParserError(self.errors[name])

    def need(self, count: int) -> None:
        if len(self.frame) - self.at < count:
            self.fail("PacketTooShort")

    def lookahead(self, offset: int, bits: int) -> int:
        self.need((offset + bits + 7) // 8)
        rest = self.frame[self.at :]
        return int.from_bytes(rest, "big") >> (8 * len(rest) - offset - bits) & (1 << bits) - 1

    def parser_op(self, op: str, p: list[Any], k: Packet) -> None:
        if op in ("extract", "extract_VL"):
            self.extract(p, k)
        elif op == "set":
            value = p[1]
            if value["type"] == "lookahead":
                self.store(p[0], self.lookahead(*value["value"]), k, [])
            else:
                self.store(p[0], int(self.value(value, k)), k, [])
        elif op == "verify":
            if not self.value(p[0], k):
                raise ParserError(int(self.value(p[1], k)))
        elif op == "advance":
            bits = int(self.value(p[0], k)) & MASK64
            if bits % 8:
                self.fail("ParserInvalidArgument")
            self.need(bits // 8)
            self.at += bits // 8
        elif op == "shift":
            self.need(p[0])
            self.at += p[0]
        else:
            assert op == "primitive"
            self.primitive(p[0]["op"], p[0]["parameters"], k, [])

    def extract(self, p: list[Any], k: Packet) -> None:
        name = p[0]["value"]
        stack = name if p[0]["type"] == "stack" else None
        if stack is not None:
            if k.next[stack] >= len(k.stacks[stack]):
                self.fail("StackOutOfBounds")
            name = k.stacks[stack][k.next[stack]]
        header = k.headers[name]
        variable = header.fields[header.variable] if header.variable else None
        if variable:
            variable.bits = 0
            bits = int(self.value(p[1], k))
            if bits % 8 or not 0 <= bits <= (1 << 31) - 1:
                self.fail("ParserInvalidArgument")
            self.need(header.bits() // 8 + bits // 8)
            types = {t["name"]: t for t in self.document["header_types"]}
            if types[header.type]["max_length"] < header.bits() // 8 + bits // 8:
                self.fail("HeaderTooShort")
            variable.bits = bits
        size = header.bits() // 8
        self.need(size)
        header.load(int.from_bytes(self.frame[self.at : self.at + size], "big"), 8 * size)
        self.at += size
        k.make_valid(name)
        if stack is not None:
            k.next[stack] += 1

    def next_state(self, state: dict[str, Any], k: Packet) -> str | None:
        key = b""
        for item in state["transition_key"]:
            value = item["value"]
            if item["type"] == "lookahead":
                number, bits = self.lookahead(*value), value[1]
            elif item["type"] == "field":
                field = k.headers[value[0]].fields[value[1]]
                number, bits = field.raw(), field.bits
            else:
                at = k.next[value[0]] - 1
                names = k.stacks[value[0]]
                field = k.headers[names[max(at, 0)]].fields[value[1]]
                number, bits = (field.raw() if at >= 0 else 0), field.bits
            key += number.to_bytes((bits + 7) // 8, "big")
        default = None
        for item in state["transitions"]:
            if item["type"] == "default":
                default = item["next_state"]
            elif key and item["type"] == "hexstr":  # value sets are empty here
                value = int(item["value"], 16)
                mask = int(item["mask"], 16) if item["mask"] else -1
                if int.from_bytes(key, "big") & mask == value & mask:
                    return item["next_state"]
        return default

    def deparse(self, k: Packet) -> bytes:
        self.checksums(False, k)
        out = b""
        for name in self.document["deparsers"][0]["order"]:
            header = k.headers[name]
            if header.valid:
                out += header.number().to_bytes(header.bits() // 8, "big")
        return out + k.payload

    # ---- tables and control flow

    def control(self, name: str, k: Packet) -> None:
        pipeline = next(p for p in self.document["pipelines"] if p["name"] == name)
        tables = {t["name"]: t for t in pipeline["tables"]}
        conditions = {c["name"]: c for c in pipeline["conditionals"]}
        calls = {c["name"]: c for c in pipeline.get("action_calls", [])}
        node = pipeline["init_table"]
        while node and not k.exit:
            if node in tables:
                node = self.apply(tables[node], k)
            elif node in conditions:
                taken = self.value(conditions[node]["expression"], k)
                node = conditions[node]["true_next" if taken else "false_next"]
            else:
                self.run_action(self.actions[calls[node]["action_id"]], [], k)
                node = calls[node]["next_node"]
        k.exit = False

    def key(self, table: dict[str, Any], k: Packet) -> list[tuple[str, int, int]]:
        """(kind, value, bits) of each key field."""
        found = []
        for item in table["key"]:
            if item["match_type"] == "valid":
                found.append(("valid", int(k.headers[item["target"]].valid), 1))
                continue
            header, name = item["target"]
            if name == "$valid$":
                found.append((item["match_type"], int(k.headers[header].valid), 1))
                continue
            field = k.headers[header].fields[name]
            value = field.raw() if k.headers[header].valid else 0
            if item["mask"]:
                value &= int(item["mask"], 16)
            found.append((item["match_type"], value, field.bits))
        return found

    def lookup(self, table: dict[str, Any], k: Packet) -> tuple[str, list[int]] | None:
        """Match values: exact v; lpm (v, length); ternary (v, mask); range (low, high)."""
        key = self.key(table, k)
        best = None
        installed = self.entries.get(table["name"]) or constant_entries(table, self.actions)
        for match, priority, action, args in installed:
            prefix = 0
            for (kind, value, bits), m in zip(key, match, strict=True):
                if kind in ("exact", "valid"):
                    hit = value == m
                elif kind == "lpm":
                    hit = value >> bits - m[1] == m[0] >> bits - m[1]
                    prefix = m[1]
                elif kind == "ternary":
                    hit = value & m[1] == m[0] & m[1]
                else:
                    hit = m[0] <= value <= m[1]
                if not hit:
                    break
            else:
                rank = priority if table["match_type"] in ("ternary", "range") else prefix
                if best is None or rank > best[0]:
                    best = (rank, action, args)
        return best[1:] if best else None

    def apply(self, table: dict[str, Any], k: Packet) -> str | None:
        hit = self.lookup(table, k) if table["key"] else None
        following = table["next_tables"]
        if hit:
            ids = {self.actions[i]["name"]: i for i in table["action_ids"]}
            action, args = self.actions[ids[hit[0]]], hit[1]
        elif table.get("default_entry"):
            entry = table["default_entry"]
            action = self.actions[entry["action_id"]]
            args = [int(a, 16) for a in entry["action_data"]]
        else:
            return following.get("__MISS__", table["base_default_next"])
        self.run_action(action, args, k)
        if "__HIT__" in following:
            return following["__HIT__" if hit else "__MISS__"]
        return following[action["name"]]

    # ---- the way of a packet

    def process(self, port: int, frame: bytes, now: int = 0) -> list[tuple[int, bytes]]:
        self.out: list[tuple[int, bytes]] = []
        self.now = now
        k = self.fresh(port, len(frame), len(frame))
        k.set("standard_metadata.ingress_port", port)
        k.set("standard_metadata.packet_length", len(frame))
        k.set("intrinsic_metadata.ingress_global_timestamp", now)
        self.waiting = deque([(k, frame)])
        while self.waiting:
            self.ingress(*self.waiting.popleft())
        return self.out

    def fresh(self, port: int, length: int, ingress_length: int) -> Packet:
        k = Packet(self.document)
        k.ingress_port, k.length, k.ingress_length = port, length, ingress_length
        return k

    def copy_fields(self, list_id: int, k: Packet, source: Packet) -> None:
        for item in self.lists.get(list_id, []):
            header, name = item["value"]
            k.headers[header].fields[name].value = source.headers[header].fields[name].value

    def again(self, k: Packet, list_id: int, frame: bytes, ingress: int, kind: int) -> None:
        other = self.fresh(k.ingress_port, len(frame), ingress)
        self.copy_fields(list_id, other, k)
        other.set("standard_metadata.instance_type", kind)
        other.set("standard_metadata.packet_length", len(frame))
        self.waiting.append((other, frame))

    def ingress(self, k: Packet, frame: bytes) -> None:
        self.parse(k, frame)
        k.set("standard_metadata.parser_error", k.error)
        k.set("standard_metadata.checksum_error", int(k.checksum_error))
        self.control("ingress", k)
        if k.clone:
            clone = self.fresh(k.ingress_port, len(frame), k.ingress_length)
            clone.set("standard_metadata.ingress_port", k.ingress_port)
            self.parse(clone, frame)
            clone.reset_metadata()
            self.copy_fields(k.clone[1], clone, k)
            clone.set("standard_metadata.instance_type", 1)
            self.replicate(clone, self.sessions.get(k.clone[0], []))
            k.clone = None
        if k.resubmit:
            self.again(k, k.resubmit, frame, k.ingress_length, 6)
            self.waiting.rotate(1)
            return
        group = k.get("intrinsic_metadata.mcast_grp")
        port = k.get("standard_metadata.egress_spec")
        if group:
            k.set("standard_metadata.instance_type", 5)
            self.replicate(k, self.groups.get(group, []))
        elif port != DROP_PORT:
            k.set("standard_metadata.instance_type", 0)
            self.egress(k, port)

    def replicate(self, k: Packet, replicas: list[tuple[int, int]]) -> None:
        for port, rid in replicas:
            copied = k.copy()
            copied.clear()
            copied.truncate = None
            copied.set("intrinsic_metadata.egress_rid", rid)
            self.egress(copied, port)

    def egress(self, k: Packet, port: int) -> None:
        if k.get("intrinsic_metadata.priority"):
            return
        k.set("queueing_metadata.enq_timestamp", self.now)
        for name in ("enq_qdepth", "deq_timedelta", "deq_qdepth"):
            k.set(f"queueing_metadata.{name}", 0)
        k.set("intrinsic_metadata.egress_global_timestamp", self.now)
        k.set("standard_metadata.egress_port", port)
        k.set("standard_metadata.egress_spec", DROP_PORT + 1)
        k.set("standard_metadata.packet_length", k.length & MASK32)
        self.control("egress", k)
        clone = None
        if k.clone:
            clone = k.copy()
            clone.reset_metadata()
            self.copy_fields(k.clone[1], clone, k)
            clone.set("standard_metadata.instance_type", 2)
            session = self.sessions.get(k.clone[0], [])
            k.clone = None
        if k.get("standard_metadata.egress_spec") != DROP_PORT:
            frame = self.deparse(k)
            if k.recirculate:
                self.again(k, k.recirculate, frame, len(frame), 4)
            else:
                self.out.append((port, frame[: k.truncate]))
        if clone:
            self.replicate(clone, session)
