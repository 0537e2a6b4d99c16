"""A P4Runtime client with the functions that a run needs. Its error messages contain the server's
reasons."""

from __future__ import annotations

import os
import queue
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

# p4runtime's generated code (up to 1.6.0) is refused by protobuf's C implementation.
os.environ.setdefault("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python")
# gRPC tells the terminal of connections that end, as ours do when a switch is stopped.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

import grpc
from google.rpc import code_pb2, status_pb2
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2 as pb
from p4.v1 import p4runtime_pb2_grpc

from agglab.testbed.systems.plan import Entries, Replica, TableEntry
from agglab.testbed.systems.plan.changes import (
    NO_ENTRIES,
    group_changes,
    session_changes,
    table_changes,
)
from p4native.bmv2.errors import ControlError
from p4native.common.object_names import full_name, is_called, matching
from p4native.switch.p4runtime.text import read_p4info

# Giving a switch its program includes compiling it, which a busy machine does slowly.
CALL_TIMEOUT_S = 180.0
CHANNEL_OPTIONS = (
    # Unix sockets have no authority to derive; without it some servers refuse the call.
    ("grpc.default_authority", "localhost"),
    ("grpc.initial_reconnect_backoff_ms", 20),
    ("grpc.max_reconnect_backoff_ms", 100),
    ("grpc.max_receive_message_length", -1),
)


class P4RuntimeError(ControlError):
    """Raised if a server refused a request or did not answer. The message is one line with the
    request, the code and the server's reason."""


