"""The command lines of `agglab pack` and `agglab repeat`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from agglab.testbed.base.exit_codes import FAILED, INVALID, PASSED
from agglab.testbed.cli import arguments
from agglab.testbed.cli.packing.archive import BadPack
from agglab.testbed.cli.packing.named_files import CannotPack
from agglab.testbed.cli.packing.pack import pack
from agglab.testbed.cli.packing.repeat import repeat
from agglab.testbed.results.files import NoResults
from p4native.common.printable import plain


def pack_main(words: Sequence[str]) -> int:
    """Runs `agglab pack`. Returns 0, or 2 if a folder cannot be packed."""
    options = arguments.parse("pack", arguments.pack, words)
    folders = [Path(folder) for folder in options.folders]
    name = folders[0].resolve()
    out = Path(options.out or f"{name.parent.name}-{name.name}{arguments.PACK_SUFFIX}")
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
    options = arguments.parse("repeat", arguments.repeat, words)
    from agglab.testbed.experiment.scenario_run import run

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
