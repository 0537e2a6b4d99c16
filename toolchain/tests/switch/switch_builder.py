"""Small BMv2 JSON documents for tests, written by hand: `Builder` adds what each test is about."""

from __future__ import annotations

import json
from typing import Any

STANDARD_METADATA = [
    ["ingress_port", 9],
    ["egress_spec", 9],
    ["egress_port", 9],
    ["instance_type", 32],
    ["packet_length", 32],
    ["enq_timestamp", 32],
    ["enq_qdepth", 19],
    ["deq_timedelta", 32],
    ["deq_qdepth", 19],
    ["ingress_global_timestamp", 48],
    ["egress_global_timestamp", 48],
    ["mcast_grp", 16],
    ["egress_rid", 16],
    ["checksum_error", 1],
    ["parser_error", 32],
    ["priority", 3],
    ["_padding", 3],
]
INTRINSIC = ("ingress_global_timestamp", "egress_global_timestamp", "mcast_grp", "egress_rid")
INTRINSIC += ("priority",)
QUEUEING = ("enq_timestamp", "enq_qdepth", "deq_timedelta", "deq_qdepth")
CORE_ERRORS = (
    "NoError",
    "PacketTooShort",
    "NoMatch",
    "StackOutOfBounds",
    "HeaderTooShort",
    "ParserTimeout",
    "ParserInvalidArgument",
)


def hexstr(value: int) -> dict[str, Any]:
    return {"type": "hexstr", "value": hex(value)}


def field(header: str, name: str) -> dict[str, Any]:
    return {"type": "field", "value": [header, name]}


def op(name: str, left: Any, right: Any, **more: Any) -> dict[str, Any]:
    return {"type": "expression", "value": {"op": name, "left": left, "right": right, **more}}


def call(name: str, *parameters: Any) -> dict[str, Any]:
    return {"op": name, "parameters": list(parameters)}


def ref(kind: str, name: str) -> dict[str, Any]:
    return {"type": kind, "value": name}


def argument(index: int) -> dict[str, Any]:
    return {"type": "runtime_data", "value": index}


def local(index: int) -> dict[str, Any]:
    """The same as `argument`, inside an expression."""
    return {"type": "local", "value": index}


def valid(header: str) -> dict[str, Any]:
    return op("valid", None, ref("header", header))


def extract(header: str) -> dict[str, Any]:
    return call("extract", ref("regular", header))


def transition(
    value: int | None, length: int, following: str | None, mask: int | None = None
) -> Any:
    """A parser transition; value None is the default."""
    if value is None:
        return {"type": "default", "value": None, "mask": None, "next_state": following}
    digits = 2 * length
    return {
        "type": "hexstr",
        "value": f"0x{value:0{digits}x}",
        "mask": None if mask is None else f"0x{mask:0{digits}x}",
        "next_state": following,
    }


