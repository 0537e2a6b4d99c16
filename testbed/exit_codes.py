"""The exit codes of `agglab`."""

PASSED = 0
"""Every expectation of the scenario holds."""
FAILED = 1
"""An expectation does not hold, or the run was aborted."""
INVALID = 2
"""The scenario, its P4 program or the command line is wrong."""
LACKING = 3
"""The machine lacks something; a message has named it."""
INTERRUPTED = 130
"""The run was interrupted; shells use the same code for SIGINT."""
