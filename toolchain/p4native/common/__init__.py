"""Code that the hosts, the compiler, the switch and the testbed share. This folder imports nothing
else of the project."""
