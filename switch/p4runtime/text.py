"""P4Info from a file, text or binary."""

from __future__ import annotations

from google.protobuf import text_format
from google.protobuf.message import DecodeError
from p4.config.v1 import p4info_pb2

from agglab.common.p4info_messages import new_message


def read_p4info(data: bytes) -> p4info_pb2.P4Info:
    """P4Info from a file's bytes, text or binary; ValueError says why not."""
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
