"""Faults put into Agglab on purpose, one at a time, and which check catches each.

    python -m agglab.verification mutants --only switch-stale-unchecked

`catalogue` reads the faults (catalogue/*.yaml), `workspace` is a copy of the repository in which
one is applied, `checks` runs tests, schedules and scenarios there, `suite` does it for many,
`table` writes docs/mutants.md.
"""
