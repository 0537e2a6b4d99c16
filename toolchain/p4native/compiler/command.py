"""The command `p4native-c`: compiles a P4 program as the command line says."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from p4native.common.whole_files import whole_file
from p4native.compiler import show
from p4native.compiler.diagnostics import Diagnostics, print_all
from p4native.compiler.frontend import check_text, parse_text, with_deep_stack
from p4native.compiler.options import (
    Request,
    UsageError,
    build_parser,
    complete,
    diagnostics_for,
    read,
)
from p4native.compiler.preprocess import preprocess
from p4native.compiler.source import NOWHERE
from p4native.compiler.syntax.lexer import tokenize

# The generated P4Runtime modules need protobuf's Python implementation (protobuf >= 4 refuses their
# descriptors otherwise); this must be set before the first import of google.protobuf.
os.environ.setdefault("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python")
P4INFO_HEADING = "# proto-file: p4/config/v1/p4info.proto\n# proto-message: p4.config.v1.P4Info\n\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compiles as the arguments say. Returns the exit status: 0 for success, 1 for errors in the
    program or its files, 2 for wrong usage."""
    parser = build_parser()
    try:
        given = parser.parse_args(complete(sys.argv[1:] if arguments is None else arguments))
        request = read(given)
    except UsageError as problem:
        parser.error(str(problem))
    diagnostics = diagnostics_for(given)
    try:
        with_deep_stack(lambda: _run(request, diagnostics))
    except RecursionError:
        diagnostics.error(NOWHERE, f"{request.program}: the program is nested too deeply")
    if "all" in diagnostics.disabled:
        diagnostics.entries = [d for d in diagnostics.entries if d.level == "error"]
    print_all(diagnostics, sys.stderr, request.max_errors)
    return 1 if diagnostics.failed else 0


def _run(request: Request, diagnostics: Diagnostics) -> None:
    text = preprocess(request.program, request.preprocessing, diagnostics)
    if text is None:
        return
    if request.show in _EARLY_STAGES:
        shown = _EARLY_STAGES[request.show](text, request.program, diagnostics)
        _print(shown if shown is not None else "")
        return
    program = check_text(text, request.program, diagnostics)
    if program is None:
        return
    if request.show == "types":
        _print(show.typed(program))
        return
    if request.show == "ir":
        _show_ir(program, request, diagnostics)
        return
    from p4native.compiler.backend import emit

    emitted = emit(program, diagnostics, request.emit_externs)
    if emitted is not None and not diagnostics.failed:
        _write_results(request, *emitted, diagnostics)


def _show_tree(text: str, file: str, diagnostics: Diagnostics) -> str | None:
    tree = parse_text(text, file, diagnostics)
    return None if tree is None else show.tree(tree)


_EARLY_STAGES: dict[str | None, Callable[[str, str, Diagnostics], str | None]] = {
    "preprocessed": lambda text, file, diagnostics: text,
    "tokens": lambda text, file, diagnostics: show.tokens(tokenize(text, file, diagnostics)),
    "ast": _show_tree,
}


def _show_ir(program: Any, request: Request, diagnostics: Diagnostics) -> None:
    from p4native.compiler import backend

    text = backend.show_ir(program, diagnostics, request.emit_externs)
    if text is not None:
        _print(text)


def _print(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # the reader (head, less) has seen enough; nothing more may be written at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write_results(
    request: Request, document: dict[str, Any], p4info: Any, diagnostics: Diagnostics
) -> None:
    text = json.dumps(document, indent=2) + "\n"
    if request.show == "json":
        _print(text)
        return
    if request.json_file is not None:
        _write(request.json_file, text.encode(), diagnostics)
    for name, format_ in request.p4info_files:
        _write(name, _serialize(p4info, format_), diagnostics)


def _serialize(p4info: Any, format_: str) -> bytes:
    from google.protobuf import json_format, text_format

    if format_ == "binary":
        return bytes(p4info.SerializeToString(deterministic=True))
    if format_ == "json":
        return (json_format.MessageToJson(p4info) + "\n").encode()
    return (P4INFO_HEADING + text_format.MessageToString(p4info)).encode()


def _write(name: str, content: bytes, diagnostics: Diagnostics) -> None:
    """Writes a file completely or not at all."""
    try:
        with whole_file(Path(name)) as path:
            path.write_bytes(content)
    except OSError as error:
        diagnostics.error(NOWHERE, f"cannot write {name}: {error.strerror or error}")
