"""The classes of errors in P4Runtime's form: a canonical code and one line of text."""

from __future__ import annotations

from enum import IntEnum

from google.rpc import status_pb2
from p4.v1 import p4runtime_pb2


class Code(IntEnum):
    """The canonical codes of google.rpc that this server uses. Their values equal gRPC's."""

    OK = 0
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12


class StatusError(Exception):
    """Raised for a request that is refused. code, message: what is sent to the client."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def invalid(message: str) -> StatusError:
    """Returns an error with INVALID_ARGUMENT, the most common code."""
    return StatusError(Code.INVALID_ARGUMENT, message)


def unsupported(what: str) -> StatusError:
    """Returns an error with UNIMPLEMENTED that names what the switch lacks."""
    return StatusError(Code.UNIMPLEMENTED, f"{what}: this switch does not support it")


MAX_STATUS_BYTES = 7000
"""The largest status. Its details travel in a header, and clients refuse calls whose headers are
above 8 KiB."""


class BatchError(Exception):
    """Raised for a Write of which some updates failed. results: one item for each update, None if
    the update succeeded."""

    def __init__(self, results: list[StatusError | None]) -> None:
        first = next(error for error in results if error)
        failed = sum(error is not None for error in results)
        super().__init__(f"{failed} of {len(results)} updates failed, first: {first.message}")
        self.results = results

    def to_status(self) -> status_pb2.Status:
        """Returns a google.rpc.Status with a p4.v1.Error for every update (P4Runtime: error
        reporting). If this is too large, only the first text and all codes are kept. If even that
        is too large, only the text of this error is kept."""
        for texts in (len(self.results), 1):
            status = self._status(texts)
            if status.ByteSize() <= MAX_STATUS_BYTES:
                return status
        return status_pb2.Status(code=Code.UNKNOWN, message=str(self))

    def _status(self, texts: int) -> status_pb2.Status:
        status = status_pb2.Status(code=Code.UNKNOWN, message=str(self))
        for error in self.results:
            detail = p4runtime_pb2.Error(canonical_code=error.code if error else Code.OK)
            if error and texts:
                detail.message = error.message
                detail.space = "p4native"
                texts -= 1
            status.details.add().Pack(detail)
        return status
