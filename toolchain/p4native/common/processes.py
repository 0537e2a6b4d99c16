"""What became of processes, in words."""

from __future__ import annotations

import signal


def exit_in_words(status: int) -> str:
    """Returns a phrase about a process's exit status that can end a sentence. A status of -n means
    that signal n killed the process."""
    if status < 0:
        return f"was killed by {signal.Signals(-status).name}"
    return f"ended with exit code {status}"
