"""The table of all systems (docs/systems/README.md): every system on every kind of workload that it
supports, on the same links, in virtual time."""
