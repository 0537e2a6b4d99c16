"""Checks of the compiler, the switch and the protocols. This package imports `testbed`; no other
package imports this one."""
