"""Elects the primary controller of each role, which alone may write (P4Runtime 1.4, section 5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from google.rpc import status_pb2
from p4.v1 import p4runtime_pb2

from p4native.switch.p4runtime.status import Code, StatusError, invalid

MAX_ROLE_LENGTH = 256
"""The longest name of a role. There is a limit because roles are remembered, with their highest
election ids, as long as the switch runs."""


class Client(Protocol):
    """The interface of one controller's stream, to which messages can be sent."""

    def send(self, message: p4runtime_pb2.StreamMessageResponse) -> None:
        """Queues a message to the controller."""
        ...


@dataclass
class _Session:
    role: str
    election_id: int | None


@dataclass
class _Role:
    primary: Client | None = None
    highest: int | None = None
    clients: list[Client] = field(default_factory=list)


def election_number(message: p4runtime_pb2.Uint128) -> int:
    """Returns a 128-bit election id as one integer."""
    return message.high << 64 | message.low


class Arbitration:
    """The connected controllers of one device. The class is not thread-safe: the caller must hold a
    lock."""

    def __init__(self, device_id: int) -> None:
        self._device_id = device_id
        self._sessions: dict[Client, _Session] = {}
        self._roles: dict[str, _Role] = {}

    def update(self, client: Client, message: p4runtime_pb2.MasterArbitrationUpdate) -> None:
        """Records that a controller has connected or changed its election id. Raises StatusError,
        which ends the controller's stream, if the message is not allowed."""
        name = message.role.name
        election_id = None
        if message.HasField("election_id"):
            election_id = election_number(message.election_id)
        self._check(client, message, election_id)
        role = self._roles.setdefault(name, _Role())
        if client not in self._sessions:
            role.clients.append(client)
        self._sessions[client] = _Session(name, election_id)
        if election_id is not None and election_id >= (role.highest or 0):
            role.primary, role.highest = client, election_id
            self._notify(name, [c for c in role.clients if c is not client] + [client])
        elif role.primary is client:
            role.primary = None
            self._notify(name, role.clients)
        else:
            self._notify(name, [client])

    def _check(
        self,
        client: Client,
        message: p4runtime_pb2.MasterArbitrationUpdate,
        election_id: int | None,
    ) -> None:
        session = self._sessions.get(client)
        name = message.role.name
        if message.device_id != self._device_id:
            code = Code.FAILED_PRECONDITION if session else Code.NOT_FOUND
            raise StatusError(
                code, f"device_id {message.device_id}: this switch is {self._device_id}"
            )
        if len(name) > MAX_ROLE_LENGTH:
            raise invalid(f"role: a name has at most {MAX_ROLE_LENGTH} characters")
        if session and session.role != name:
            raise StatusError(
                Code.FAILED_PRECONDITION, f"role {name!r}: this stream has role {session.role!r}"
            )
        if message.role.HasField("config"):
            raise invalid("role.config: roles cannot be configured; leave it unset for full access")
        for other, taken in self._sessions.items():
            if (
                other is not client
                and election_id is not None
                and (taken.role, taken.election_id) == (name, election_id)
            ):
                raise invalid(f"election_id {election_id}: another live controller uses it")

    def disconnect(self, client: Client) -> None:
        """Records that a controller's stream has ended."""
        session = self._sessions.pop(client, None)
        if session is None:
            return
        role = self._roles[session.role]
        role.clients.remove(client)
        if role.primary is client:
            role.primary = None
            self._notify(session.role, role.clients)

    def check_primary(self, device_id: int, role: str, election_id: int) -> None:
        """Raises NOT_FOUND for another device or role, and PERMISSION_DENIED for an election id
        that is not the primary's."""
        self.check_device(device_id)
        if role and role not in self._roles:
            raise StatusError(Code.NOT_FOUND, f"role {role!r}: no controller has taken it")
        state = self._roles.get(role)
        if not state or state.primary is None or state.highest != election_id:
            missing = not state or state.primary is None
            there = "no primary" if missing else "a primary with another id"
            raise StatusError(
                Code.PERMISSION_DENIED,
                f"election_id {election_id}: this is not the primary's id; there is {there}",
            )

    def check_device(self, device_id: int) -> None:
        """Raises NOT_FOUND for another device."""
        if device_id != self._device_id:
            raise StatusError(
                Code.NOT_FOUND, f"device_id {device_id}: this switch is {self._device_id}"
            )

    def is_primary(self, client: Client) -> bool:
        """Whether this controller is the primary of its role. Only primaries send and receive
        packets."""
        return any(role.primary is client for role in self._roles.values())

    def primaries(self) -> list[Client]:
        """Returns the primary of every role that has one."""
        return [role.primary for role in self._roles.values() if role.primary is not None]

    def _notify(self, name: str, clients: list[Client]) -> None:
        role = self._roles[name]
        for client in clients:
            response = p4runtime_pb2.StreamMessageResponse()
            update = response.arbitration
            update.device_id = self._device_id
            if name:
                update.role.name = name
            if role.highest is not None:
                update.election_id.high = role.highest >> 64
                update.election_id.low = role.highest & (1 << 64) - 1
            update.status.CopyFrom(_status_for(client, role))
            client.send(response)


def _status_for(client: Client, role: _Role) -> status_pb2.Status:
    if role.primary is client:
        return status_pb2.Status(code=Code.OK, message="you are the primary")
    if role.primary is not None:
        return status_pb2.Status(code=Code.ALREADY_EXISTS, message="another client is the primary")
    return status_pb2.Status(code=Code.NOT_FOUND, message="there is no primary")
