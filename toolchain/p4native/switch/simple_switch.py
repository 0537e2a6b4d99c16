"""Runs the switch in place of BMv2 for other toolkits: like `p4native.switch`, but it also listens
at --thrift-port.

p4-utils considers a switch started when something listens at its Thrift port. This program does not
speak Thrift: it closes each connection at once.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Sequence

from p4native.switch.cli import main
from p4native.switch.options import MAX_TCP_PORT, whole_number

ADDRESS_TAKEN = 6


def thrift_port(words: Sequence[str]) -> int | None:
    """Returns the port in `--thrift-port N` or `--thrift-port=N`. Returns None without the option,
    and for what is no port, which the switch refuses."""
    port = None
    for i, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name == "--thrift-port":
            value = value if equals else "".join(words[i + 1 : i + 2])
            port = whole_number(value)
    return port if port and port <= MAX_TCP_PORT else None


def listen(port: int) -> None:
    """Listens at the port on the loopback address, where p4-utils looks, as long as the process
    lives."""
    server = socket.create_server(("127.0.0.1", port))
    threading.Thread(target=_hang_up, args=(server,), daemon=True).start()


def _hang_up(server: socket.socket) -> None:
    while True:
        connection, _ = server.accept()
        connection.close()


def run(words: list[str]) -> int:
    """Runs the switch and returns its exit code, or 6 if the Thrift port is taken."""
    port = thrift_port(words)
    if port is not None:
        try:
            listen(port)
        except OSError as error:
            print(f"p4native-switch: Thrift port {port}: {error}", file=sys.stderr)
            return ADDRESS_TAKEN
    return main(words)


def command() -> int:
    """Runs the switch with the process's arguments until a signal. This is the command
    `p4native-switch`."""
    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(command())
