"""Writes a program as BMv2 JSON, version 2.23. Members are in the order in which the documentation
of BMv2's format lists them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from p4native.compiler.backend import arithmetic, ir
from p4native.compiler.source import Position

Json = Any
VERSION = [2, 23]
# BMv2's own names for fields that v1model keeps in standard_metadata.
FIELD_ALIASES = (
    ("queueing_metadata", "enq_timestamp"),
    ("queueing_metadata", "enq_qdepth"),
    ("queueing_metadata", "deq_timedelta"),
    ("queueing_metadata", "deq_qdepth"),
    ("intrinsic_metadata", "ingress_global_timestamp"),
    ("intrinsic_metadata", "egress_global_timestamp"),
    ("intrinsic_metadata", "mcast_grp"),
    ("intrinsic_metadata", "egress_rid"),
    ("intrinsic_metadata", "priority"),
)


def hexstr(value: int, width: int) -> str:
    """Returns hexadecimal digits for whole bytes, in BMv2's form for keys and action data. A
    negative number has a sign in front."""
    digits = 2 * max(1, (width + 7) // 8)
    return f"{'-' if value < 0 else ''}0x{abs(value):0{digits}x}"


class Writer:
    """A writer that turns the program's objects into JSON values. lines_of: returns the lines of a
    source file."""

    def __init__(self, program: ir.Program, lines_of: Callable[[str], Sequence[str]]) -> None:
        self._program = program
        self._lines_of = lines_of
        self._header_ids = {h.name: i for i, h in enumerate(program.headers)}
        self._union_ids = {u.name: i for i, u in enumerate(program.unions)}
        self._action_ids = {id(a): i for i, a in enumerate(program.actions)}
        self._table_id = 0
        self._conditional_id = 0
        self._profile_id = 0

    def document(self) -> dict[str, Json]:
        program = self._program
        return {
            "header_types": [self._header_type(i, t) for i, t in enumerate(program.header_types)],
            "headers": [self._header(i, h) for i, h in enumerate(program.headers)],
            "header_stacks": [
                self._stack(i, s, self._header_ids, "header")
                for i, s in enumerate(program.header_stacks)
            ],
            "header_union_types": [
                self._union_type(i, t) for i, t in enumerate(program.union_types)
            ],
            "header_unions": [self._union(i, u) for i, u in enumerate(program.unions)],
            "header_union_stacks": [
                self._stack(i, s, self._union_ids, "header_union")
                for i, s in enumerate(program.union_stacks)
            ],
            "field_lists": [self._field_list(f) for f in program.field_lists],
            "errors": [[name, code] for name, code in program.errors],
            "enums": [
                {"name": name, "entries": [[m, v] for m, v in members]}
                for name, members in program.enums
            ],
            "parsers": [self._parser()],
            "parse_vsets": [
                self._value_set(i, name, bits, size, where)
                for i, (name, bits, size, where) in enumerate(program.value_sets)
            ],
            "deparsers": [self._deparser()],
            "meter_arrays": [self._meter(i, m) for i, m in enumerate(_bound(program.meters))],
            "counter_arrays": [self._counter(i, c) for i, c in enumerate(_bound(program.counters))],
            "register_arrays": [self._register(i, r) for i, r in enumerate(program.registers)],
            "calculations": [self._calculation(i, c) for i, c in enumerate(program.calculations)],
            "learn_lists": [self._field_list(f) for f in program.learn_lists],
            "actions": [self._action(i, a) for i, a in enumerate(program.actions)],
            "pipelines": [self._pipeline(i, p) for i, p in enumerate(program.pipelines)],
            "checksums": [self._checksum(i, c) for i, c in enumerate(program.checksums)],
            "force_arith": [],
            "extern_instances": [
                self._extern(i, e) for i, e in enumerate(program.extern_instances)
            ],
            "field_aliases": self._aliases(),
            "program": program.name,
            "__meta__": {"version": VERSION, "compiler": "p4native-c"},
        }

    # ---------------------------------------------------------------- headers

    def _header_type(self, number: int, kind: ir.HeaderType) -> Json:
        fields = [[name, width, signed] for name, width, signed in kind.fields]
        entry: dict[str, Json] = {"name": kind.name, "id": number, "fields": fields}
        if kind.max_length_bytes is not None:
            entry["max_length"] = kind.max_length_bytes
        return entry

    def _header(self, number: int, header: ir.HeaderInstance) -> Json:
        return {
            "name": header.name,
            "id": number,
            "header_type": header.type_name,
            "metadata": header.metadata,
            "pi_omit": True,
        }

    def _stack(self, number: int, stack: ir.HeaderStack, ids: dict[str, int], kind: str) -> Json:
        union = kind == "header_union"
        return {
            "name": stack.name,
            "id": number,
            ("union_type" if union else "header_type"): stack.type_name,
            "size": len(stack.members),
            f"{kind}_ids": [ids[name] for name in stack.members],
        }

    def _union_type(self, number: int, kind: ir.UnionType) -> Json:
        return {"name": kind.name, "id": number, "headers": [list(h) for h in kind.headers]}

    def _union(self, number: int, union: ir.UnionInstance) -> Json:
        return {
            "name": union.name,
            "id": number,
            "union_type": union.type_name,
            "header_ids": [self._header_ids[name] for name in union.members],
            "pi_omit": True,
        }

    def _aliases(self) -> list[Json]:
        standard = next(t for t in self._program.header_types if t.name == "standard_metadata")
        present = {name for name, _, _ in standard.fields}
        return [
            [f"{group}.{name}", ["standard_metadata", name]]
            for group, name in FIELD_ALIASES
            if name in present
        ]

    # ------------------------------------------------------------ parser, deparser

    def _parser(self) -> Json:
        states = self._program.parser_states
        return {
            "name": "parser",
            "id": 0,
            "init_state": self._program.init_state,
            "parse_states": [self._state(i, s) for i, s in enumerate(states)],
        }

    def _state(self, number: int, state: ir.ParserState) -> Json:
        return {
            "name": state.name,
            "id": number,
            "parser_ops": [self._parser_op(op) for op in state.ops],
            "transitions": [_transition(t, state.key_bytes) for t in state.transitions],
            "transition_key": [self.expr(key) for key in state.keys],
            **self._source(state.position),
        }

    def _parser_op(self, op: ir.ParserOp) -> Json:
        if op.primitive is not None:
            return {"op": "primitive", "parameters": [self._primitive(op.primitive)]}
        parameters = [self._parser_operand(op.op, p) for p in op.parameters]
        if op.extract is not None:
            kind, target = op.extract
            value = list(target) if isinstance(target, tuple) else target
            parameters.insert(0, {"type": kind, "value": value})
        return {"op": op.op, "parameters": parameters}

    def _parser_operand(self, op: str, expr: ir.Expr) -> Json:
        """Returns an operand in the form that the parser's operation needs. `verify` takes the
        plain expression. For other operations, an operator gets an additional {"type":
        "expression"} around it."""
        plain = isinstance(expr, (ir.Const, ir.FieldRef, ir.Lookahead))
        if op == "verify" or (plain and op != "extract_VL"):
            return self.expr(expr)
        return {"type": "expression", "value": self.expr(expr)}

    def _value_set(self, number: int, name: str, bits: int, size: int, where: Position) -> Json:
        source = self._source(where)
        return {
            "name": name,
            "id": number,
            **source,
            "compressed_bitwidth": bits,
            "max_size": size,
        }

    def _deparser(self) -> Json:
        where = self._program.deparser_position
        return {
            "name": "deparser",
            "id": 0,
            **(self._source(where) if where else {}),
            "order": self._program.deparse_order,
            "primitives": [],
        }

    # ------------------------------------------------------------------- arrays

    def _meter(self, number: int, meter: ir.Array) -> Json:
        entry = {
            "name": meter.name,
            "id": number,
            **self._source(meter.position),
            "is_direct": meter.table is not None,
            "size": meter.size,
            "rate_count": 2,
            "type": meter.unit,
        }
        if meter.table is not None:
            entry["binding"] = meter.table
            result = meter.result
            entry["result_target"] = [result.header, result.field] if result else None
        return entry

    def _counter(self, number: int, counter: ir.Array) -> Json:
        direct = counter.table is not None
        entry = {"name": counter.name, "id": number, **self._source(counter.position)}
        if direct:
            return {**entry, "is_direct": True, "binding": counter.table}
        return {**entry, "size": counter.size, "is_direct": False}

    def _register(self, number: int, register: ir.Array) -> Json:
        return {
            "name": register.name,
            "id": number,
            **self._source(register.position),
            "size": register.size,
            "bitwidth": register.width,
        }

    def _extern(self, number: int, extern: ir.ExternInstance) -> Json:
        attributes = [{"name": n, **self.parameter(value)} for n, value in extern.attributes]
        return {
            "name": extern.name,
            "id": number,
            "type": extern.type_name,
            **self._source(extern.position),
            "attribute_values": attributes,
        }

    def _calculation(self, number: int, calculation: ir.Calculation) -> Json:
        inputs = [self._calculation_input(e) for e in calculation.input]
        if calculation.payload:
            inputs.append({"type": "payload", "value": None})
        return {
            "name": calculation.name,
            "id": number,
            **self._source(calculation.position),
            "algo": calculation.algorithm,
            "input": inputs,
        }

    def _calculation_input(self, expr: ir.Expr) -> Json:
        value = self.expr(expr)
        return {**value, "bitwidth": expr.width} if isinstance(expr, ir.Const) else value

    def _checksum(self, number: int, checksum: ir.Checksum) -> Json:
        return {
            "name": checksum.name,
            "id": number,
            **self._source(checksum.position),
            "target": [checksum.target.header, checksum.target.field],
            "type": "generic",
            "calculation": checksum.calculation,
            "verify": checksum.verify,
            "update": not checksum.verify,
            "if_cond": self.expr(checksum.condition),
        }

    def _field_list(self, fields: ir.FieldList) -> Json:
        return {
            "id": fields.identifier,
            "name": fields.name,
            **self._source(fields.position),
            "elements": [self._calculation_input(e) for e in fields.elements],
        }

    # ------------------------------------------------------------------ actions

    def _action(self, number: int, action: ir.Action) -> Json:
        return {
            "name": action.name,
            "id": number,
            "runtime_data": [{"name": n, "bitwidth": w} for n, w in action.parameters],
            "primitives": [self._primitive(p) for p in action.primitives],
        }

    def _primitive(self, primitive: ir.Primitive) -> Json:
        return {
            "op": primitive.op,
            "parameters": [self.parameter(p) for p in primitive.parameters],
            **self._source(primitive.position),
        }

    def parameter(self, expr: ir.Expr) -> Json:
        """Returns a primitive's parameter in the form of the JSON. An operator gets an additional
        {"type": "expression"} around it."""
        if isinstance(expr, ir.ActionData):
            return {"type": "runtime_data", "value": expr.index}
        if isinstance(expr, ir.Text):
            return {"type": "string", "value": expr.value}
        if isinstance(expr, ir.Vector):
            return {"type": "parameters_vector", "value": [self.parameter(e) for e in expr.items]}
        inner = self.expr(expr)
        wrapped = isinstance(expr, (ir.Op, ir.Access, ir.BoolConstant))
        return {"type": "expression", "value": inner} if wrapped else inner

    # ---------------------------------------------------------------- expressions

    def expr(self, expr: ir.Expr) -> Json:
        return _EXPRESSIONS[type(expr)](self, expr)

    def _const(self, expr: ir.Const) -> Json:
        return {"type": "hexstr", "value": hexstr(expr.value, expr.width)}

    def _operator(self, expr: ir.Op) -> Json:
        left = None if expr.left is None else self.expr(expr.left)
        value = {"op": expr.op, "left": left, "right": self.expr(expr.right)}
        if expr.condition is not None:
            value["cond"] = self.expr(expr.condition)
        return {"type": "expression", "value": value}

    def _access(self, expr: ir.Access) -> Json:
        value = {"op": expr.op, "left": self.expr(expr.base), "right": expr.offset}
        return {"type": "expression", "value": value}

    # ------------------------------------------------------------------ pipelines

    def _pipeline(self, number: int, pipeline: ir.Pipeline) -> Json:
        return {
            "name": pipeline.name,
            "id": number,
            **self._source(pipeline.position),
            "init_table": pipeline.init,
            "tables": [self._table(t) for t in pipeline.tables],
            "action_profiles": [self._profile(p) for p in pipeline.profiles],
            "conditionals": [self._conditional(c) for c in pipeline.conditionals],
        }

    def _conditional(self, node: ir.Conditional) -> Json:
        number = self._conditional_id
        self._conditional_id += 1
        return {
            "name": node.name,
            "id": number,
            **self._source(node.position),
            "expression": self.expr(arithmetic.as_boolean(node.condition)),
            "true_next": node.true_next,
            "false_next": node.false_next,
        }

    def _profile(self, profile: ir.ActionProfile) -> Json:
        number = self._profile_id
        self._profile_id += 1
        entry = {
            "name": profile.name,
            "id": number,
            **self._source(profile.position),
            "max_size": profile.size,
        }
        if profile.selector is not None:
            algorithm, inputs = profile.selector
            entry["selector"] = {"algo": algorithm, "input": [self.expr(e) for e in inputs]}
        return entry

    def _table(self, table: ir.Table) -> Json:
        number = self._table_id
        self._table_id += 1
        entry: dict[str, Json] = {
            "name": table.name,
            "id": number,
            **self._source(table.position),
            "key": [_key(k) for k in table.keys],
            "match_type": table.match_type,
            **_implementation(table),
            "max_size": table.size,
            "with_counters": table.counters,
            "support_timeout": table.support_timeout,
            "direct_meters": table.meter,
            "action_ids": [self._action_ids[id(a)] for a in table.actions],
            "actions": [a.name for a in table.actions],
            "base_default_next": table.base_default_next,
            "next_tables": table.next_tables,
        }
        if table.default_action is not None and table.profile is None:
            entry["default_entry"] = self._default_entry(table, table.default_action)
        if table.entries is not None:
            entry["entries"] = [self._entry(table, e) for e in table.entries]
        return entry

    def _default_entry(self, table: ir.Table, action: ir.Action) -> Json:
        return {
            "action_id": self._action_ids[id(action)],
            "action_const": table.default_constant,
            "action_data": _action_data(action, table.default_arguments),
            "action_entry_const": table.default_constant,
        }

    def _entry(self, table: ir.Table, entry: ir.Entry) -> Json:
        keys = zip(entry.keys, table.keys, strict=True)
        return {
            **self._source(entry.position),
            "match_key": [_match_key(k, key.target.width) for k, key in keys],
            "action_entry": {
                "action_id": self._action_ids[id(entry.action)],
                "action_data": _action_data(entry.action, entry.arguments),
            },
            "priority": entry.priority,
        }

    # -------------------------------------------------------------------- sources

    def _source(self, where: Position) -> dict[str, Json]:
        if where.line == 0:
            return {}
        lines = self._lines_of(where.file)
        text = lines[where.line - 1].strip() if where.line <= len(lines) else ""
        info = {
            "filename": where.file,
            "line": where.line,
            "column": where.column,
            "source_fragment": text,
        }
        return {"source_info": info}


def _bound(arrays: list[ir.Array]) -> list[ir.Array]:
    """Returns the arrays except direct counters and meters that no table uses, because those have
    no size."""
    return [a for a in arrays if a.size or a.table is not None]


def _transition(transition: ir.Transition, key_bytes: int) -> Json:
    mask = transition.mask
    value: Json = transition.value
    if transition.kind == "hexstr":
        assert isinstance(transition.value, int)
        value = hexstr(transition.value, 8 * key_bytes)
    elif transition.kind == "default":
        value = None
    return {
        "type": transition.kind,
        "value": value,
        "mask": None if mask is None else hexstr(mask, 8 * key_bytes),
        "next_state": transition.next_state,
    }


def _key(key: ir.Key) -> Json:
    return {
        "match_type": key.match_kind,
        "name": key.name,
        "target": [key.target.header, key.target.field],
        "mask": None,
    }


def _match_key(key: tuple[str, int, int], width: int) -> Json:
    kind, value, other = key
    if kind == "exact":
        return {"match_type": kind, "key": hexstr(value, width)}
    if kind == "lpm":
        return {"match_type": kind, "key": hexstr(value, width), "prefix_length": other}
    names = ("start", "end") if kind == "range" else ("key", "mask")
    return {"match_type": kind, names[0]: hexstr(value, width), names[1]: hexstr(other, width)}


def _action_data(action: ir.Action, values: list[int]) -> list[str]:
    pairs = zip(values, action.parameters, strict=True)
    return [hexstr(value, width) for value, (_, width) in pairs]


def _implementation(table: ir.Table) -> dict[str, Json]:
    if table.profile is None:
        return {"type": "simple"}
    kind = "indirect" if table.profile.selector is None else "indirect_ws"
    return {"type": kind, "action_profile": table.profile.name}


_EXPRESSIONS: dict[type[ir.Expr], Callable[[Writer, Any], Json]] = {
    ir.Const: Writer._const,
    ir.Op: Writer._operator,
    ir.Access: Writer._access,
    ir.BoolConstant: lambda _, e: {"type": "bool", "value": e.value},
    ir.FieldRef: lambda _, e: {"type": "field", "value": [e.header, e.field]},
    ir.LastField: lambda _, e: {"type": "stack_field", "value": [e.stack, e.field]},
    ir.UnionLastField: lambda _, e: {
        "type": "union_stack_field",
        "value": [e.stack, e.member, e.field],
    },
    ir.ActionData: lambda _, e: {"type": "local", "value": e.index},
    ir.RegisterCell: lambda w, e: {"type": "register", "value": [e.array, w.expr(e.index)]},
    ir.ObjectRef: lambda _, e: {"type": e.kind, "value": e.name},
    ir.Lookahead: lambda _, e: {"type": "lookahead", "value": [e.offset, e.width]},
}
