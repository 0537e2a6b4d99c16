"""Starts and stops the gRPC server."""

from __future__ import annotations

import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
from p4.v1 import p4runtime_pb2_grpc

from p4native.switch.io.stats_socket import taken
from p4native.switch.p4runtime.address import with_port
from p4native.switch.p4runtime.device import Device
from p4native.switch.p4runtime.links import Links
from p4native.switch.p4runtime.packets import receive_frames
from p4native.switch.p4runtime.service import MAX_CONTROLLERS, P4RuntimeService

# A stream keeps a thread for as long as it lives; the rest serve single calls.
THREADS = MAX_CONTROLLERS + 16
MAX_MESSAGE_BYTES = 64 << 20
"""The largest message, which must hold a configuration with a whole program. gRPC's own limit is 4
MB."""

MAX_PATH_BYTES = 107
"""The longest path of a Unix socket: 108 bytes with the zero at its end (unix(7))."""

WATCH_S = 0.02
"""The longest time until a digest or an idle entry is reported."""
IDLE_WATCH_S = 0.5
"""The time between two looks at the program while no controller has asked for digests and no table
has timeouts."""


class AddressError(Exception):
    """Raised for an address on which the server cannot listen. The message is one line."""


class Server:
    """A P4Runtime server on one address, `host:port` or `unix:/path`."""

    def __init__(
        self,
        address: str,
        device_id: int,
        device: Device,
        controller: socket.socket | None,
        links: Links | None = None,
        credentials: grpc.ServerCredentials | None = None,
    ) -> None:
        """Binds the address. With `credentials`, the server uses TLS. On a Unix socket, only the
        user who runs the server has access."""
        options = [
            # Two servers must not share a port: the second would get some of the calls.
            ("grpc.so_reuseport", 0),
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
        ]
        self._controller = controller
        self._links = links or Links({})
        self._stopping = threading.Event()
        self._threads = ThreadPoolExecutor(THREADS)
        self._grpc = grpc.server(self._threads, options=options)
        self._service = P4RuntimeService(device_id, device, controller)
        p4runtime_pb2_grpc.add_P4RuntimeServicer_to_server(self._service, self._grpc)
        if address.startswith("unix:"):
            _check_path(address.removeprefix("unix:"))
        port = self._bind(address, credentials)
        if not port:
            raise AddressError(f"cannot listen on {address}: in use, or no such address")
        self.address = with_port(address, port)
        """The address, with the port that was chosen where it asked for any."""

    def _bind(self, address: str, credentials: grpc.ServerCredentials | None) -> int:
        mask = os.umask(0o077)
        try:
            if credentials is None:
                return int(self._grpc.add_insecure_port(address))
            return int(self._grpc.add_secure_port(address, credentials))
        except RuntimeError:
            return 0
        finally:
            os.umask(mask)

    def start(self) -> None:
        """Starts answering calls."""
        if self._controller is not None:
            reader = threading.Thread(
                target=receive_frames,
                args=(self._controller, self._service.packet_in),
                daemon=True,
            )
            reader.start()
        threading.Thread(target=self._watch, daemon=True).start()
        self._links.watch(self._service.links_changed)
        self._grpc.start()

    def _watch(self) -> None:
        """Sends controllers the program's digests and notices, until the server stops."""
        watched = False
        while not self._stopping.wait(WATCH_S if watched else IDLE_WATCH_S):
            watched = self._service.send_notices()

    def stop(self) -> None:
        """Ends all calls and streams. When this method returns, no call acts on the device any
        more."""
        self._stopping.set()
        self._links.close()
        self._grpc.stop(grace=None).wait()
        self._threads.shutdown()


def _check_path(path: str) -> None:
    if len(os.fsencode(path)) > MAX_PATH_BYTES:
        raise AddressError(
            f"cannot listen on unix:{path}: a socket's path has at most {MAX_PATH_BYTES} bytes"
        )
    if taken(path):
        raise AddressError(f"cannot listen on unix:{path}: another process has it")
