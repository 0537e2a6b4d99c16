"""Parameter servers: docs/systems/ps.md."""
