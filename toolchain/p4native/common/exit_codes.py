"""The exit codes of commands that check something."""

from __future__ import annotations

PASSED = 0
"""Everything that was checked holds."""
FAILED = 1
"""Something that was checked does not hold."""
INVALID = 2
"""The command line or a file that it names is wrong."""
LACKING = 3
"""The machine lacks something; a message has named it."""
INTERRUPTED = 130
"""The command was interrupted; shells use the same code for SIGINT."""
