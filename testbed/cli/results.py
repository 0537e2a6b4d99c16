"""`agglab results DIR...`: writes the numbers of many runs as one table for other programs."""

from __future__ import annotations

import csv
import importlib
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TextIO

from agglab.testbed.base.command_lines import extra
from agglab.testbed.base.errors import MachineLacks
from agglab.testbed.base.exit_codes import INVALID, PASSED
from agglab.testbed.cli import arguments
from agglab.testbed.results.files import NoResults
from agglab.testbed.results.tidy_table import Row, rows, swept_columns
from p4native.common.printable import plain
from p4native.common.whole_files import whole_file

COLUMNS = tuple(each.name for each in fields(Row) if each.name != "settings")
"""The columns that come before those of the swept keys."""
KINDS = {"point": "int64", "seed": "int64", "index": "int64", "value": "float64"}
"""The Arrow types of the columns that are not text."""
NO_PARQUET = MachineLacks("the Python package pyarrow", extra("parquet"))


def main(words: Sequence[str]) -> int:
    """Runs `agglab results`. Returns 0, or 2 if a folder has no results or the table cannot be
    written. Raises MachineLacks for Parquet without pyarrow, before anything is read."""
    options = arguments.parse("results", arguments.results, words)
    to = options.to or _format_of(options.out)
    if to is None or (to == "parquet" and options.out is None):
        print(plain(f"agglab results: {_unusable(to, options.out)}"), file=sys.stderr)
        return INVALID
    if to == "parquet" and not _has_pyarrow():
        raise NO_PARQUET
    try:
        table = list(rows([Path(folder) for folder in options.folders]))
    except NoResults as error:
        print(plain(str(error)), file=sys.stderr)
        return INVALID
    if options.out is None:
        _lines(table, sys.stdout)
        return PASSED
    try:
        _write(table, to, Path(options.out))
    except OSError as error:
        print(plain(f"{options.out}: {error.strerror}"), file=sys.stderr)
        return INVALID
    return PASSED


def _format_of(out: str | None) -> str | None:
    """Returns the format that the file's name states: csv for standard output; None if the name
    states none."""
    if out is None:
        return "csv"
    suffix = Path(out).suffix.removeprefix(".")
    return suffix if suffix in arguments.FORMATS else None


def _unusable(to: str | None, out: str | None) -> str:
    """Returns what is wrong with the options of a table that cannot be written."""
    if to:
        return f"--to {to} needs --out FILE"
    endings, choice = (
        " or ".join(f"{dot}{each}" for each in arguments.FORMATS) for dot in (".", "")
    )
    return f"--out {out}: does not end in {endings}; say the format with --to: {choice}"


def _has_pyarrow() -> bool:
    try:
        importlib.import_module("pyarrow")
        importlib.import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        return False
    return True


def _write(table: Sequence[Row], to: str, out: Path) -> None:
    """Writes the whole file, or nothing if that fails."""
    with whole_file(out) as path:
        if to == "parquet":
            _parquet(table, path)
        else:
            with path.open("w", encoding="utf-8", newline="") as file:
                _lines(table, file)


def _lines(table: Sequence[Row], file: TextIO) -> None:
    swept = swept_columns(table)
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*COLUMNS, *swept])
    for i, row in enumerate(table):
        own = (getattr(row, field) for field in COLUMNS)
        writer.writerow([*own, *(values[i] for values in swept.values())])


def _parquet(table: Sequence[Row], out: Path) -> None:
    """Writes the table as Parquet. The column of a swept key has numbers if all its values are
    numbers."""
    pyarrow = importlib.import_module("pyarrow")
    parquet = importlib.import_module("pyarrow.parquet")
    columns = {
        field: pyarrow.array([getattr(row, field) for row in table], KINDS.get(field, "string"))
        for field in COLUMNS
    }
    for key, values in swept_columns(table).items():
        columns[key] = pyarrow.array(values)
    parquet.write_table(pyarrow.table(columns), out)
