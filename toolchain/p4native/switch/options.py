"""Reads the switch's command line, which has the options of simple_switch_grpc, into `Options`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import hexdigits
from typing import Any, NoReturn

from p4native import VERSION
from p4native.switch.io import Loss
from p4native.switch.p4runtime.address import check as check_address

JSON_VERSION = "2.24"
DROP_PORT = 511
MAX_PORT = 511
"""The highest port number; ports of v1model are 9 bits wide."""
MAX_QUEUES = 8
"""The highest number of queues; v1model's priority is 3 bits wide."""
MAX_RING_FRAMES = 1 << 16
MAX_COALESCE_US = 999_999
MAX_WORD = (1 << 64) - 1
"""The largest device id and the largest seed."""
MAX_DESCRIPTOR = (1 << 31) - 1
MAX_TCP_PORT = 65535
MAX_DIGITS = 20
LOG_LEVELS = ("trace", "debug", "info", "warn", "error", "off")

EXIT_USAGE = 2
EXIT_MACHINE = 3
EXIT_PROGRAM = 4
EXIT_INTERFACE = 5
EXIT_ADDRESS = 6

EXIT_CODES = """\
exit codes: 0 stopped by SIGINT or SIGTERM; 2 wrong command line; 3 the machine lacks something
(permission, C compiler); 4 the program or its P4Info is wrong; 5 an interface or file cannot be
used; 6 the gRPC address or a socket's path cannot be used"""

# Options of BMv2 that change nothing here: there is no Thrift server, no queue limit to set, and
# one log file. They are accepted so that scripts written for simple_switch_grpc run.
IGNORED_GENERAL = {
    "--nanolog": "there is no nanomsg log",
    "--notifications-addr": "there are no nanomsg notifications",
}
IGNORED_GENERAL_NUMBERS = {
    "--log-file-max-size": "the log is not rotated",
    "--log-file-max-files": "the log is not rotated",
    "--dump-packet-data": "use --pcap",
    "--max-port-count": "ports are 0 to 511",
}
IGNORED_TARGET = {"--dp-grpc-server-addr": "there is no data-plane gRPC server"}
IGNORED_TARGET_NUMBERS = {
    "--max-mc-groups": "multicast groups are not limited",
    "--max-l1-entries": "multicast replicas are not limited",
    "--max-l2-entries": "multicast replicas are not limited",
}
THRIFT = {"--thrift-port": "there is no Thrift server; use P4Runtime"}
IGNORED_FLAGS = {
    "--enable-swap": "a program can always be swapped",
    "--disable-swap": "a program can always be swapped",
}


class UsageError(Exception):
    """Raised for a wrong command line. The message is one line."""


@dataclass(frozen=True)
class TlsFiles:
    """The files for TLS, in PEM form. cacert: the certificate of the authority that signs clients'
    certificates, or None if clients need no certificate."""

    cert: Path
    key: Path
    cacert: Path | None


@dataclass(frozen=True)
class Options:
    """The options of the command line."""

    interfaces: dict[int, str]
    json: Path | None
    p4info: Path | None
    device_id: int
    grpc_address: str | None
    """The address to listen on. None stands for a Unix socket in a folder of the user's own."""
    tls: TlsFiles | None
    cpu_port: int | None
    drop_port: int
    priority_queues: int
    pcap_folder: Path | None
    log_console: bool
    log_file: Path | None
    log_level: str
    ready_fd: int | None
    stats_socket: Path | None
    stats_file: Path | None
    ring_frames: int | None
    coalesce_us: int | None
    seed: int
    losses: tuple[Loss, ...] = ()
    trace: bool = False
    show: str | None = None
    user: str | None = None
    notes: tuple[str, ...] = ()


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def _interface(text: str) -> tuple[int, str]:
    port, separator, name = text.partition("@")
    if not separator or whole_number(port) is None or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not PORT@INTERFACE, such as 1@s1-eth1")
    return _port(port), name


