"""Which addresses are private, whose Unix sockets are, and where the switch listens by default."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from p4native.switch import runner
from p4native.switch.options import parse
from p4native.switch.p4runtime.address import check, is_private, with_port
from p4native.switch.p4runtime.device import Device
from p4native.switch.p4runtime.server import Server


@pytest.mark.parametrize(
    "address",
    [
        "unix:/tmp/x",
        "127.0.0.1:9559",
        "127.3.2.1:9559",
        "[::1]:9559",
        "::1",
        "localhost:9559",
        "ipv4:127.0.0.1:9559",
        "ipv6:[::1]:9559",
        "dns:///localhost:9559",
        "[::ffff:127.0.0.1]:9559",
    ],
)
def test_private(address: str) -> None:
    assert is_private(address)


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0:9559",
        "[::]:9559",
        "::",
        ":9559",
        "10.0.0.1:9559",
        "[fe80::1]:9559",
        "ipv4:127.0.0.1:1,10.0.0.1:1",
        "ipv4:0.0.0.0:9559",
        "dns:///0.0.0.0:9559",
        "[::ffff:10.0.0.1]:9559",
        "name.invalid:9559",
        "unix-abstract:x",
        "vsock:1:2",
    ],
)
def test_not_private(address: str) -> None:
    assert not is_private(address)


def test_a_name_is_what_it_resolves_to(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = ["127.0.1.1"]
    found = lambda *_: [(0, 0, 0, "", (number, 0)) for number in numbers]  # noqa: E731
    monkeypatch.setattr(socket, "getaddrinfo", found)
    assert is_private("thishost:9559")
    numbers.append("192.0.2.7")
    assert not is_private("thishost:9559")


def test_by_default_it_listens_where_only_this_user_can_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "state"
    monkeypatch.setattr(runner, "state_folder", lambda program: folder)
    options = parse(["--no-p4", "--device-id", "7"])
    assert runner._address(options) == f"unix:{folder}/switch-7.grpc"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o777)
    with pytest.raises(runner.StartError, match="others may write to it") as raised:
        runner._address(options)
    assert raised.value.exit_code == 6 and "--grpc-server-addr" in str(raised.value)


def test_a_unix_socket_is_its_users_whatever_the_mask(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        server = Server(f"unix:{tmp_path}/grpc", 0, Device(lambda _: None), None)
        assert os.umask(0) == 0
    finally:
        os.umask(mask)
    server.start()
    found = (tmp_path / "grpc").lstat().st_mode
    server.stop()
    assert stat.S_ISSOCK(found) and not stat.S_IMODE(found) & 0o077


@pytest.mark.parametrize(
    "address",
    [
        *("unix:/tmp/x", "unix-abstract:x", "vsock:1:2", "0.0.0.0:1", ":9559", "[::]:65535"),
        *("localhost:0", "dns:///localhost:9559", "ipv6:[::1]:9559,[::1]:9560"),
    ],
)
def test_an_address_with_a_port(address: str) -> None:
    check(address)


@pytest.mark.parametrize(
    ("address", "real"),
    [
        ("127.0.0.1:0", "127.0.0.1:4711"),
        ("[::1]:00", "[::1]:4711"),
        ("127.0.0.1:10", "127.0.0.1:10"),
        ("unix:/x:0", "unix:/x:0"),
    ],
)
def test_the_port_that_was_chosen_is_told(address: str, real: str) -> None:
    assert with_port(address, 4711) == real


def test_a_server_at_any_port_says_at_which() -> None:
    server = Server("127.0.0.1:0", 0, Device(lambda pipeline: None), None)
    server.start()
    host, _, port = server.address.rpartition(":")
    try:
        assert host == "127.0.0.1" and 0 < int(port) <= 65535
        socket.create_connection((host, int(port)), 10).close()
    finally:
        server.stop()
