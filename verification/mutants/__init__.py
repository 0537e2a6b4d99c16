"""Puts faults into Agglab on purpose, one at a time, and records which checks catch each fault.

    python -m agglab.verification mutants --only switch-stale-unchecked

A mutant is a version of Agglab with one such fault. `catalogue` reads the faults
(catalogue/*.yaml). `workspace` is a copy of the repository in which one fault is applied, and
`checks` runs tests, schedules and scenarios there. `suite` does this for many faults, and `table`
writes what caught each of them (docs/mutants.md).
"""
