"""The prompt of `agglab shell` on a network that is up (docs/shell.md)."""
