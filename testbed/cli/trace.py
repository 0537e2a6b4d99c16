"""`agglab trace`: writes a run as trace events, for Perfetto and Chrome's tracing."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from agglab.testbed.base.exit_codes import INVALID, PASSED
from agglab.testbed.cli import arguments
from agglab.testbed.results import chrome_trace
from agglab.testbed.results.chrome_trace import Span, Written
from agglab.testbed.results.files import NoResults
from p4native.common.printable import plain

NS_PER_MS = 1e6


def main(words: Sequence[str]) -> int:
    """Runs `agglab trace`. Returns 0, or 2 if the folder has no result or the file cannot be
    written."""
    options = arguments.parse("trace", arguments.trace, words)
    out = options.out or options.folder / "trace.json"
    span = Span(
        Span.from_ns if options.from_ns is None else options.from_ns,
        Span.to_ns if options.to_ns is None else options.to_ns,
    )
    try:
        written = chrome_trace.write(options.folder, out, span, options.max_size)
    except NoResults as error:
        print(plain(str(error)), file=sys.stderr)
        return INVALID
    except OSError as error:
        print(plain(f"cannot write {out}: {error.strerror}"), file=sys.stderr)
        return INVALID
    print(plain(f"{out}: {_about(written)}"))
    return PASSED


def _about(written: Written) -> str:
    """Returns what the file holds and what it lacks."""
    about = f"{written.events} events; open it at ui.perfetto.dev or chrome://tracing"
    if not written.has_packets:
        about += "\nThere are no packets: the run has no captures (set switch.pcap to true)."
    if written.complete_until_ns is not None:
        ms = written.complete_until_ns / NS_PER_MS
        about += (
            f"\nPackets are missing from {ms:.3f} ms on, because the file would be too large; "
            "choose another part with --from and --to, or --max-size."
        )
    return about
