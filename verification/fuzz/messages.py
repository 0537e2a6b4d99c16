"""Fuzz targets for messages from other programs: P4Runtime requests, lines that agents send, and
datagrams that workers receive."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import tempfile
from pathlib import Path
from typing import Any

import p4native.switch.p4runtime  # before protobuf is first imported

# isort: split
from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2

from agglab.hosts.wire import Chunk, Kind
from agglab.testbed.agents import AgentFailed, Agents
from agglab.testbed.worker_id import WorkerId
from agglab.verification.fuzz.inputs import Target, source_text
from p4native.compiler.backend import emit
from p4native.compiler.diagnostics import Diagnostics, render
from p4native.compiler.frontend import check_text
from p4native.switch import Pipeline, Program
from p4native.switch.build import build_library
from p4native.switch.p4runtime.device import Device
from p4native.switch.p4runtime.links import Links
from p4native.switch.p4runtime.status import BatchError, StatusError
from p4native.switch.translate import translate

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

    def __init__(self, tests: Path) -> None:
        super().__init__(tests)
        self.devices: dict[str, tuple[p4info_pb2.P4Info, Program, Path, bytes]] = {}
        self.links = Links({})

    def _made(self, name: str) -> tuple[p4info_pb2.P4Info, Program, Path, bytes]:
        if name not in self.devices:
            diagnostics = Diagnostics()
            path = self.tests / f"{name}.p4"
            typed = check_text(source_text(path, diagnostics), str(path), diagnostics)
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
        """Draws the name of a program, and updates as text."""
        name = rng.choice(PROGRAMS)
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


class AgentTarget(Target):
    """The target for messages that agents send on the control socket. They must be read as events
    or lead to AgentFailed."""

    name = "agents"

    def draw(self, rng: random.Random) -> str:
        good = {"event": "ready", "job": 0, "name": "w0", "rank": 0}
        lines = []
        for _ in range(rng.randrange(1, 5)):
            event: Any = dict(good)
            if rng.random() < 0.7:
                key = rng.choice([*good, "other"])
                event[key] = rng.choice(
                    (None, [], {}, "", -1, 1 << 70, 1.5, True, "w0", [[]], {"a": []})
                )
            if rng.random() < 0.2:
                event.pop(rng.choice(list(event)))
            line = json.dumps(rng.choice((event, event, event, [], 3, None, "x")))
            lines.append(line if rng.random() < 0.8 else line[: rng.randrange(len(line) + 1)])
        return "\n".join(lines) + "\n"

    def survive(self, text: str) -> None:
        with tempfile.TemporaryDirectory() as folder, Agents(Path(folder) / "s") as agents:
            agents.expect(WorkerId(0, "w0"))
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
                peer.connect(str(agents.path))
                peer.sendall(text.encode())
            try:
                while agents.poll(0.0):
                    pass
                agents.poll(0.0)
            except AgentFailed as error:
                assert "\n" not in str(error)


class DatagramTarget(Target):
    """The target for UDP payloads that a worker receives. The worker must read each as a chunk or
    ignore it."""

    name = "datagrams"

    def draw(self, rng: random.Random) -> str:
        lanes = rng.choice((1, 3, 64))
        values = tuple(rng.getrandbits(31) for _ in range(lanes))
        chunk = Chunk(rng.choice(list(Kind)), 1, rng.randrange(4), rng.randrange(4), values=values)
        data = bytearray(chunk.emit())
        for _ in range(rng.randrange(4)):
            data[rng.randrange(min(len(data), 24))] = rng.randrange(256)
        if rng.random() < 0.4:
            data = data[: rng.randrange(len(data))] + rng.randbytes(rng.choice((0, 0, 9, 9000)))
        return f"{lanes} {data.hex()}"

    def survive(self, text: str) -> None:
        lanes, data = text.split(" ", 1)
        datagram = bytes.fromhex(data)
        chunk = Chunk.parse(datagram, int(lanes))
        if chunk is not None:
            assert str(chunk) and chunk.emit() == datagram
