"""Runs the switch: program, interfaces, P4Runtime server, until a signal; errors to exit codes."""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from switch.cli import (
    EXIT_ADDRESS,
    EXIT_INTERFACE,
    EXIT_MACHINE,
    EXIT_PROGRAM,
    Options,
)
from switch.detail import Detail
from switch.errors import PipelineError
from switch.io import DEFAULT_COALESCE_US, DEFAULT_RING_FRAMES, PacketLoop, PacketLoopError
from switch.io.stats_socket import StatsSocket
from switch.messages import MessageLog
from switch.pipeline import Pipeline
from switch.program import Program

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


class StartError(Exception):
    """The switch cannot start: an exit code and one line."""

    def __init__(self, exit_code: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class _Stopped(BaseException):
    """A signal came while starting."""


def run(options: Options) -> int:
    """Start, forward until SIGINT or SIGTERM, stop; returns the exit code."""
    for number in STOP_SIGNALS:
        signal.signal(number, _stop_starting)
    try:
        _set_up_log(options)
        for note in options.notes:
            LOG.warning("%s", note)
        with contextlib.ExitStack() as stack:
            _run(options, stack)
    except StartError as error:
        print(f"switch: {error}", file=sys.stderr)
        return error.exit_code
    except _Stopped:
        pass
    return 0


def _stop_starting(number: int, frame: FrameType | None) -> None:
    raise _Stopped


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
    handler.setFormatter(logging.Formatter("[%(asctime)s] [%(levelname)s] %(message)s"))
    LOG.addHandler(handler)
    LOG.setLevel(level)


def _file_error(option: str, path: Path, error: OSError) -> StartError:
    return StartError(EXIT_INTERFACE, f"{option} {path}: {error.strerror or error}")


def _run(options: Options, stack: contextlib.ExitStack) -> None:
    pipeline = _load(options)
    # From here on signals wait for sigwait: threads started below inherit the mask, so that no
    # other thread takes them.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    loop = stack.enter_context(_open_ports(options))
    messages = MessageLog(loop.set_pipeline, LOG.debug)
    if detail(options) is not Detail.NOTHING:
        stack.callback(messages.start().stop)
    links = _links(options)
    device = _device(options, messages.install, pipeline, links)
    server = _server(options, loop, device, links)
    started = time.monotonic()

    def read() -> dict[str, Any]:
        return _statistics(options, loop, started)

    if options.stats_socket is not None:
        stack.callback(_stats_socket(options.stats_socket, read).close)
    messages.install(pipeline)
    _start(loop)
    server.start()
    LOG.info(
        "ready: device %d, %s, P4Runtime on %s",
        options.device_id,
        ", ".join(f"{port}@{name}" for port, name in options.interfaces.items()) or "no ports",
        options.grpc_address,
    )
    _tell_ready(options)
    number = signal.sigwait(STOP_SIGNALS)
    LOG.info("%s: stopping", signal.Signals(number).name)
    server.stop()
    loop.stop()
    _finish(options, read())


def _load(options: Options) -> Pipeline | None:
    if options.json is None:
        return None
    if not options.json.is_file():
        raise StartError(EXIT_PROGRAM, f"{options.json}: cannot be opened")
    try:
        return make_pipeline(options, Program.read(options.json))
    except PipelineError as error:
        said = str(error).removeprefix(f"{options.json}: ")  # not every one names the file
        raise StartError(EXIT_PROGRAM, f"{options.json}: {said}") from None
    except OSError as error:
        raise StartError(EXIT_MACHINE, f"{options.json}: {error.strerror or error}") from None


def detail(options: Options) -> Detail:
    """What the program shall say: a log at level debug has its log_msg, one at trace everything."""
    if options.trace or options.log_level == "trace":
        return Detail.TRACE
    return Detail.LOG if options.log_level == "debug" else Detail.NOTHING


def make_pipeline(options: Options, program: Program) -> Pipeline:
    """An instance with the limits that the command line sets."""
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


def _links(options: Options) -> Any:
    from switch.p4runtime.links import Links

    return Links(options.interfaces, () if options.cpu_port is None else (options.cpu_port,))


def _device(
    options: Options,
    install: Callable[[Pipeline | None], None],
    pipeline: Pipeline | None,
    links: Any,
) -> Any:
    from switch.p4runtime.device import Device
    from switch.p4runtime.status import StatusError
    from switch.p4runtime.text import read_p4info

    device = Device(install, functools.partial(make_pipeline, options), pipeline, links)
    if pipeline is None or options.p4info is None or options.json is None:
        return device
    try:
        p4info = read_p4info(options.p4info.read_bytes())
        device.describe(p4info, options.json.read_bytes())
    except OSError as error:
        raise StartError(EXIT_PROGRAM, f"{options.p4info}: {error.strerror}") from None
    except (ValueError, StatusError) as error:
        raise StartError(EXIT_PROGRAM, f"{options.p4info}: {error}") from None
    return device


def _server(options: Options, loop: PacketLoop, device: Any, links: Any) -> Any:
    # gRPC's core writes to standard error by itself.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from switch.p4runtime.server import AddressError, Server

    try:
        return Server(options.grpc_address, options.device_id, device, loop.controller, links)
    except AddressError as error:
        raise StartError(EXIT_ADDRESS, str(error)) from None


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
    """What --stats-socket and --stats-file hold."""
    return {
        "device_id": options.device_id,
        "time_ns": time.monotonic_ns(),
        "uptime_s": time.monotonic() - started,
        "process_cpu_s": time.process_time(),
        **loop.stats(),
    }


def _finish(options: Options, statistics: dict[str, Any]) -> None:
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
    if options.stats_file is None:
        return
    try:
        options.stats_file.write_text(json.dumps(statistics, indent=1) + "\n")
    except OSError as error:
        LOG.error("--stats-file %s: %s", options.stats_file, error.strerror)
