"""The class that serves the entity PacketReplicationEngineEntry: multicast groups and clone
sessions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from p4.v1 import p4runtime_pb2
from p4.v1.p4runtime_pb2 import CloneSessionEntry, Entity, MulticastGroupEntry, Update

from p4native.switch import Pipeline
from p4native.switch.p4runtime.bytestring import decode
from p4native.switch.p4runtime.status import Code, StatusError, invalid, unsupported

MAX_GROUP = (1 << 16) - 1
MAX_SESSION = (1 << 15) - 1
"""The highest number of a clone session. BMv2's mirror sessions are 0..32767, and P4Runtime
reserves 0."""
PORT_BITS = 9
MAX_INSTANCE = (1 << 16) - 1

Replicas = list[tuple[int, int]]


class Replication:
    """The multicast groups and clone sessions of one loaded program, as clients wrote them."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._groups: dict[int, MulticastGroupEntry] = {}
        self._sessions: dict[int, CloneSessionEntry] = {}

    def write(self, kind: int, message: p4runtime_pb2.PacketReplicationEngineEntry) -> None:
        """Inserts, modifies or deletes a group or a session."""
        which = message.WhichOneof("type")
        if which == "multicast_group_entry":
            self._write_group(kind, message.multicast_group_entry)
        elif which == "clone_session_entry":
            self._write_session(kind, message.clone_session_entry)
        else:
            raise invalid("packet_replication_engine_entry: it is neither a group nor a session")

    def _write_group(self, kind: int, message: MulticastGroupEntry) -> None:
        group = message.multicast_group_id
        where = f"multicast_group_id {group}"
        _check_id(where, group, MAX_GROUP)
        _check_existence(where, kind, group in self._groups)
        if kind == Update.DELETE:
            self._pipeline.replication.set_multicast_group(group, [])
            del self._groups[group]
            return
        self._pipeline.replication.set_multicast_group(group, _replicas(where, message.replicas))
        self._groups[group] = MulticastGroupEntry()
        self._groups[group].CopyFrom(message)

    def _write_session(self, kind: int, message: CloneSessionEntry) -> None:
        session = message.session_id
        where = f"clone session_id {session}"
        _check_id(where, session, MAX_SESSION)
        _check_existence(where, kind, session in self._sessions)
        if kind == Update.DELETE:
            self._pipeline.replication.set_clone_session(session, [])
            del self._sessions[session]
            return
        if message.class_of_service:
            raise unsupported(f"{where}: class_of_service")
        if message.packet_length_bytes < 0:
            raise invalid(f"{where}: packet_length_bytes is negative")
        self._pipeline.replication.set_clone_session(
            session, _replicas(where, message.replicas), message.packet_length_bytes
        )
        self._sessions[session] = CloneSessionEntry()
        self._sessions[session].CopyFrom(message)

    def read(self, query: p4runtime_pb2.PacketReplicationEngineEntry) -> Iterator[Entity]:
        """Yields one group or session by its id, all of one kind (id 0), or all of both kinds."""
        which = query.WhichOneof("type")
        if which == "multicast_group_entry":
            yield from self._read_groups(query.multicast_group_entry.multicast_group_id)
        elif which == "clone_session_entry":
            yield from self._read_sessions(query.clone_session_entry.session_id)
        else:
            yield from self._read_groups(0)
            yield from self._read_sessions(0)

    def _read_groups(self, wanted: int) -> Iterator[Entity]:
        for group in _chosen(self._groups, wanted, "multicast_group_id"):
            entity = Entity()
            entity.packet_replication_engine_entry.multicast_group_entry.CopyFrom(group)
            yield entity

    def _read_sessions(self, wanted: int) -> Iterator[Entity]:
        for session in _chosen(self._sessions, wanted, "clone session_id"):
            entity = Entity()
            entity.packet_replication_engine_entry.clone_session_entry.CopyFrom(session)
            yield entity


def _chosen(stored: dict[int, object], wanted: int, what: str) -> list[object]:
    if not wanted:
        return [stored[key] for key in sorted(stored)]
    if wanted not in stored:
        raise StatusError(Code.NOT_FOUND, f"{what} {wanted}: it is not configured")
    return [stored[wanted]]


def _check_id(where: str, value: int, maximum: int) -> None:
    if not 0 < value <= maximum:
        raise invalid(f"{where}: only 1 to {maximum} are allowed")


def _check_existence(where: str, kind: int, exists: bool) -> None:
    if kind == Update.INSERT and exists:
        raise StatusError(Code.ALREADY_EXISTS, f"{where}: it exists already")
    if kind != Update.INSERT and not exists:
        raise StatusError(Code.NOT_FOUND, f"{where}: it is not configured")


def _replicas(where: str, messages: Sequence[p4runtime_pb2.Replica]) -> Replicas:
    replicas = [_replica(where, message) for message in messages]
    if len(set(replicas)) != len(replicas):
        raise invalid(f"{where}: a (port, instance) pair is given twice")
    return replicas


def _replica(where: str, message: p4runtime_pb2.Replica) -> tuple[int, int]:
    if message.backup_replicas:
        raise unsupported(f"{where}: backup_replicas")
    if message.WhichOneof("port_kind") == "port":
        port = decode(message.port, PORT_BITS, f"{where}, replica port")
    else:
        port = message.egress_port
    if port >= 1 << PORT_BITS:
        raise invalid(f"{where}: replica port {port} does not fit {PORT_BITS} bits")
    if message.instance > MAX_INSTANCE:
        raise invalid(f"{where}: replica instance {message.instance} is above {MAX_INSTANCE}")
    return port, message.instance
