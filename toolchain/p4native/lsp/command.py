"""The command `p4native-lsp`, which editors start: it serves one editor on standard input and
output."""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import sys
import threading
from collections.abc import Sequence
from typing import Any

from p4native import VERSION
from p4native.common.exit_codes import FAILED, INVALID, PASSED
from p4native.common.printable import plain
from p4native.compiler.preprocess import Options
from p4native.lsp import rpc
from p4native.lsp.server import Server

SWITCH_INTERVAL_S = 0.001
"""How long an analysis may keep an answer waiting before Python lets the other thread go on."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serves until the editor ends. Returns 0 if the editor shut the server down first, 1 if not,
    and 2 if a person started it at a terminal."""
    given = _parser().parse_args(arguments)
    if sys.stdin.isatty():
        print("p4native-lsp: editors start this program: see docs/editors.md", file=sys.stderr)
        return INVALID
    _prepare()
    includes = tuple(os.path.abspath(folder) for folder in given.includes)
    options = Options(includes, tuple(given.defines))
    return _serve(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="p4native-lsp", description="A language server for P4_16, which editors start."
    )
    for flag, place, metavar, text in (
        ("-I", "includes", "DIR", "search DIR for included files"),
        ("-D", "defines", "NAME[=VALUE]", "define a macro"),
    ):
        parser.add_argument(
            flag, dest=place, action="append", default=[], metavar=metavar, help=text
        )
    parser.add_argument("--stdio", action="store_true", help="accepted, because editors give it")
    parser.add_argument("--version", action="version", version=f"p4native-lsp {VERSION}")
    return parser


def _prepare() -> None:
    """Sets the interpreter so that answers do not wait for anything long."""
    importlib.import_module("p4native.compiler.backend.p4info")
    # A collection of garbage stops every thread. The server makes one after each analysis, which is
    # short because it passes over the modules loaded so far.
    gc.freeze()
    gc.disable()
    sys.setswitchinterval(SWITCH_INTERVAL_S)


def _serve(options: Options) -> int:
    output, writing = sys.stdout.buffer, threading.Lock()

    def send(message: dict[str, Any]) -> None:
        with writing:
            output.write(rpc.framed(message))
            output.flush()

    server = Server(send, lambda text: print(plain(text), file=sys.stderr), options)
    server.start()
    while not server.exited:
        try:
            server.handle(rpc.read_message(sys.stdin.buffer))
        except rpc.MalformedError as error:
            server.malformed(str(error))
        except (EOFError, BrokenPipeError):
            break
    return PASSED if server.shut_down else FAILED
