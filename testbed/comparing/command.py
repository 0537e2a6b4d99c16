"""The command line of `agglab compare`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from agglab.testbed.comparing.differences import compare, read
from agglab.testbed.comparing.text import as_json, text
from agglab.testbed.exit_codes import FAILED, INVALID, PASSED
from agglab.testbed.result_files import NoResults
from agglab.testbed.terminal import plain

EXIT_CODES = """exit codes:
  0  nothing differs by more than noise
  1  something differs by more than noise, or there are too few rounds to tell
  2  a folder holds no results, or they are damaged"""


def main(words: Sequence[str]) -> int:
    """Prints the differences and returns the exit code."""
    options = _parser().parse_args(words)
    try:
        found = compare(read(Path(options.a)), read(Path(options.b)))
    except NoResults as error:
        print(plain(str(error)), file=sys.stderr)
        return INVALID
    print(json.dumps(as_json(found), indent=2) if options.json else plain(text(found)))
    return PASSED if found.alike else FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="agglab compare",
        description="Show what differs between two results, and whether the difference is more "
        "than noise.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name in ("a", "b"):
        parser.add_argument(
            name, metavar=name.upper(), help="a result folder: results/<scenario>/<run-id>"
        )
    parser.add_argument("--json", action="store_true", help="print the same as one JSON object")
    return parser
