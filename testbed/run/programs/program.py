"""Compiles a scenario's P4 program to BMv2 JSON and P4Info; the result is cached by content."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import p4native
from agglab.testbed.base.command_lines import peer_remedy
from agglab.testbed.base.errors import CompileError, MachineLacks
from agglab.testbed.base.paths import IS_CHECKOUT, P4_FOLDER, REPOSITORY
from agglab.testbed.systems.plan import Entries, TableEntry
from p4native.common.c_build import cache_folder
from p4native.common.object_names import is_called

CACHE = REPOSITORY / "build" / "programs"
"""The folder for compiled programs. If this is not a writable checkout, or P4NATIVE_CACHE names a
folder, they are kept in the user's cache folder."""
INCLUDES = P4_FOLDER
P4C_REMEDY = f"{peer_remedy('p4lang-p4c', 'p4c')}, or leave switch.compiler at agglab"

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True)
class Program:
    """A compiled program, and the hashes that identify it in a manifest. json_sha256: the hash of
    the JSON without the folders of its sources, which differ from one installation to another."""

    source: Path
    json: Path
    p4info: Path
    source_sha256: str
    json_sha256: str

    @cached_property
    def description(self) -> dict[str, Any]:
        """The contents of the BMv2 JSON file, read once for all switches that run the program."""
        found: dict[str, Any] = json.loads(self.json.read_text())
        return found


Programs = Mapping[str, Program]
"""The P4 programs that the switches run."""


def compile_program(source: Path, compiler: str, parameters: Mapping[str, int]) -> Program:
    """Compiles a program, or returns the result of an earlier compilation of the same text.
    parameters: names and values that are given to the compiler as -D.

    Raises CompileError for a program with errors, and MachineLacks if the compiler is not
    installed.
    """
    command = compiler_command(compiler)
    defined = [f"-D{name}={value}" for name, value in parameters.items()]
    flags = ["-I", str(INCLUDES), *defined]
    key = _content_hash(source, [compiler, *defined], command)
    sizes = "x".join(map(str, parameters.values())) or "plain"
    stem = _cache() / f"{source.stem}-{sizes}-{key[:16]}"
    bmv2, p4info = stem.with_suffix(".json"), stem.with_suffix(".p4info.txtpb")
    if not (bmv2.is_file() and p4info.is_file()):
        _compile([*command, str(source), *flags], bmv2, p4info)
    return Program(source, bmv2, p4info, _sha256(source), _json_sha256(bmv2, source))


def register_bits(program: Program) -> int:
    """Returns the size of all registers of a program, in bits. Registers and counters are the state
    that it keeps between packets."""
    arrays = program.description["register_arrays"]
    return sum(array["size"] * array["bitwidth"] for array in arrays)


def source_lines(source: Path) -> int:
    """Returns the number of lines of code of a program and its includes, without blank lines,
    comments and the architecture's own files."""
    return sum(map(_lines_of_code, {source.resolve(), *_included(source)}))


def _lines_of_code(file: Path) -> int:
    code = _COMMENT.sub("", file.read_text())
    return sum(bool(line.strip()) for line in code.splitlines())


def check_registers(program: Program, sizes: Mapping[str, int]) -> None:
    """Raises CompileError, with a line for each problem, if a register has fewer cells than the
    testbed reads. sizes: the number of cells by the last part of a register's name."""
    small: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for array in program.description["register_arrays"]:
        needed = sizes.get(array["name"].rpartition(".")[2], 0)
        if array["size"] < needed:
            small.setdefault((array["size"], needed), []).append(array)
    if small:
        lines = (_too_small(program, arrays, *numbers) for numbers, arrays in small.items())
        raise CompileError("\n".join(lines))


def _too_small(program: Program, arrays: Sequence[dict[str, Any]], size: int, needed: int) -> str:
    registers = "registers" if len(arrays) > 1 else "register"
    cells = f"{size} cell{'s' if size != 1 else ''}{' each' if len(arrays) > 1 else ''}"
    return (
        f"{_place(program, arrays[0])}: {registers} {_names(arrays)}: {cells}, but the slots of "
        f"this scenario use indices up to {needed - 1}: declare at least {needed} cells, or reduce "
        "switch.slots"
    )


def _place(program: Program, described: Mapping[str, Any]) -> str:
    """Returns the file and line of an object in the JSON; only the file if the line is unknown."""
    info = described.get("source_info")
    return f"{info['filename']}:{info['line']}" if info else str(program.source)


def check_fits(program: Program, entries: Entries) -> None:
    """Raises CompileError, with a line for each problem, if the program lacks a table, action, key
    or parameter of these entries."""
    description = program.description
    tables = [t for pipe in description["pipelines"] for t in pipe["tables"] if t["key"]]
    kinds = {
        (e.table, e.action, *sorted(e.match), *sorted(e.parameters)): e for e in entries.tables
    }
    lines, lacking = [], []
    for entry in kinds.values():
        table = _called(tables, entry.table)
        if table is None:
            lacking.append(entry.table)
        elif differs := list(_differences(entry, table, description["actions"])):
            lines.append(
                f"Agglab fills a table of this name, {table['name']}, in every switch with "
                f"{_signature(entry)}, but {' and '.join(differs)}: change this, or rename the "
                "table"
            )
    if lacking:
        names = ", ".join(dict.fromkeys(lacking))
        lines.insert(0, _without_tables(names, tables))
    if lines:
        where = f"{program.source}: "
        more = " (docs/own-systems.md)"
        raise CompileError("\n".join(f"{where}{line}{more}" for line in dict.fromkeys(lines)))


