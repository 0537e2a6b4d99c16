"""Checks of the compiler, the switch and the protocols. This package imports `testbed`, and nothing
imports it."""
