"""Runs the switch with its program, interfaces and P4Runtime server until a signal, and turns
errors into exit codes."""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Any

from p4native.common import files
from p4native.common.printable import printable
from p4native.common.private_folders import make_private, state_folder
from p4native.switch.cleanup import Cleanup
from p4native.switch.detail import Detail
from p4native.switch.drop_log import DropLog
from p4native.switch.errors import PipelineError
from p4native.switch.io import DEFAULT_COALESCE_US, DEFAULT_RING_FRAMES, PacketLoop, PacketLoopError
from p4native.switch.io.stats_socket import StatsSocket
from p4native.switch.messages import MessageLog
from p4native.switch.options import (
    EXIT_ADDRESS,
    EXIT_INTERFACE,
    EXIT_MACHINE,
    EXIT_PROGRAM,
    Options,
)
from p4native.switch.pipeline import Pipeline
from p4native.switch.privileges import Account, PrivilegeError, account, drop, forbid_new_privileges
from p4native.switch.program import Program

LOG = logging.getLogger("switch")
_LEVELS = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "off": logging.CRITICAL + 1,
}
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
OPEN_TO_ALL = (
    "warning: P4Runtime on {}: whoever reaches this address can reprogram the switch (without:"
    " --grpc-server-ssl with --grpc-server-with-client-auth, a Unix socket, or 127.0.0.1)"
)


