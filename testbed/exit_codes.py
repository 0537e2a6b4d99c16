"""What `agglab` returns."""

PASSED = 0
"""Every expectation of the scenario holds."""
FAILED = 1
"""One does not, or the run broke off."""
INVALID = 2
"""The scenario, its P4 program or the command line is wrong."""
LACKING = 3
"""The machine lacks something, which was named."""
INTERRUPTED = 130
"""As shells have it for SIGINT."""
