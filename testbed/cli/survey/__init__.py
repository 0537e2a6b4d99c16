"""Makes the tables of all systems (systems/README.md): every system runs every kind of
workload that it supports, on the same links, in virtual time."""
