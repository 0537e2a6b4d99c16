"""JSON-RPC as the Language Server Protocol frames it: headers, an empty line, and a JSON text."""

from __future__ import annotations

import json
import re
from typing import IO, Any

MAX_MESSAGE_BYTES = 64 << 20
_MAX_HEADER_BYTES = 4096
_CHUNK_BYTES = 1 << 20
_LENGTH = re.compile(rb"\s*content-length\s*:\s*(\d{1,18})\s*", re.IGNORECASE)

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NOT_INITIALIZED = -32002


class MalformedError(Exception):
    """A message that is no JSON, or too large. The next one can be read."""


def read_message(stream: IO[bytes]) -> Any:
    """Returns the next message. Lines that are no header are passed over.

    Raises EOFError at the end of the stream, and MalformedError.
    """
    length = _length(stream)
    if length > MAX_MESSAGE_BYTES:
        _skip(stream, length)
        raise MalformedError(f"a message has {length} bytes; at most {MAX_MESSAGE_BYTES} are read")
    body = stream.read(length)
    if len(body) < length:
        raise EOFError
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise MalformedError(f"a message is no JSON: {error}") from error


def _length(stream: IO[bytes]) -> int:
    """Reads the headers of a message, and returns its length in bytes."""
    length: int | None = None
    while True:
        line = stream.readline(_MAX_HEADER_BYTES)
        if not line:
            raise EOFError
        header = _LENGTH.fullmatch(line)
        if header:
            length = int(header[1])
        elif not line.strip() and length is not None:
            return length


def _skip(stream: IO[bytes], length: int) -> None:
    while length > 0:
        passed = len(stream.read(min(length, _CHUNK_BYTES)))
        if not passed:
            raise EOFError
        length -= passed


def framed(message: dict[str, Any]) -> bytes:
    """Returns a message with its headers."""
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
