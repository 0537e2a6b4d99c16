"""The target for P4Runtime requests."""

from __future__ import annotations

import contextlib
import json
import random
from pathlib import Path
from typing import Any

import p4native.switch.p4runtime  # before protobuf is first imported

# isort: split
from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2

from p4native.compiler import Diagnostics, render
from p4native.compiler.backend import emit
from p4native.compiler.frontend import check_text
from p4native.switch import Pipeline, Program
from p4native.switch.build import build_library
from p4native.switch.p4runtime.device import Device
from p4native.switch.p4runtime.links import Links
from p4native.switch.p4runtime.status import BatchError, StatusError
from p4native.switch.translate import translate
from p4native.verification.corpus import Corpus
from p4native.verification.fuzz.inputs import source_text
from p4native.verification.fuzz.target import Target

assert p4native.switch.p4runtime
PROGRAMS = (
    "ipv4_router",
    "direct_counter",
    "meters",
    "registers",
    "parser_value_set",
    "table_optional",
    "table_range",
    "table_const_entries",
    "action_run",
    "multicast",
    "clone_ingress",
    "counters",
)
UPDATES = 30
SHAPES = (b"", b"\0", b"\1", b"\x0a", b"\xff" * 2, b"\0\1", b"\x0a\0\0\1", b"\xff" * 6, b"\1" * 17)


class RuntimeTarget(Target):
    """The target for P4Runtime updates and queries. A device must execute each of them or refuse it
    with a status."""

    name = "p4runtime"

    def __init__(self, corpus: Corpus) -> None:
        super().__init__(corpus)
        self.programs = [str(path) for path in corpus.chosen(PROGRAMS)]
        self.devices: dict[str, tuple[p4info_pb2.P4Info, Program, Path, bytes]] = {}
        self.links = Links({})

    def _made(self, name: str) -> tuple[p4info_pb2.P4Info, Program, Path, bytes]:
        if name not in self.devices:
            diagnostics = Diagnostics()
            typed = check_text(source_text(Path(name), diagnostics), name, diagnostics)
            assert typed is not None
            emitted = emit(typed, diagnostics)
            assert emitted is not None, render(diagnostics.entries)
            document = emitted[0]
            info = p4info_pb2.P4Info.FromString(emitted[1].SerializeToString())
            program = Program.parse(json.dumps(document))
            library = build_library(translate(program), quick=True)
            self.devices[name] = (info, program, library, json.dumps(document).encode())
        return self.devices[name]

    def draw(self, rng: random.Random) -> str:
        """Draws the path of a program, and updates as text."""
        name = rng.choice(self.programs)
        ids = identifiers(self._made(name)[0])
        request = p4runtime_pb2.WriteRequest()
        for _ in range(UPDATES):
            update = request.updates.add(type=rng.choice((1, 1, 1, 2, 2, 3, 0, 9)))
            fill_message(rng, update.entity, ids, 0)
            if rng.random() < 0.7:
                guide(rng, update.entity, self._made(name)[0])
        return f"{name}\n{text_format.MessageToString(request)}"

    def survive(self, text: str) -> None:
        name, rest = text.split("\n", 1)
        info, program, library, config = self._made(name)
        request = text_format.Parse(rest, p4runtime_pb2.WriteRequest())
        with Pipeline(program, library) as pipeline:
            device = Device(lambda _: None, links=self.links)
            device.run(pipeline)
            device.describe(info, config)
            for update in request.updates:
                with contextlib.suppress(StatusError, BatchError):
                    device.write([update])
                with contextlib.suppress(StatusError):
                    for entity in device.read([update.entity]):
                        entity.SerializeToString()
            pipeline.process(1, bytes(100), 0)


def identifiers(info: Message) -> list[int]:
    """Returns all ids of a P4Info."""
    found: list[int] = []
    for field, value in info.ListFields():
        for item in value if field.is_repeated else [value]:
            if isinstance(item, Message):
                found += identifiers(item)
            elif field.name in ("id", "table_id") and isinstance(item, int):
                found.append(item)
    return found


def fill_message(rng: random.Random, message: Message, ids: list[int], depth: int) -> None:
    """Fills some fields of a message at random. Most of the ids in it exist in the program."""
    chosen = [f for f in message.DESCRIPTOR.fields if rng.random() < (0.5 if depth else 0.15)]
    for field in chosen:
        for _ in range(rng.randrange(1, 4) if field.is_repeated else 1):
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                if depth < 6:
                    holder = getattr(message, field.name)
                    fill_message(rng, holder.add() if field.is_repeated else holder, ids, depth + 1)
                continue
            value = scalar(rng, field, ids)
            if field.is_repeated:
                getattr(message, field.name).append(value)
            else:
                setattr(message, field.name, value)


def scalar(rng: random.Random, field: FieldDescriptor, ids: list[int]) -> Any:
    if field.type == FieldDescriptor.TYPE_BYTES:
        return rng.choice(SHAPES)
    if field.type == FieldDescriptor.TYPE_STRING:
        return rng.choice(("", "x", "é", "*"))
    if field.type == FieldDescriptor.TYPE_BOOL:
        return rng.random() < 0.5
    if field.type == FieldDescriptor.TYPE_ENUM:
        return rng.choice([v.number for v in field.enum_type.values])
    if field.type in (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT):
        return rng.choice((0.0, 1.5, -1.0, float("nan"), float("inf")))
    if field.name.endswith("id") and rng.random() < 0.8:
        return rng.choice([*ids, 1, 2, 3])
    unsigned = field.type in (FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_UINT64)
    wide = field.type in (FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_UINT64)
    numbers = [0, 1, 2, 3, 7, 511, 1 << 30, (1 << (63 if wide else 31)) - 1]
    return rng.choice(numbers if unsigned else [*numbers, -1, -(1 << (63 if wide else 31))])


def guide(rng: random.Random, entity: Any, info: Any) -> None:
    """Makes a table entry almost valid: with fields of its table, one of the table's actions, and
    data for that action."""
    if not entity.HasField("table_entry") or not info.tables:
        return
    table = rng.choice(info.tables)
    entry = entity.table_entry
    entry.table_id = table.preamble.id
    del entry.match[:]
    for field in table.match_fields:
        width = (field.bitwidth + 7) // 8
        value = rng.choice((b"\0", b"\1", b"\x0a" * width, b"\xff" * width, b""))
        match = entry.match.add(field_id=field.id)
        which = rng.choice((field.match_type, field.match_type, rng.randrange(7)))
        if which == 2:
            match.exact.value = value
        elif which == 3:
            match.lpm.value, match.lpm.prefix_len = value, rng.choice((0, 8, 24, 32, -1, 99))
        elif which == 4:
            match.ternary.value, match.ternary.mask = value, rng.choice((value, b"\xff" * width))
        elif which == 5:
            match.range.low, match.range.high = value, rng.choice((value, b"\xff" * width))
        elif which == 6:
            match.optional.value = value
    if table.action_refs and rng.random() < 0.9:
        entry.action.Clear()
        chosen = rng.choice(table.action_refs).id
        entry.action.action.action_id = chosen
        for action in info.actions:
            for parameter in action.params if action.preamble.id == chosen else ():
                value = rng.choice((b"\0", b"\1", b"\xff" * 9, b"\x05"))
                entry.action.action.params.add(param_id=parameter.id, value=value)