class Builder:
    """A program that starts with standard_metadata and metadata `m`; empty pipelines."""

    def __init__(self, **metadata: int) -> None:
        self.document: dict[str, Any] = {
            "__meta__": {"version": [2, 23], "compiler": "hand"},
            "program": "test",
            "header_types": [],
            "headers": [],
            "header_stacks": [],
            "header_union_types": [],
            "header_unions": [],
            "header_union_stacks": [],
            "field_lists": [],
            "errors": [[name, i] for i, name in enumerate(CORE_ERRORS)],
            "enums": [],
            "parsers": [{"name": "parser", "id": 0, "init_state": "start", "parse_states": []}],
            "parse_vsets": [],
            "deparsers": [{"name": "deparser", "id": 0, "order": []}],
            "meter_arrays": [],
            "counter_arrays": [],
            "register_arrays": [],
            "calculations": [],
            "learn_lists": [],
            "actions": [],
            "pipelines": [self.pipeline("ingress", 0), self.pipeline("egress", 1)],
            "checksums": [],
            "force_arith": [],
            "extern_instances": [],
            "field_aliases": [],
        }
        self.header_type("standard_metadata", STANDARD_METADATA)
        self.header("standard_metadata", "standard_metadata", metadata=True)
        for kind, names in (("intrinsic", INTRINSIC), ("queueing", QUEUEING)):
            for name in names:
                alias = [f"{kind}_metadata.{name}", ["standard_metadata", name]]
                self.document["field_aliases"].append(alias)
        if metadata:
            padding = -sum(metadata.values()) % 8
            fields = [[n, b] for n, b in metadata.items()]
            self.header_type("m_t", fields + ([["_padding", padding]] if padding else []))
            self.header("m", "m_t", metadata=True)

    @staticmethod
    def pipeline(name: str, number: int) -> dict[str, Any]:
        return {
            "name": name,
            "id": number,
            "init_table": None,
            "tables": [],
            "action_profiles": [],
            "conditionals": [],
            "action_calls": [],
        }

    def add(self, key: str, **members: Any) -> dict[str, Any]:
        item = {"id": len(self.document[key]), **members}
        self.document[key].append(item)
        return item

    def header_type(self, name: str, fields: list[Any], **more: Any) -> None:
        self.add("header_types", name=name, fields=fields, **more)

    def header(self, name: str, header_type: str, metadata: bool = False) -> int:
        item = self.add(
            "headers",
            name=name,
            header_type=header_type,
            metadata=metadata,
            pi_omit=True,
        )
        return int(item["id"])

    def packet_header(
        self, name: str, fields: list[Any], deparse: bool = True, **more: Any
    ) -> None:
        """A header of a type of its own, emitted by the deparser."""
        self.header_type(f"{name}_t", fields, **more)
        self.header(name, f"{name}_t")
        if deparse:
            self.deparse(name)

    def stack(self, name: str, header_type: str, size: int) -> None:
        ids = [self.header(f"{name}[{i}]", header_type) for i in range(size)]
        self.add("header_stacks", name=name, header_type=header_type, size=size, header_ids=ids)
        self.deparse(*[f"{name}[{i}]" for i in range(size)])

    def deparse(self, *names: str) -> None:
        self.document["deparsers"][0]["order"] += names

    def state(
        self,
        name: str,
        ops: list[Any],
        key: list[Any] = (),
        transitions: list[Any] = (),  # type: ignore
    ) -> None:
        states = self.document["parsers"][0]["parse_states"]
        states.append(
            {
                "name": name,
                "id": len(states),
                "parser_ops": ops,
                "transition_key": list(key),
                "transitions": list(transitions) or [transition(None, 0, None)],
            }
        )

    def register(self, name: str, bits: int, size: int) -> None:
        self.add("register_arrays", name=name, bitwidth=bits, size=size)

    def counter(self, name: str, size: int) -> None:
        self.add("counter_arrays", name=name, size=size, is_direct=False)

    def action(self, name: str, primitives: list[Any], **params: int) -> int:
        data = [{"name": n, "bitwidth": b} for n, b in params.items()]
        item = self.add("actions", name=name, runtime_data=data, primitives=primitives)
        return int(item["id"])

    def nodes(self, pipeline: str) -> dict[str, Any]:
        return next(p for p in self.document["pipelines"] if p["name"] == pipeline)

    def table(
        self,
        name: str,
        key: list[tuple[str, list[str]]],
        actions: list[int],
        default: tuple[int, list[int]] | None,
        following: Any = None,
        pipeline: str = "ingress",
        match_type: str | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """`key` lists (kind, [header, field]); following: one node, or {action name: node}."""
        order = ["exact", "lpm", "ternary", "range"]
        kinds = [k for k, _ in key]
        if match_type is None:
            match_type = max((k for k in kinds if k in order), key=order.index, default="exact")
        names = [self.document["actions"][a]["name"] for a in actions]
        if not isinstance(following, dict):
            following = dict.fromkeys(names, following)
        tables = sum(len(p["tables"]) for p in self.document["pipelines"])
        table: dict[str, Any] = {
            "name": name,
            "id": tables,
            "match_type": match_type,
            "type": "simple",
            "max_size": 1024,
            "with_counters": False,
            "support_timeout": False,
            "direct_meters": None,
            "key": [
                {"match_type": k, "name": ".".join(t), "target": t, "mask": None} for k, t in key
            ],
            "action_ids": actions,
            "actions": names,
            "next_tables": following,
            "base_default_next": None,
        }
        if default:
            table["default_entry"] = {
                "action_id": default[0],
                "action_const": False,
                "action_data": [hex(v) for v in default[1]],
                "action_entry_const": False,
            }
        table.update(more)
        self.start(pipeline, name)
        self.nodes(pipeline)["tables"].append(table)
        return table

    def run(
        self, name: str, action: int, following: str | None = None, pipeline: str = "ingress"
    ) -> None:
        """A table without key that always executes `action`."""
        entry = {
            "action_id": action,
            "action_const": True,
            "action_data": [],
            "action_entry_const": True,
        }
        self.table(name, [], [action], None, following, pipeline, default_entry=entry)

    def condition(
        self, name: str, expression: Any, yes: str | None, no: str | None, pipeline: str = "ingress"
    ) -> None:
        self.start(pipeline, name)
        nodes = self.nodes(pipeline)["conditionals"]
        nodes.append(
            {
                "name": name,
                "id": len(nodes),
                "expression": expression,
                "true_next": yes,
                "false_next": no,
            }
        )

    def start(self, pipeline: str, name: str) -> None:
        """The first node added is where the pipeline starts."""
        if self.nodes(pipeline)["init_table"] is None:
            self.nodes(pipeline)["init_table"] = name

    def json(self) -> str:
        return json.dumps(self.document)
