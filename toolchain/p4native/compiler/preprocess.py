"""Preprocesses P4 source with the C preprocessor of the system's C compiler, as other P4 compilers
do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from p4native.compiler.diagnostics import Diagnostics
from p4native.compiler.source import MAX_TEXT_BYTES, NOWHERE, Position, read_source

INCLUDE_DIR = Path(__file__).parent / "include"
TIMEOUT_S = 20
MAX_MEMORY_BYTES = 1 << 30
LIMITED = ("/bin/sh", "-c", 'ulimit -v "$0"; exec "$@"', str(MAX_MEMORY_BYTES >> 10))
"""What stands before the preprocessor's command, so that it and what it starts have this limit from
the beginning: cc1 reads an included device such as /dev/zero without end."""

_MESSAGE = re.compile(
    r"(?P<file>.+?):(?P<line>\d+):(?:(?P<column>\d+):)? "
    r"(?P<level>fatal error|error|warning): (?P<text>.*)"
)
_MISSING = re.compile(r"'?(?P<name>[^':]+)'?(?:: No such file or directory| file not found)")
_CIRCLE = re.compile(r"#include nested (?:depth|too deeply)")
_PROGRAM = re.compile(r"[\w.+-]+: (?:fatal )?error: (?P<text>.*)")


@dataclass(frozen=True, slots=True)
class Options:
    """The options for preprocessing, each in the order given on the command line.

    defines: `NAME` or `NAME=value`. undefines: `NAME`. includes: folders that are searched before
    the compiler's own. preprocessed: whether the file needs no preprocessing. flags: other flags,
    which the C preprocessor gets unchanged.
    """

    includes: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    undefines: tuple[str, ...] = ()
    preprocessed: bool = False
    flags: tuple[str, ...] = ()


def preprocess(
    path: str,
    options: Options,
    diagnostics: Diagnostics,
    timeout_s: float = TIMEOUT_S,
    max_bytes: int = MAX_TEXT_BYTES,
) -> str | None:
    """Returns the text of a file after preprocessing, with `# line "file"` markers, or None on
    errors, of which one is a text of more than `max_bytes`."""
    if not _readable(path, diagnostics):
        return None
    if options.preprocessed:
        return read_source(path)
    compiler = _find_compiler()
    if compiler is None:
        diagnostics.error(
            NOWHERE,
            "no C compiler found to run the preprocessor (looked for cc, gcc, clang)",
            "install one: apt-get install gcc",
        )
        return None
    return _run(_command(compiler, path, options), diagnostics, timeout_s, max_bytes)


def _readable(path: str, diagnostics: Diagnostics) -> bool:
    if os.path.isdir(path):
        diagnostics.error(NOWHERE, f"{path}: is a folder, not a P4 program")
        return False
    try:
        text = read_source(path)
    except OSError as error:
        diagnostics.error(NOWHERE, f"{path}: {error.strerror or error}")
        return False
    if "\0" in text:
        diagnostics.error(NOWHERE, f"{path}: is binary data, not a P4 program")
        return False
    return True


def _find_compiler() -> str | None:
    return next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)


def _command(compiler: str, path: str, options: Options) -> list[str]:
    # -C keeps comments: lines then stay what the user wrote, and columns with them
    command = [compiler, "-E", "-C", "-undef", "-nostdinc", "-x", "assembler-with-cpp"]
    command += ["-fno-diagnostics-show-caret", "-fdiagnostics-color=never"]
    for folder in options.includes:
        command += ["-I", folder]
    command += ["-I", str(INCLUDE_DIR)]
    command += [f"-D{define}" for define in options.defines]
    command += [f"-U{name}" for name in options.undefines]
    command += options.flags
    return [*command, "--", path] if path.startswith("-") else [*command, path]


def _run(
    command: Sequence[str], diagnostics: Diagnostics, timeout_s: float, max_bytes: int
) -> str | None:
    environment = {**os.environ, "LC_ALL": "C", "CPATH": "", "C_INCLUDE_PATH": ""}
    with (
        tempfile.TemporaryFile() as messages,
        subprocess.Popen(
            [*LIMITED, *command], stdout=subprocess.PIPE, stderr=messages, env=environment
        ) as process,
    ):
        assert process.stdout is not None
        timer = threading.Timer(timeout_s, process.kill)
        timer.start()
        text = process.stdout.read(max_bytes + 1)
        if len(text) > max_bytes:
            process.kill()
        process.wait()
        timed_out = not timer.is_alive()
        timer.cancel()
        messages.seek(0)
        _report(messages.read().decode("utf-8", "replace"), diagnostics)
    if timed_out or len(text) > max_bytes:
        diagnostics.error(
            NOWHERE,
            f"preprocessing takes more than {timeout_s} s or {max_bytes >> 20} MB of text",
            "look for macros that multiply themselves",
        )
        return None
    if process.returncode != 0:
        if not diagnostics.failed:
            hint = "does an #include name a device or a huge file? It may use 1 GB of memory"
            diagnostics.error(NOWHERE, f"the preprocessor failed: {' '.join(command)}", hint)
        return None
    return text.decode("utf-8", "replace")


def _report(text: str, diagnostics: Diagnostics) -> None:
    for line in text.splitlines():
        if match := _MESSAGE.match(line):
            place = Position(match["file"], int(match["line"]), int(match["column"] or 1))
            if _CIRCLE.match(match["text"]):
                diagnostics.error(place, "these files include each other endlessly", "add a guard")
                return
            _report_one(place, match["level"], match["text"], diagnostics)
        elif match := _PROGRAM.match(line):
            diagnostics.error(NOWHERE, match["text"])


def _report_one(place: Position, level: str, text: str, diagnostics: Diagnostics) -> None:
    if "error" not in level:
        diagnostics.warning(place, text, kind="preprocessor")
    elif missing := _MISSING.fullmatch(text):
        name = missing["name"]
        diagnostics.error(
            place,
            f"include file {name} not found",
            f"give the folder that holds it: -I DIR (searched last: {INCLUDE_DIR})",
        )
    else:
        diagnostics.error(place, text.removeprefix("#error ").strip())
