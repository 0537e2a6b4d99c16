"""The switch where a toolkit expects BMv2: `agglab.switch` that listens at --thrift-port too.

p4-utils takes a switch for started when something listens at its Thrift port. Thrift is not spoken
here: whoever connects is told by the end of the connection.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Sequence

from agglab.switch.cli import main

ADDRESS_TAKEN = 6


def thrift_port(words: Sequence[str]) -> int | None:
    """The port that `--thrift-port N` or `--thrift-port=N` asks for."""
    port = None
    for i, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name == "--thrift-port":
            value = value if equals else "".join(words[i + 1 : i + 2])
            port = int(value) if value.isdecimal() else None
    return port


def listen(port: int) -> None:
    """Listens at that port of loopback, where p4-utils looks, for as long as the process lives."""
    server = socket.create_server(("127.0.0.1", port))
    threading.Thread(target=_hang_up, args=(server,), daemon=True).start()


def _hang_up(server: socket.socket) -> None:
    while True:
        connection, _ = server.accept()
        connection.close()


def run(words: list[str]) -> int:
    """The exit code of the switch; 6 when the Thrift port is taken."""
    port = thrift_port(words)
    if port is not None:
        try:
            listen(port)
        except (OSError, OverflowError) as error:
            print(f"agglab-switch: Thrift port {port}: {error}", file=sys.stderr)
            return ADDRESS_TAKEN
    return main(words)


def command() -> int:
    """The command `agglab-switch`: runs the switch with the process's arguments until a signal."""
    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(command())
