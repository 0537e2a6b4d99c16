"""The command lines of `agglab pack` and `agglab repeat`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from agglab.testbed.exit_codes import FAILED, INVALID, PASSED
from agglab.testbed.packing.archive import BadPack
from agglab.testbed.packing.named_files import CannotPack
from agglab.testbed.packing.pack import WITHIN, pack
from agglab.testbed.packing.repeat import repeat
from agglab.testbed.result_files import NoResults
from agglab.testbed.terminal import plain

SUFFIX = ".agglab.zip"
REPEAT_CODES = """exit codes:
  0  every run agrees with the packed one
  1  a run does not agree, or was aborted
  2  the file is not a pack, is damaged, or needs --trust-code
  3  this machine lacks something; the message names it"""


def pack_main(words: Sequence[str]) -> int:
    """Runs `agglab pack`. Returns 0, or 2 if a folder cannot be packed."""
    options = _pack_parser().parse_args(words)
    folders = [Path(folder) for folder in options.folders]
    name = folders[0].resolve()
    out = Path(options.out or f"{name.parent.name}-{name.name}{SUFFIX}")
    try:
        notes = pack(folders, out, options.within)
    except (NoResults, CannotPack) as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(f"{error.filename or out}: {error.strerror}")
    for note in notes:
        print(plain(f"note: {note}"), file=sys.stderr)
    print(plain(str(out)))
    return PASSED


def repeat_main(words: Sequence[str]) -> int:
    """Runs `agglab repeat` and returns its exit code. Raises the exceptions of the runs that it
    repeats."""
    options = _repeat_parser().parse_args(words)
    from agglab.testbed.run import run

    try:
        return repeat(
            Path(options.pack), Path(options.results), options.trust_code, run, sys.stdout
        )
    except BadPack as error:
        return _fail(f"{options.pack}: {error}")
    except NoResults as error:
        print(plain(str(error)), file=sys.stderr)
        return FAILED


def _fail(text: str) -> int:
    print(plain(text), file=sys.stderr)
    return INVALID


def _share(text: str) -> float:
    number = text.removesuffix("%")
    try:
        value = float(number) / (100 if number != text else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share such as 10% or 0.1")
    return value


def _pack_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="agglab pack",
        description="Write results, and everything that is needed to repeat them, as one file.",
    )
    parser.add_argument("folders", nargs="+", metavar="RUN", help="results/<scenario>/<run-id>")
    parser.add_argument(
        "--out",
        metavar="FILE",
        help=f"the file to write (default: <scenario>-<run-id>{SUFFIX} of the first)",
    )
    parser.add_argument(
        "--within",
        type=_share,
        default=WITHIN,
        metavar="SHARE",
        help="how much median times of real runs may differ and still agree (default: 10%%)",
    )
    return parser


def _repeat_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="agglab repeat",
        description="Run the scenarios of a pack again, and say whether the results agree.",
        epilog=REPEAT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("pack", metavar="PACK", help="a file that `pack` wrote")
    parser.add_argument(
        "--results", default="results", metavar="DIR", help="the folder for results"
    )
    parser.add_argument(
        "--trust-code",
        action="store_true",
        help="run Python code that is in the pack: its author can then do everything that you "
        "can do",
    )
    return parser
