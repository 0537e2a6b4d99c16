"""Exceptions that the switch library raises, and whose messages are shown to the user."""

from p4native.common.printable import printable

MAX_MESSAGE = 2000


class PipelineError(Exception):
    """Raised for a wrong use of a pipeline, or for a program that the switch cannot run. The
    message is one line that says what is wrong, and where."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message)[:MAX_MESSAGE])


class ProgramError(PipelineError):
    """Raised for BMv2 JSON that is malformed or not supported. The message starts with the path of
    the JSON node that is wrong."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
