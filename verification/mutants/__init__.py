"""Faults put into Agglab on purpose, one at a time, and the checks that catch each of them.

    python -m agglab.verification mutants --only switch-stale-unchecked

`catalogue` reads the faults (catalogue/*.yaml). `workspace` is a copy of the repository in which
one fault is applied, and `checks` runs tests, schedules and scenarios there. `suite` does this for
many faults, and `table` writes docs/mutants.md.
"""
