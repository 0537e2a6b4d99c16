"""Makes the protobuf classes of P4Info from the descriptors of the p4runtime package.

The classes that the package itself contains are too old for current protobuf releases. They hold
map fields (`type_info`) as repeated messages, which the text and JSON formats do not expect. The
bytes on the wire are the same.
"""

from __future__ import annotations

import os
from functools import lru_cache
from threading import Lock
from typing import Any

# The package's modules are only accepted by protobuf's Python implementation.
os.environ.setdefault("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python")
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from p4.config.v1 import p4info_pb2

# protobuf's pools and classes are not made to be built by two threads at once
_LOCK = Lock()


def new_message(name: str) -> Any:
    """Returns an empty message of the type p4.config.v1.`name`."""
    with _LOCK:
        return _message_class(f"p4.config.v1.{name}")()


@lru_cache(maxsize=8)
def _message_class(full_name: str) -> Any:
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(full_name))


@lru_cache(maxsize=1)
def _pool() -> Any:
    pool = descriptor_pool.DescriptorPool()
    _add(pool, p4info_pb2.DESCRIPTOR, set())
    return pool


def _add(pool: Any, file: Any, known: set[str]) -> None:
    """Adds the descriptor of a protobuf file to the pool, after the descriptors on which it
    depends. known: the names of the files that the pool has."""
    if file.name in known:
        return
    known.add(file.name)
    for dependency in file.dependencies:
        _add(pool, dependency, known)
    proto = descriptor_pb2.FileDescriptorProto()
    proto.ParseFromString(file.serialized_pb)
    pool.Add(proto)
