"""Reads device configurations of older controllers: BMv2 JSON inside a p4.tmp.P4DeviceConfig.

The p4lang tutorials still send these. Only the member `device_data` of the message is used.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

DEVICE_DATA = 3
JSON_STARTS = (b"{", b" ", b"\t", b"\r", b"\n")


def device_data(config: bytes) -> bytes:
    """Returns the BMv2 JSON of a p4_device_config, with or without the message around it."""
    if config.startswith(JSON_STARTS):
        return config
    try:
        message = _message_class().FromString(config)
    except DecodeError:
        return config
    data: bytes = message.device_data
    return data or config


@lru_cache(maxsize=1)
def _message_class() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="p4config.proto", package="p4.tmp")
    message = file.message_type.add(name="P4DeviceConfig")
    field = message.field.add(name="device_data", number=DEVICE_DATA)
    field.type = descriptor_pb2.FieldDescriptorProto.TYPE_BYTES
    field.label = descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p4.tmp.P4DeviceConfig"))
