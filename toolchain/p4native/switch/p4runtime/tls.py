"""Reads the server's TLS certificate and key, and the certificate of the authority that signs
clients' certificates."""

from __future__ import annotations

import ssl
from pathlib import Path

import grpc

from p4native.common import files
from p4native.switch.options import TlsFiles


class TlsError(Exception):
    """Raised for a file that cannot be used. The message is one line."""


def credentials(tls: TlsFiles) -> grpc.ServerCredentials:
    """Returns the server's credentials for gRPC. The files are checked here, because gRPC itself
    would only report that it could not bind the port."""
    cert, key = _read("cert", tls.cert), _read("key", tls.key)
    cacert = None if tls.cacert is None else _read("cacert", tls.cacert)
    _check(tls)
    return grpc.ssl_server_credentials(
        [(key, cert)], root_certificates=cacert, require_client_auth=cacert is not None
    )


def _read(what: str, path: Path) -> bytes:
    try:
        return files.read_bytes(path)
    except OSError as error:
        raise TlsError(f"--grpc-server-{what} {path}: {error.strerror or error}") from None


def _check(tls: TlsFiles) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pair = f"--grpc-server-cert {tls.cert}, --grpc-server-key {tls.key}"
    try:
        # The password: of an encrypted key, which would otherwise be asked for at the terminal.
        context.load_cert_chain(tls.cert, tls.key, password=lambda: "")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise TlsError(f"{pair}: the key does not belong to the certificate") from None
        raise TlsError(
            f"{pair}: this is not a certificate and an unencrypted key in PEM format"
        ) from None
    if tls.cacert is None:
        return
    try:
        context.load_verify_locations(tls.cacert)
    except ssl.SSLError:
        raise TlsError(
            f"--grpc-server-cacert {tls.cacert}: this is not a certificate in PEM format"
        ) from None
