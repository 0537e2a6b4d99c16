"""Reads P4Info from a file, in text or binary form."""

from __future__ import annotations

from google.protobuf import text_format
from google.protobuf.message import DecodeError
from p4.config.v1 import p4info_pb2

from p4native.common.p4info_messages import new_message


def read_p4info(data: bytes) -> p4info_pb2.P4Info:
    """Returns the P4Info in a file's bytes, which are in text or binary form. Raises ValueError
    with the reason if they are neither."""
    try:
        message = text_format.Parse(data.decode(), new_message("P4Info"))
        return p4info_pb2.P4Info.FromString(message.SerializeToString())
    except UnicodeDecodeError as error:
        problem = str(error)
    except text_format.ParseError as error:
        problem = str(error).splitlines()[0]
    try:
        return p4info_pb2.P4Info.FromString(data)
    except DecodeError:
        raise ValueError(f"neither text nor binary P4Info: {problem}") from None