class P4RuntimeClient:
    """A connection to one switch as its primary controller. address: in gRPC's notation, such as
    `unix:/run/x.sock`."""

    def __init__(self, address: str, device_id: int, p4info: Path) -> None:
        self._device_id = device_id
        self._election_id = pb.Uint128(low=1)
        self._info = read_p4info(p4info.read_bytes())
        self._names = Names(self._info)
        self._channel = grpc.insecure_channel(address, options=CHANNEL_OPTIONS)
        self._stub = p4runtime_pb2_grpc.P4RuntimeStub(self._channel)
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def answers(self, within_s: float) -> bool:
        """Returns whether the server answers Capabilities within that time. The server may have
        just been started."""
        try:
            request = pb.CapabilitiesRequest()
            self._stub.Capabilities(request, timeout=within_s, wait_for_ready=True)
        except grpc.RpcError:
            return False
        return True

    def become_primary(self) -> None:
        """Wins the mastership election, so that writes are accepted. Raises P4RuntimeError if
        another client has won it."""
        request = pb.StreamMessageRequest()
        request.arbitration.device_id = self._device_id
        request.arbitration.election_id.CopyFrom(self._election_id)
        self._requests.put(request)
        # Kept: gRPC cancels a stream that nobody refers to, and with it goes the election.
        stream = self._stub.StreamChannel(iter(self._requests.get, None), wait_for_ready=True)
        self._stream = stream
        answer = self._explain("election", lambda: next(stream))
        if answer.arbitration.status.code != 0:
            raise P4RuntimeError(f"mastership election: {answer.arbitration.status.message}")

    def set_pipeline(self, program_json: bytes) -> None:
        """Gives the switch its program (BMv2 JSON) and this client's P4Info."""
        request = pb.SetForwardingPipelineConfigRequest(
            device_id=self._device_id,
            election_id=self._election_id,
            action=pb.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
        )
        request.config.p4info.CopyFrom(self._info)
        request.config.p4_device_config = program_json
        call = self._stub.SetForwardingPipelineConfig
        self._explain("set pipeline", lambda: call(request, timeout=CALL_TIMEOUT_S))

    def insert(self, entries: Entries) -> None:
        """Inserts all groups and table entries in one write."""
        self.change(NO_ENTRIES, entries)

    def change(self, old: Entries, new: Entries) -> None:
        """Changes the entries from `old` to `new`. It writes all differences in one request."""
        request = pb.WriteRequest(device_id=self._device_id, election_id=self._election_id)
        for kind, group, replicas in group_changes(old, new):
            multicast = _replication(request, kind).multicast_group_entry
            multicast.multicast_group_id = group
            _add_replicas(multicast, replicas)
        for kind, number, session in session_changes(old, new):
            clone = _replication(request, kind).clone_session_entry
            clone.session_id = number
            clone.packet_length_bytes = session.max_bytes
            _add_replicas(clone, session.replicas)
        for kind, entry in table_changes(old, new):
            # A default entry is always there: it can only be modified, without action to reset it.
            change = "MODIFY" if entry.default else kind
            update = request.updates.add(type=pb.Update.Type.Value(change))
            update.entity.table_entry.CopyFrom(self._names.table_entry(entry))
            if entry.default and kind == "DELETE":
                update.entity.table_entry.ClearField("action")
        if request.updates:
            self._explain("write", lambda: self._stub.Write(request, timeout=CALL_TIMEOUT_S))

    def read_counter(self, counter: str) -> dict[int, tuple[int, int]]:
        """Returns (packets, bytes) by index of an indirect counter, or by the order of the table's
        entries of a direct one. The counter is named as in TableEntry."""
        request = pb.ReadRequest(device_id=self._device_id)
        if table := self._names.table_of_direct_counter(counter):
            return self._read_direct(counter, table)
        request.entities.add().counter_entry.counter_id = self._names.counter(counter)

        def read() -> dict[int, tuple[int, int]]:
            cells = (
                entity.counter_entry
                for response in self._stub.Read(request, timeout=CALL_TIMEOUT_S)
                for entity in response.entities
            )
            return {c.index.index: (c.data.packet_count, c.data.byte_count) for c in cells}

        return self._explain(f"reading counter {counter}", read)

    def _read_direct(self, counter: str, table: int) -> dict[int, tuple[int, int]]:
        request = pb.ReadRequest(device_id=self._device_id)
        request.entities.add().direct_counter_entry.table_entry.table_id = table

        def read() -> dict[int, tuple[int, int]]:
            entries = (
                entity.direct_counter_entry.data
                for response in self._stub.Read(request, timeout=CALL_TIMEOUT_S)
                for entity in response.entities
            )
            return {n: (data.packet_count, data.byte_count) for n, data in enumerate(entries)}

        return self._explain(f"reading counter {counter}", read)

    def read_register(self, register: str, indices: Iterable[int]) -> list[int]:
        """Returns the unsigned contents of these cells; the register is named as in TableEntry."""
        request = pb.ReadRequest(device_id=self._device_id)
        for index in indices:
            cell = request.entities.add().register_entry
            cell.register_id = self._names.register(register)
            cell.index.index = index

        def read() -> list[int]:
            cells = {
                entity.register_entry.index.index: entity.register_entry.data
                for response in self._stub.Read(request, timeout=CALL_TIMEOUT_S)
                for entity in response.entities
            }
            wanted = (entity.register_entry.index.index for entity in request.entities)
            return [int.from_bytes(cells[index].bitstring, "big") for index in wanted]

        return self._explain(f"reading register {register}", read) if request.entities else []

    def close(self) -> None:
        self._requests.put(None)
        self._channel.close()

    @staticmethod
    def _explain(what: str, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except grpc.RpcError as error:
            whole = f"{error.code().name}: {error.details()}"
            raise P4RuntimeError(f"{what}: {'; '.join(_reasons(error)) or whole}") from error


def _replication(request: Any, kind: str) -> Any:
    update = request.updates.add(type=pb.Update.Type.Value(kind))
    return update.entity.packet_replication_engine_entry


def _add_replicas(message: Any, replicas: Iterable[Replica]) -> None:
    for replica in replicas:
        message.replicas.add(egress_port=replica.port, instance=replica.instance)


def _reasons(error: Any) -> Iterator[str]:
    """Yields the server's reason for each refused update of a batch (P4Runtime section 10,
    p4.v1.Error details)."""
    for key, value in error.trailing_metadata() or ():
        if key != "grpc-status-details-bin":
            continue
        for detail in status_pb2.Status.FromString(value).details:
            reason = pb.Error()
            if detail.Unpack(reason) and reason.canonical_code != 0:
                yield f"{code_pb2.Code.Name(reason.canonical_code)}: {reason.message}"


class Names:
    """The names of the objects of a P4Info. An object is found by its full name, by its alias, or
    by the last part of its name if no other object shares that part."""

    def __init__(self, info: Any) -> None:
        self._info = info

    @classmethod
    def read(cls, p4info: Path) -> Names:
        """Returns the names in a P4Info that is text protobuf."""
        return cls(read_p4info(p4info.read_bytes()))

    def counter(self, name: str) -> int:
        return int(_named(self._info.counters, name, "counter").preamble.id)

    def table_of_direct_counter(self, name: str) -> int:
        """Returns the table of a direct counter; 0 if there is no direct counter of this name."""
        known = {each.preamble.name: each for each in self._info.direct_counters}
        found = matching(known, name)
        return int(known[found[0]].direct_table_id) if len(found) == 1 else 0

    def register(self, name: str) -> int:
        return int(_named(self._info.registers, name, "register").preamble.id)

    def table_entry(self, entry: TableEntry) -> Any:
        """Returns the protobuf of an entry. Raises ValueError with the name of an object that
        P4Info lacks."""
        table = _named(self._info.tables, entry.table, "table")
        action = _named(self._info.actions, entry.action, "action")
        message = pb.TableEntry(
            table_id=table.preamble.id, priority=entry.priority, is_default_action=entry.default
        )
        for name, value in entry.match.items():
            key = _field(table.match_fields, name, f"key of table {entry.table}")
            self._add_match(message, key, value)
        message.action.action.action_id = action.preamble.id
        for name, number in entry.parameters.items():
            parameter = _field(action.params, name, f"parameter of action {entry.action}")
            encoded = encode(number, parameter.bitwidth, f"{entry.action}.{name}")
            message.action.action.params.add(param_id=parameter.id, value=encoded)
        return message

    @staticmethod
    def _add_match(message: Any, key: Any, value: int | tuple[int, int]) -> None:
        match = message.match.add(field_id=key.id)
        kind = p4info_pb2.MatchField.MatchType.Name(key.match_type)
        if not isinstance(value, tuple):
            match.exact.value = encode(value, key.bitwidth, key.name)
        elif kind == "LPM":
            match.lpm.value = encode(value[0], key.bitwidth, key.name)
            match.lpm.prefix_len = value[1]
        elif kind == "RANGE":
            match.range.low = encode(value[0], key.bitwidth, key.name)
            match.range.high = encode(value[1], key.bitwidth, key.name)
        elif kind == "OPTIONAL":
            match.optional.value = encode(value[0], key.bitwidth, key.name)
        else:
            match.ternary.value = encode(value[0] & value[1], key.bitwidth, key.name)
            match.ternary.mask = encode(value[1], key.bitwidth, key.name)


def encode(value: int, bits: int, what: str) -> bytes:
    """Returns P4Runtime's canonical byte string of a number: big endian, as short as possible, at
    least one byte."""
    if not 0 <= value < 1 << bits:
        raise ValueError(f"{what}: {value} does not fit into {bits} bits")
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def _named(objects: Any, name: str, kind: str) -> Any:
    known = {each.preamble.name: each for each in objects}
    return known[full_name(known, name, kind)]


def _field(fields: Any, name: str, kind: str) -> Any:
    for each in fields:
        if is_called(each.name, name):
            return each
    raise ValueError(f"{kind} {name} does not exist; it has {', '.join(f.name for f in fields)}")
