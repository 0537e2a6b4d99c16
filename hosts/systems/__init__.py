"""The endpoints of each system, sans-IO: a package each."""