class StartError(Exception):
    """Raised if the switch cannot start. It has an exit code and one line of text."""

    def __init__(self, exit_code: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class _Stopped(BaseException):
    """Raised when a signal comes during the start."""


def run(options: Options) -> int:
    """Starts the switch, forwards until SIGINT or SIGTERM, stops, and returns the exit code."""
    for number in STOP_SIGNALS:
        signal.signal(number, _stop_starting)
    try:
        _set_up_log(options)
        for note in options.notes:
            LOG.warning("%s", note)
        with contextlib.ExitStack() as stack:
            _run(options, stack)
    except StartError as error:
        print(f"switch: {printable(str(error))}", file=sys.stderr)
        return error.exit_code
    except _Stopped:
        pass
    return 0


def _stop_starting(number: int, frame: FrameType | None) -> None:
    raise _Stopped


class OneLine(logging.Formatter):
    """A formatter that writes each log record on one line, without control characters. Names and
    requests come from outside: they must neither end the line nor reach a terminal as commands."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = printable(record.message)
        return super().formatMessage(record)


def _set_up_log(options: Options) -> None:
    handler: logging.Handler = logging.StreamHandler(
        sys.stdout if options.log_console else sys.stderr
    )
    level = logging.DEBUG if options.trace else _LEVELS[options.log_level]
    if options.log_file is not None:
        try:
            handler = logging.FileHandler(options.log_file)
        except OSError as error:
            raise _file_error("--log-file", options.log_file, error) from None
    elif not options.log_console and not options.trace:
        level = max(level, logging.WARNING)
    handler.setFormatter(OneLine("[%(asctime)s] [%(levelname)s] %(message)s"))
    LOG.addHandler(handler)
    LOG.setLevel(level)


def _file_error(option: str, path: Path, error: OSError) -> StartError:
    return StartError(EXIT_INTERFACE, f"{option} {path}: {error.strerror or error}")


def _run(options: Options, stack: contextlib.ExitStack) -> None:
    # Signals wait for sigwait: threads started below inherit the mask, so that no other takes them.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    account = _unprivileged_account(options)
    sources = _read_sources(options)
    # Before there is any thread.
    cleanup = stack.enter_context(Cleanup(apart=account is not None))
    loop = stack.enter_context(_open_ports(options))
    messages = MessageLog(loop.set_pipeline, LOG.debug)
    links = _links(options, loop)
    device = _device(options, messages.set_pipeline, links)
    address = _address(options)
    server = _server(options, address, loop, device, links)
    cleanup.add(address.removeprefix("unix:"))
    if server.address != address:
        print(f"switch: P4Runtime on {server.address}", file=sys.stderr, flush=True)
    started = time.monotonic()

    def read() -> dict[str, Any]:
        return _statistics(options, loop, started)

    if options.stats_socket is not None:
        stack.callback(_stats_socket(options.stats_socket, read).close)
        cleanup.add(options.stats_socket)
    stats_file = _open_stats_file(options, stack, cleanup)
    cleanup.complete()
    if account is not None:
        _drop_privileges(account)
    # Only now anything is compiled or run that others have written.
    with _stopped_by_signals():
        _load(options, sources, device)
    if detail(options) is not Detail.NOTHING:
        stack.callback(messages.start().stop)
    _start(loop)
    drops = DropLog(loop.stats, LOG.warning).start()
    stack.callback(drops.stop)
    server.start()
    LOG.info(
        "ready: device %d, %s, P4Runtime on %s",
        options.device_id,
        ", ".join(f"{port}@{name}" for port, name in options.interfaces.items()) or "no ports",
        server.address,
    )
    _tell_ready(options)
    number = signal.sigwait(STOP_SIGNALS)
    LOG.info("%s: stopping", signal.Signals(number).name)
    server.stop()
    loop.stop()
    _finish(options, read(), stats_file)


@contextlib.contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Lets a signal end the `with` block at once. Only work that takes long and leaves nothing
    behind may be in the block."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)


def _unprivileged_account(options: Options) -> Account | None:
    try:
        forbid_new_privileges()
        return account(options.user)
    except PrivilegeError as error:
        raise StartError(EXIT_MACHINE, str(error)) from None


def _drop_privileges(whom: Account) -> None:
    # What is imported for the first time later may lie where that user cannot read.
    importlib.import_module("p4native.switch.p4runtime.text")
    try:
        drop(whom)
    except PrivilegeError as error:
        raise StartError(EXIT_MACHINE, str(error)) from None
    LOG.info("root no more: user %s (%d)", whom.name, whom.uid)


@dataclass(frozen=True)
class _Sources:
    """The contents of the files that the command line names, before they are interpreted."""

    json: bytes | None
    p4info: bytes | None


def _read_sources(options: Options) -> _Sources:
    contents = []
    for path in (options.json, options.p4info):
        try:
            contents.append(None if path is None else files.read_bytes(path))
        except OSError as error:
            reason = f"{path}: cannot be read: {error.strerror or error}"
            raise StartError(EXIT_PROGRAM, reason) from None
    return _Sources(*contents)


def _load(options: Options, sources: _Sources, device: Any) -> None:
    """Compiles the command line's program and lets the device run it."""
    if sources.json is None:
        return
    assert options.json is not None
    try:
        program = Program.of_file(options.json, sources.json)
        device.run(make_pipeline(options, program))
    except PipelineError as error:
        said = str(error).removeprefix(f"{options.json}: ")  # not every one names the file
        raise StartError(EXIT_PROGRAM, f"{options.json}: {said}") from None
    except OSError as error:
        raise StartError(EXIT_MACHINE, f"{options.json}: {error.strerror or error}") from None
    if sources.p4info is not None:
        _describe(options, sources.p4info, sources.json, device)


def detail(options: Options) -> Detail:
    """Returns the level of detail at which the program reports. A log at level debug contains
    log_msg, and a log at level trace contains everything."""
    if options.trace or options.log_level == "trace":
        return Detail.TRACE
    return Detail.LOG if options.log_level == "debug" else Detail.NOTHING


def make_pipeline(options: Options, program: Program) -> Pipeline:
    """Returns a pipeline that runs the program with the limits that the command line sets."""
    pipeline = Pipeline.of(program, options.seed, detail(options))
    pipeline.set_limits(options.drop_port, options.priority_queues)
    return pipeline


def _given(value: int | None, default: int) -> int:
    return default if value is None else value


def _open_ports(options: Options) -> PacketLoop:
    try:
        return PacketLoop(
            options.interfaces,
            cpu_port=options.cpu_port,
            pcap_folder=options.pcap_folder,
            losses=options.losses,
            ring_frames=_given(options.ring_frames, DEFAULT_RING_FRAMES),
            coalesce_us=_given(options.coalesce_us, DEFAULT_COALESCE_US),
        )
    except PacketLoopError as error:
        code = EXIT_MACHINE if error.permission else EXIT_INTERFACE
        raise StartError(code, str(error)) from None
    except PipelineError as error:  # there is no compiler
        raise StartError(EXIT_MACHINE, str(error)) from None


def _links(options: Options, loop: PacketLoop) -> Any:
    from p4native.switch.link_log import LinkLog
    from p4native.switch.p4runtime.links import Links

    always = () if options.cpu_port is None else (options.cpu_port,)
    log = LinkLog(options.interfaces, loop.attach, LOG.warning)
    return Links(options.interfaces, always, log.changed)


def _device(options: Options, set_pipeline: Callable[[Pipeline | None], None], links: Any) -> Any:
    from p4native.switch.p4runtime.device import Device

    return Device(set_pipeline, functools.partial(make_pipeline, options), links)


def _describe(options: Options, p4info: bytes, config: bytes, device: Any) -> None:
    from p4native.switch.p4runtime.status import StatusError
    from p4native.switch.p4runtime.text import read_p4info

    try:
        device.describe(read_p4info(p4info), config)
    except (ValueError, StatusError) as error:
        raise StartError(EXIT_PROGRAM, f"{options.p4info}: {error}") from None


def _address(options: Options) -> str:
    """Returns the address that the command line gives or, by default, a Unix socket in a folder
    that only this user can enter."""
    if options.grpc_address is not None:
        return options.grpc_address
    folder = state_folder("p4native")
    try:
        make_private(folder)
    except OSError as error:
        reason = f"{folder}: {error.strerror or error}: give --grpc-server-addr"
        raise StartError(EXIT_ADDRESS, reason) from None
    return f"unix:{folder}/switch-{options.device_id}.grpc"


def _server(options: Options, address: str, loop: PacketLoop, device: Any, links: Any) -> Any:
    # gRPC's core writes to standard error by itself.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from p4native.switch.p4runtime.address import is_private
    from p4native.switch.p4runtime.server import AddressError, Server
    from p4native.switch.p4runtime.tls import TlsError, credentials

    try:
        tls = None if options.tls is None else credentials(options.tls)
        server = Server(address, options.device_id, device, loop.controller, links, tls)
    except TlsError as error:
        raise StartError(EXIT_INTERFACE, str(error)) from None
    except AddressError as error:
        raise StartError(EXIT_ADDRESS, str(error)) from None
    clients_are_known = options.tls is not None and options.tls.cacert is not None
    if not clients_are_known and not is_private(address):
        print(f"switch: {printable(OPEN_TO_ALL.format(address))}", file=sys.stderr, flush=True)
    return server


def _stats_socket(path: Path, read: Any) -> StatsSocket:
    try:
        return StatsSocket(path, read)
    except OSError as error:
        raise StartError(
            EXIT_ADDRESS, f"--stats-socket {path}: {error.strerror or error}"
        ) from None


def _start(loop: PacketLoop) -> None:
    try:
        loop.start()
    except PacketLoopError as error:
        raise StartError(EXIT_MACHINE, str(error)) from None


def _tell_ready(options: Options) -> None:
    if options.ready_fd is None:
        return
    try:
        os.write(options.ready_fd, b"\n")
        os.close(options.ready_fd)
    except OSError as error:
        LOG.warning("--ready-fd %d: %s", options.ready_fd, error.strerror)


def _statistics(options: Options, loop: PacketLoop, started: float) -> dict[str, Any]:
    """Returns the statistics that --stats-socket and --stats-file give."""
    return {
        "device_id": options.device_id,
        "time_ns": time.monotonic_ns(),
        "uptime_s": time.monotonic() - started,
        "process_cpu_s": time.process_time(),
        **loop.stats(),
    }


def _open_stats_file(
    options: Options, stack: contextlib.ExitStack, cleanup: Cleanup
) -> IO[str] | None:
    """Opens the file for statistics while the process still has its privileges. The statistics are
    written at the end."""
    if options.stats_file is None:
        return None
    try:
        file = stack.enter_context(options.stats_file.open("w"))
    except OSError as error:
        raise _file_error("--stats-file", options.stats_file, error) from None
    cleanup.add(options.stats_file)
    return file


def _finish(options: Options, statistics: dict[str, Any], stats_file: IO[str] | None) -> None:
    for port, counts in statistics["ports"].items():
        LOG.info(
            "port %s (%s): %d in, %d out, %d ring drops, %d queue drops",
            port,
            counts["interface"],
            counts["rx_packets"],
            counts["tx_packets"],
            counts["ring_drops"],
            counts["tx_drops"],
        )
    if stats_file is None:
        return
    try:
        stats_file.write(json.dumps(statistics, indent=1) + "\n")
        stats_file.flush()
    except OSError as error:
        LOG.error("--stats-file %s: %s", options.stats_file, error.strerror)