def whole_number(text: str) -> int | None:
    """Returns the number that decimal digits and nothing else make, or None."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS else None


def _from_to(least: int, most: int, unit: str = "a whole number") -> Callable[[str], int]:
    """Returns a function that reads a whole number between two limits."""

    def read(text: str) -> int:
        number = whole_number(text)
        if number is None or not least <= number <= most:
            problem = f"{text!r} is not {unit}: allowed is {least} to {most}"
            raise argparse.ArgumentTypeError(problem)
        return number

    return read


_port = _from_to(0, MAX_PORT, "a port")
tcp_port = _from_to(1, MAX_TCP_PORT, "a TCP port")
_word = _from_to(0, MAX_WORD)


def _address(text: str) -> str:
    try:
        check_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _loss(text: str) -> Loss:
    """Reads PORT:in|out:KEY:THRESHOLD. Key and threshold are hexadecimal, and the threshold is at
    most 2^64."""
    words = text.split(":")
    if len(words) == 4 and words[1] in ("in", "out"):
        key, threshold = (_hexadecimal(word) for word in words[2:])
        if key is not None and threshold is not None and key < 1 << 64 >= threshold:
            return Loss(_port(words[0]), words[1] == "out", key, threshold)
    expected = "PORT:in|out:KEY:THRESHOLD, both hexadecimal, at most 2^64 - 1 and 2^64"
    raise argparse.ArgumentTypeError(f"{text!r} is not {expected}")


def _hexadecimal(text: str) -> int | None:
    return int(text, 16) if text and set(text) <= set(hexdigits) else None


def _ignored(
    parser: argparse.ArgumentParser, options: dict[str, str], value: Callable[[str], Any] = str
) -> None:
    for name in options:
        parser.add_argument(name, type=value, help=argparse.SUPPRESS)


def _ignored_flags(parser: argparse.ArgumentParser, options: dict[str, str]) -> None:
    for name in options:
        parser.add_argument(name, action="store_true", help=argparse.SUPPRESS)


def _general_parser() -> _Parser:
    parser = _Parser(
        prog="p4native-switch",
        usage="%(prog)s -i PORT@INTERFACE ... [options] prog.json [-- target options]",
        description="A P4 switch: BMv2 JSON compiled to native code, driven over P4Runtime.",
        epilog="target options: --grpc-server-addr ADDR (host:port or unix:/path; without it a "
        "Unix socket that only this user reaches), --grpc-server-ssl with --grpc-server-cert FILE, "
        "--grpc-server-key FILE, and --grpc-server-with-client-auth with --grpc-server-cacert "
        f"FILE; --cpu-port N, --drop-port N (default: {DROP_PORT}), --priority-queues N (default: "
        f"1). {EXIT_CODES}",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("json", nargs="?", type=Path, metavar="prog.json", help="the program, as p4c writes it")
    add(
        "-i",
        "--interface",
        action="append",
        default=[],
        type=_interface,
        metavar="PORT@IFACE",
        help="attach a port to a network interface, such as 1@veth0",
    )
    add("--p4info", type=Path, metavar="FILE", help="P4Info of prog.json, text or binary")
    add(
        "--device-id",
        type=_word,
        default=0,
        metavar="N",
        help="P4Runtime device id (default: 0)",
    )
    add("--no-p4", action="store_true", help="start without a program and wait for one")
    add(
        "--pcap",
        nargs="?",
        type=Path,
        const=Path(),
        metavar="DIR",
        help="write a pcap file of every port",
    )
    log = parser.add_mutually_exclusive_group()
    log.add_argument("--log-console", action="store_true", help="log to standard output")
    log.add_argument("--log-file", type=Path, metavar="FILE", help="log to this file")
    add("-L", "--log-level", choices=LOG_LEVELS, default="info", help="what to log (default: info)")
    add(
        "--drop",
        action="append",
        default=[],
        type=_loss,
        metavar="PORT:in|out:KEY:THRESHOLD",
        help="drop packets at a port at random; key and threshold are hexadecimal "
        "(docs/p4runtime.md)",
    )
    add("--log-flush", action="store_true", help=argparse.SUPPRESS)
    add(
        "--ready-fd",
        type=_from_to(0, MAX_DESCRIPTOR),
        metavar="N",
        help="write one byte to this descriptor when the switch forwards",
    )
    add(
        "--stats-socket",
        type=Path,
        metavar="PATH",
        help="Unix socket that answers each connection with statistics as one line of JSON",
    )
    add(
        "--stats-file",
        type=Path,
        metavar="PATH",
        help="file to which statistics are written as JSON at the end",
    )
    add(
        "--ring-frames",
        type=_from_to(1, MAX_RING_FRAMES, "a number of slots"),
        metavar="N",
        help="number of slots in the receive ring of each port",
    )
    add(
        "--coalesce-us",
        type=_from_to(0, MAX_COALESCE_US),
        metavar="N",
        help="how long to wait for more frames after a small batch (default: 50); 0: not at all",
    )
    add(
        "--seed",
        type=_word,
        default=0,
        metavar="N",
        help="seed of the program's random() (default: 0)",
    )
    add("--trace", action="store_true", help="log the path of each packet; the same as -L trace")
    add(
        "--user",
        metavar="NAME",
        help="the user that root becomes when the ports are open (default: nobody)",
    )
    add("--show", choices=("c",), help="print the generated C, with P4 lines as comments, and exit")
    add("-v", "--version", action="version", version=f"p4native-switch {VERSION}")
    add("--json-version", action="version", version=JSON_VERSION)
    _ignored(parser, IGNORED_GENERAL)
    _ignored(parser, IGNORED_GENERAL_NUMBERS, _word)
    _ignored(parser, THRIFT, tcp_port)
    return parser


def _target_parser() -> _Parser:
    parser = _Parser(prog="target options", add_help=False, allow_abbrev=False)
    parser.add_argument("--grpc-server-addr", type=_address)
    parser.add_argument("--grpc-server-ssl", action="store_true")
    parser.add_argument("--grpc-server-cert", type=Path)
    parser.add_argument("--grpc-server-key", type=Path)
    parser.add_argument("--grpc-server-cacert", type=Path)
    parser.add_argument("--grpc-server-with-client-auth", action="store_true")
    parser.add_argument("--cpu-port", type=_port)
    parser.add_argument("--drop-port", type=_port, default=DROP_PORT)
    parser.add_argument(
        "--priority-queues", type=_from_to(1, MAX_QUEUES, "a number of queues"), default=1
    )
    _ignored(parser, IGNORED_TARGET)
    _ignored(parser, IGNORED_TARGET_NUMBERS, _word)
    _ignored_flags(parser, IGNORED_FLAGS)
    return parser


def parse(arguments: Sequence[str]) -> Options:
    """Reads the command line. Raises UsageError, and SystemExit(0) after --help and --version."""
    general, target = _split(arguments)
    given = _general_parser().parse_args(general)
    wanted = _target_parser().parse_args(target)
    interfaces = _unique(given.interface)
    _check(given, wanted, interfaces)
    return Options(
        interfaces=interfaces,
        json=None if given.no_p4 else given.json,
        p4info=None if given.no_p4 else given.p4info,
        device_id=given.device_id,
        grpc_address=wanted.grpc_server_addr,
        tls=_tls(wanted),
        cpu_port=wanted.cpu_port or None,
        drop_port=wanted.drop_port,
        priority_queues=wanted.priority_queues,
        pcap_folder=given.pcap,
        log_console=given.log_console,
        log_file=given.log_file,
        log_level=given.log_level,
        ready_fd=given.ready_fd,
        stats_socket=given.stats_socket,
        stats_file=given.stats_file,
        ring_frames=given.ring_frames,
        coalesce_us=given.coalesce_us,
        seed=given.seed,
        trace=given.trace,
        show=given.show,
        user=given.user,
        losses=tuple(given.drop),
        notes=(
            *_notes(given, THRIFT | IGNORED_GENERAL | IGNORED_GENERAL_NUMBERS),
            *_notes(wanted, IGNORED_TARGET | IGNORED_TARGET_NUMBERS | IGNORED_FLAGS),
        ),
    )


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    arguments = list(arguments)
    if "--" not in arguments:
        return arguments, []
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def _unique(pairs: list[tuple[int, str]]) -> dict[int, str]:
    interfaces: dict[int, str] = {}
    for port, name in pairs:
        if port in interfaces:
            raise UsageError(f"argument -i: port {port} is given twice")
        if name in interfaces.values():
            raise UsageError(f"argument -i: interface {name} is given twice")
        interfaces[port] = name
    return interfaces


def _check(
    given: argparse.Namespace, wanted: argparse.Namespace, interfaces: dict[int, str]
) -> None:
    if given.json is None and not given.no_p4:
        raise UsageError("no program: give prog.json, or --no-p4 to start without one")
    if wanted.drop_port in interfaces:
        raise UsageError(f"argument -i: port {wanted.drop_port} is the drop port (--drop-port)")
    if wanted.cpu_port in interfaces:
        raise UsageError(f"argument --cpu-port: port {wanted.cpu_port} is an interface already")
    places = [(loss.port, loss.outgoing) for loss in given.drop]
    for loss in given.drop:
        if loss.port not in interfaces:
            raise UsageError(f"argument --drop: port {loss.port} has no interface (-i)")
        if places.count((loss.port, loss.outgoing)) > 1:
            raise UsageError(f"argument --drop: port {loss.port} has two of the same direction")
    if given.pcap is not None and not given.pcap.is_dir():
        raise UsageError(f"argument --pcap: no such directory: {given.pcap}")


def _tls(wanted: argparse.Namespace) -> TlsFiles | None:
    """Reads the options for TLS. Incomplete options are refused, because a switch that ignored them
    would be less safe than the user expects."""
    cert, key, cacert = (
        wanted.grpc_server_cert,
        wanted.grpc_server_key,
        wanted.grpc_server_cacert,
    )
    clients = wanted.grpc_server_with_client_auth
    if not wanted.grpc_server_ssl:
        if cert or key or cacert or clients:
            raise UsageError("certificates (--grpc-server-...) need --grpc-server-ssl")
        return None
    if not cert or not key:
        raise UsageError("--grpc-server-ssl needs --grpc-server-cert and --grpc-server-key")
    if clients != bool(cacert):
        raise UsageError(
            "--grpc-server-cacert and --grpc-server-with-client-auth must be given together: both"
            " are needed to check clients' certificates"
        )
    return TlsFiles(cert, key, cacert)


def _notes(given: argparse.Namespace, ignored: dict[str, str]) -> tuple[str, ...]:
    return tuple(
        f"{name} is ignored: {reason}"
        for name, reason in ignored.items()
        if getattr(given, name.lstrip("-").replace("-", "_")) not in (None, False)
    )
