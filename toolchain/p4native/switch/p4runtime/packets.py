"""Translates packet-in and packet-out: frames of the CPU port to P4Runtime messages, and back.

The program puts a packet_in header in front of each frame that it sends to the CPU port. It expects
a packet_out header in front of each frame from that port. P4Info's controller_packet_metadata says
what these headers contain.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence

from p4.v1 import p4runtime_pb2

from p4native.switch.p4runtime.bytestring import decode, encode
from p4native.switch.p4runtime.p4info import Field
from p4native.switch.p4runtime.status import invalid

MAX_FRAME = 65535 + 18


def header_bytes(fields: Sequence[Field]) -> int:
    """Returns the length in bytes of a controller header with these fields. Such a header consists
    of whole bytes."""
    return sum(field.bits for field in fields) // 8


def encode_packet_out(fields: Sequence[Field], message: p4runtime_pb2.PacketOut) -> bytes:
    """Returns the frame that enters the switch on its CPU port."""
    if len(message.payload) > MAX_FRAME:
        raise invalid(
            f"packet.payload: it has {len(message.payload)} bytes; {MAX_FRAME} are allowed"
        )
    given = {item.metadata_id: item.value for item in message.metadata}
    if unknown := sorted(given.keys() - {field.id for field in fields}):
        raise invalid(f"packet.metadata: no packet_out field with id {unknown[0]}")
    header = 0
    for field in fields:
        where = f"packet.metadata {field.name}"
        if field.id not in given:
            raise invalid(f"{where}: it is missing")
        header = header << field.bits | decode(given[field.id], field.bits, where)
    return header.to_bytes(header_bytes(fields), "big") + message.payload


def decode_packet_in(fields: Sequence[Field], frame: bytes) -> p4runtime_pb2.PacketIn | None:
    """Returns the message for a frame that left on the CPU port, or None if the frame is shorter
    than its header."""
    length = header_bytes(fields)
    if len(frame) < length:
        return None
    message = p4runtime_pb2.PacketIn(payload=frame[length:])
    header = int.from_bytes(frame[:length], "big")
    below = 8 * length
    for field in fields:
        below -= field.bits
        value = header >> below & (1 << field.bits) - 1
        message.metadata.add(metadata_id=field.id, value=encode(value))
    return message


def receive_frames(controller: socket.socket, deliver: Callable[[bytes], None]) -> None:
    """Passes the CPU port's frames to `deliver` until the socket is shut down."""
    while True:
        try:
            frame = controller.recv(MAX_FRAME)
        except OSError:
            return
        if not frame:
            return
        deliver(frame)
