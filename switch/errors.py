"""The errors that users of the switch library see."""

from agglab.switch.printable import printable

MAX_MESSAGE = 2000


class PipelineError(Exception):
    """A wrong use of a pipeline, or a program that it cannot run. The message is one line that says
    what is wrong, and where."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message)[:MAX_MESSAGE])


class ProgramError(PipelineError):
    """BMv2 JSON that is malformed or not supported. The message starts with the node's path."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
