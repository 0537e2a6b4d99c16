"""Ring all-reduce: docs/systems/ring.md."""
