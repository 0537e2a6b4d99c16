"""Runs a student's Python file in a process of its own, and answers requests about it.

It is started as a script within the jail (jail.py), where nothing of Agglab but `hosts` can be
imported. Whatever the file does, this process can only answer: the verdict is made elsewhere.
Requests and answers are JSON in the form of `encoded`, each after its length in 4 bytes.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import re
import socket
import struct
import sys
import traceback
from typing import Any

LENGTH = struct.Struct("!I")
MESSAGE_BYTES_MAX = 16 << 20
DTYPE = re.compile(r"[<>|=]?[biuf][1248]")
SOCKET = 3
"""The descriptor of the socket on which requests come."""


class Objects:
    """The objects of the student that have been handed out, by number. 0 is the module."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def number(self, value: Any) -> int:
        self.kept.append(value)
        return len(self.kept) - 1


def encoded(value: Any, objects: Objects | None) -> Any:
    """Returns a value as plain JSON. Values of subclasses become values of the plain class, so that
    nobody depends on their methods. objects: where other objects are kept; without it they are an
    error."""
    if value is None or isinstance(value, bool):
        return value
    for plain in (int, float, str):
        if isinstance(value, plain):
            return _plain(value, plain)
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, (list, tuple, set, frozenset)):
        kind = "list" if isinstance(value, list) else "tuple" if isinstance(value, tuple) else "set"
        return {kind: [encoded(item, objects) for item in value]}
    if isinstance(value, dict):
        pairs = [[encoded(key, objects), encoded(item, objects)] for key, item in value.items()]
        return {"dict": pairs}
    return _array(value) or _handle(value, objects)


def _plain(value: Any, plain: Any) -> Any:
    """Returns a number or text as the class `plain`, of which its class may be a subclass."""
    return value if type(value) is plain else plain.__new__(plain, value)


def _array(value: Any) -> Any:
    """Returns a NumPy array or number as plain JSON; None for other values."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, (numpy.ndarray, numpy.generic)):
        return None
    array = numpy.ascontiguousarray(value)
    if not DTYPE.fullmatch(array.dtype.str):
        return None
    content = base64.b64encode(array.tobytes()).decode()
    shape = None if isinstance(value, numpy.generic) else list(value.shape)
    return {"array": [array.dtype.str, shape, content]}


def _handle(value: Any, objects: Objects | None) -> Any:
    if objects is None:
        raise TypeError(f"a check cannot pass a {type(value).__name__} to the student's code")
    return {"object": [objects.number(value), type(value).__name__]}


def decoded(value: Any, objects: Any) -> Any:
    """Returns the value of plain JSON. objects: maps a number and the name of a class to an
    object."""
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "bytes":
        return base64.b64decode(content)
    if kind in ("list", "tuple", "set"):
        make = {"list": list, "tuple": tuple, "set": set}[kind]
        return make(decoded(item, objects) for item in content)
    if kind == "dict":
        return {decoded(key, objects): decoded(item, objects) for key, item in content}
    if kind == "array":
        return _decoded_array(*content)
    if kind == "object":
        return objects(*content)
    raise ValueError(f"no kind of value: {kind}")


def _decoded_array(dtype: str, shape: Any, content: str) -> Any:
    import numpy

    if not DTYPE.fullmatch(dtype):
        raise ValueError(f"no type of numbers: {dtype}")
    array = numpy.frombuffer(base64.b64decode(content), dtype).copy()
    return array[0] if shape is None else array.reshape([int(length) for length in shape])


def send(channel: socket.socket, message: Any) -> None:
    """Sends a message, which is plain JSON."""
    raw = json.dumps(message).encode()
    channel.sendall(LENGTH.pack(len(raw)) + raw)


def receive(channel: socket.socket) -> Any:
    """Returns the next message. Raises EOFError at the end, and ValueError for nonsense."""
    (length,) = LENGTH.unpack(_exactly(channel, LENGTH.size))
    if length > MESSAGE_BYTES_MAX:
        raise ValueError(f"an answer has more than {MESSAGE_BYTES_MAX >> 20} MiB")
    return json.loads(_exactly(channel, length))


def _exactly(channel: socket.socket, length: int) -> bytes:
    parts = bytearray()
    while len(parts) < length:
        part = channel.recv(min(length - len(parts), 1 << 16))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


def answer(objects: Objects, request: Any) -> Any:
    """Returns the value that a request asks for."""
    verb, number, *rest = request

    def kept(index: int, _: str = "") -> Any:
        return objects.kept[index]

    target = objects.kept[number]
    given = [decoded(each, kept) for each in rest]
    if verb == "get":
        return getattr(target, given[0])
    if verb == "set":
        return setattr(target, *given)
    if verb == "call":
        return target(*given[0], **given[1])
    if verb == "item":
        return target[given[0]]
    if verb == "list":
        return list(target)
    if verb == "len":
        return len(target)
    raise ValueError(verb)


def _place(error: BaseException, path: str) -> int:
    """Returns the last line of the student's file that an error passed through; 0 if none."""
    if isinstance(error, SyntaxError) and error.filename == path:
        return error.lineno or 0
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if _is_in(frame, path)]
    return lines[-1] if lines else 0


def _is_in(frame: Any, path: str) -> bool:
    return bool(frame.f_code.co_filename == path)


def _loaded(path: str) -> Any:
    described = importlib.util.spec_from_file_location("student", path)
    assert described is not None and described.loader is not None
    module = importlib.util.module_from_spec(described)
    sys.modules["student"] = module
    described.loader.exec_module(module)
    return module


def main(path: str) -> None:
    """Loads the file, and answers requests until nobody asks any more."""
    channel = socket.socket(fileno=SOCKET)
    objects = Objects()
    request: Any = None
    while True:
        try:
            value = _loaded(path) if request is None else answer(objects, request)
            send(channel, ["returned", encoded(value, objects)])
        except (EOFError, BrokenPipeError):
            return
        except BaseException as error:
            raised = [type(error).__name__, str(error)[:400], _place(error, path)]
            send(channel, ["raised", raised])
        try:
            request = receive(channel)
        except EOFError:
            return


if __name__ == "__main__":
    main(sys.argv[1])
