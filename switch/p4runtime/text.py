"""P4Info from text. The p4runtime package's own classes cannot: under protobuf's Python code their
map fields (type_info) are plain lists, which text_format does not expect. Classes made afresh from
the same descriptors can, and the bytes are the same."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.message import DecodeError
from p4.config.v1 import p4info_pb2


def read_p4info(data: bytes) -> p4info_pb2.P4Info:
    """P4Info from a file's bytes, text or binary; ValueError says why not."""
    try:
        message = text_format.Parse(data.decode(), _message_class()())
        return p4info_pb2.P4Info.FromString(message.SerializeToString())
    except UnicodeDecodeError as error:
        problem = str(error)
    except text_format.ParseError as error:
        problem = str(error).splitlines()[0]
    try:
        return p4info_pb2.P4Info.FromString(data)
    except DecodeError:
        raise ValueError(f"neither text nor binary P4Info: {problem}") from None


@lru_cache(maxsize=1)
def _message_class() -> Any:
    pool = descriptor_pool.DescriptorPool()
    _add(pool, p4info_pb2.DESCRIPTOR, set())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p4.config.v1.P4Info"))


def _add(pool: descriptor_pool.DescriptorPool, file: Any, known: set[str]) -> None:
    """A file's descriptor after those it depends on."""
    if file.name in known:
        return
    known.add(file.name)
    for dependency in file.dependencies:
        _add(pool, dependency, known)
    proto = descriptor_pb2.FileDescriptorProto()
    proto.ParseFromString(file.serialized_pb)
    pool.Add(proto)
