"""The command line of `agglab compare`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from agglab.testbed.base.exit_codes import FAILED, INVALID, PASSED
from agglab.testbed.cli import arguments
from agglab.testbed.cli.comparing.differences import compare, read
from agglab.testbed.cli.comparing.text import as_json, text
from agglab.testbed.results.files import NoResults
from p4native.common.printable import plain


def main(words: Sequence[str]) -> int:
    """Prints the differences and returns the exit code."""
    options = arguments.parse("compare", arguments.compare, words)
    try:
        found = compare(read(Path(options.a)), read(Path(options.b)))
    except NoResults as error:
        print(plain(str(error)), file=sys.stderr)
        return INVALID
    print(json.dumps(as_json(found), indent=2) if options.json else plain(text(found)))
    return PASSED if found.alike else FAILED
