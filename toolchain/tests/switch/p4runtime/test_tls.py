"""P4Runtime over TLS with certificates of both sides, and what is said about files that do not fit.

Certificates are made by the openssl program.
"""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import grpc
import need
import pytest
from p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc

from p4native.switch.options import TlsFiles
from p4native.switch.p4runtime.device import Device
from p4native.switch.p4runtime.server import Server
from p4native.switch.p4runtime.tls import TlsError, credentials

pytestmark = need.mark(need.program("openssl"))


NEW_KEY = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"


def openssl(folder: Path, words: str) -> None:
    subprocess.run(["openssl", *words.split()], cwd=folder, check=True, capture_output=True)


def authority(folder: Path, name: str) -> None:
    made = f"-keyout {name}.key -out {name}.crt"
    openssl(folder, f"req -x509 {NEW_KEY} -days 1 -subj /CN={name} {made}")


def signed(folder: Path, name: str, ca: str) -> None:
    """A key, and a certificate for localhost that `ca` signed."""
    openssl(folder, f"req {NEW_KEY} -subj /CN=localhost -keyout {name}.key -out {name}.csr")
    (folder / "ext").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    by = f"-CA {ca}.crt -CAkey {ca}.key -CAcreateserial"
    openssl(folder, f"x509 -req -in {name}.csr {by} -days 1 -extfile ext -out {name}.crt")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of ours: server and client; of a stranger's authority: another client."""
    folder = tmp_path_factory.mktemp("certificates")
    for name in ("ours", "strange"):
        authority(folder, name)
    for name, ca in (("server", "ours"), ("client", "ours"), ("stranger", "strange")):
        signed(folder, name, ca)
    return folder


def served(tls: TlsFiles) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    server = Server(address, 1, Device(lambda _: None), None, None, credentials(tls))
    server.start()
    yield address
    server.stop()


@pytest.fixture
def mutual(certificates: Path) -> Iterator[str]:
    """The address of a server that takes clients of our authority only."""
    at = certificates
    yield from served(TlsFiles(at / "server.crt", at / "server.key", at / "ours.crt"))


@pytest.fixture
def one_sided(certificates: Path) -> Iterator[str]:
    """The address of a server that shows its certificate and asks for none."""
    yield from served(TlsFiles(certificates / "server.crt", certificates / "server.key", None))


def asked(address: str, folder: Path, ca: str, client: str | None) -> str:
    """What a client of that authority's servers, with that certificate, is answered."""
    read = [(folder / f"{client}.{kind}").read_bytes() for kind in ("key", "crt") if client]
    trusted = grpc.ssl_channel_credentials((folder / f"{ca}.crt").read_bytes(), *read)
    return answer(grpc.secure_channel(address, trusted))


def answer(channel: grpc.Channel) -> str:
    with channel:
        stub = p4runtime_pb2_grpc.P4RuntimeStub(channel)
        try:
            stub.Capabilities(p4runtime_pb2.CapabilitiesRequest())
        except grpc.RpcError as error:
            return str(error.code().name)
    return "OK"


def test_a_client_with_the_right_certificate_is_served(mutual: str, certificates: Path) -> None:
    assert asked(mutual, certificates, "ours", "client") == "OK"


@pytest.mark.parametrize("client", [None, "stranger"])
def test_clients_without_the_right_certificate_are_refused(
    mutual: str, certificates: Path, client: str | None
) -> None:
    assert asked(mutual, certificates, "ours", client) == "UNAVAILABLE"


def test_a_client_without_tls_is_refused(mutual: str) -> None:
    assert answer(grpc.insecure_channel(mutual)) == "UNAVAILABLE"


def test_a_server_of_another_authority_is_refused(mutual: str, certificates: Path) -> None:
    assert asked(mutual, certificates, "strange", "client") == "UNAVAILABLE"


def test_without_client_auth_any_client_is_served(one_sided: str, certificates: Path) -> None:
    assert asked(one_sided, certificates, "ours", None) == "OK"
    assert asked(one_sided, certificates, "strange", None) == "UNAVAILABLE"


WRONG = [
    ("none.crt", "server.key", "ours.crt", "--grpc-server-cert .*none.crt: No such file"),
    ("server.crt", "none.key", "ours.crt", "--grpc-server-key .*none.key: No such file"),
    ("server.crt", "server.key", "none.crt", "--grpc-server-cacert .*none.crt: No such file"),
    (
        "server.crt",
        "client.key",
        "ours.crt",
        "client.key: the key does not belong to the certificate",
    ),
    (
        "server.key",
        "server.key",
        "ours.crt",
        "this is not a certificate and an unencrypted key in PEM format",
    ),
    (
        "server.crt",
        "locked.key",
        "ours.crt",
        "this is not a certificate and an unencrypted key in PEM format",
    ),
    ("server.crt", "server.key", "server.key", "--grpc-server-cacert .*: this is not a cert"),
    ("server.crt", "server.key", ".", "--grpc-server-cacert .*: Is a directory"),
]


@pytest.mark.parametrize(("cert", "key", "cacert", "why"), WRONG)
def test_files_that_do_not_fit_are_named_in_one_line(
    certificates: Path, cert: str, key: str, cacert: str, why: str
) -> None:
    at = certificates
    openssl(at, "ec -in server.key -aes128 -passout pass:secret -out locked.key")
    with pytest.raises(TlsError, match=why) as raised:
        credentials(TlsFiles(at / cert, at / key, at / cacert))
    assert "\n" not in str(raised.value)
