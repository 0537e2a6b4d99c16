"""Checks of the protocols and of what the laboratory reads. This package imports `testbed`; no
other package imports this one."""