def _without_tables(lacking: str, tables: Sequence[dict[str, Any]]) -> str:
    has = f"only {_names(tables)}" if tables else "and no table with a key at all"
    return (
        f"this program cannot take part in an all-reduce: it has no table {lacking}, {has}; fill "
        "a program's own tables with `switch.entries`"
    )


def _differences(
    entry: TableEntry, table: dict[str, Any], actions: list[dict[str, Any]]
) -> Iterator[str]:
    """Yields a text for each way in which the table does not fit an entry that is planned for
    it."""
    missing = [name for name in entry.match if not _called(table["key"], name)]
    exact = [key for key in table["key"] if key["match_type"] == "exact" and not entry.default]
    if missing or any(
        not any(is_called(key["name"], name) for name in entry.match) for key in exact
    ):
        yield f"its keys are {_names(table['key'])}"
    own = [action for action in actions if action["name"] in table["actions"]]
    action = _called(own, entry.action)
    if action is None:
        yield f"it has no action {entry.action}, only {_names(own)}"
        return
    parameters = {parameter["name"] for parameter in action["runtime_data"]}
    if parameters != set(entry.parameters):
        yield f"its action {entry.action} takes ({', '.join(sorted(parameters))})"


def _signature(entry: TableEntry) -> str:
    """Returns the entry's form as text, such as `job, port -> contribute(group, slots)`."""
    return f"{', '.join(entry.match)} -> {entry.action}({', '.join(entry.parameters)})"


def _called(objects: Iterable[dict[str, Any]], name: str) -> dict[str, Any] | None:
    """Returns the object whose full name, or the last part of whose name, is `name`; None if there
    is none."""
    return next((each for each in objects if is_called(each["name"], name)), None)


def _names(objects: Iterable[dict[str, Any]]) -> str:
    return ", ".join(each["name"] for each in objects) or "none"


def _cache() -> Path:
    build = REPOSITORY / "build"
    is_elsewhere = "P4NATIVE_CACHE" in os.environ
    if (
        IS_CHECKOUT
        and not is_elsewhere
        and os.access(build if build.exists() else REPOSITORY, os.W_OK)
    ):
        return CACHE
    return cache_folder() / "programs"


def compiler_command(name: str) -> list[str]:
    """Returns the command for `switch.compiler`. Raises MachineLacks if it is not installed."""
    if name == "agglab":
        return [sys.executable, "-m", "p4native.compiler"]
    found = shutil.which("p4c-bm2-ss")
    if found is None:
        raise MachineLacks("p4c-bm2-ss, which switch.compiler asks for", P4C_REMEDY)
    return [found, "--p4v", "16"]


def _compile(command: list[str], bmv2: Path, p4info: Path) -> None:
    """Compiles to temporary names and renames the files at the end, so that a file with the final
    name is always complete."""
    try:
        bmv2.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=bmv2.parent):
            pass
    except OSError as error:
        what = f"a writable folder for compiled programs ({bmv2.parent}: {error.strerror})"
        raise MachineLacks(what, "set P4NATIVE_CACHE to a folder that is writable") from None
    part = f".{os.getpid()}"
    new_json, new_p4info = Path(f"{bmv2}{part}"), Path(f"{bmv2}{part}.p4info.txtpb")
    outputs = ["-o", str(new_json), "--p4runtime-files", str(new_p4info)]
    try:
        done = subprocess.run(command + outputs, capture_output=True, text=True, errors="replace")
        if done.returncode != 0:
            raise CompileError(done.stderr.strip() or done.stdout.strip() or "no message")
        new_p4info.rename(p4info)
        new_json.rename(bmv2)
    finally:
        new_json.unlink(missing_ok=True)
        new_p4info.unlink(missing_ok=True)


def _content_hash(source: Path, words: list[str], command: list[str]) -> str:
    """Returns a hash of everything on which the result depends: sources, flags and the compiler
    itself."""
    digest = hashlib.sha256()
    for word in words:
        digest.update(word.encode() + b"\0")
    for path in sorted({source, *_included(source)}) + list(_compiler_files(command)):
        digest.update(os.fsencode(path) + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _compiler_files(command: list[str]) -> Iterator[Path]:
    if command[0] != sys.executable:
        yield Path(command[0])
        return
    files = (p4native.FOLDER / "compiler").rglob("*")
    yield from sorted(p for p in files if p.suffix in (".py", ".p4"))


def _included(source: Path) -> set[Path]:
    """Returns the files that `source` may include, whatever the preprocessor's conditions say."""
    found: set[Path] = set()
    waiting = [source]
    while waiting:
        path = waiting.pop()
        for name in _INCLUDE.findall(path.read_bytes()):
            for folder in (path.parent, INCLUDES):
                candidate = (folder / os.fsdecode(name)).resolve()
                if candidate.is_file() and candidate not in found:
                    found.add(candidate)
                    waiting.append(candidate)
    return found


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _json_sha256(path: Path, source: Path) -> str:
    content = path.read_bytes()
    for folder in (source.parent, source.resolve().parent, INCLUDES):
        content = content.replace(b'"%s/' % os.fsencode(folder), b'"')
    return hashlib.sha256(content).hexdigest()
