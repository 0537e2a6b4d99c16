"""The search for schedules of faults that break a protocol, in virtual time.

    python -m agglab.verification explore --schedules 100000

`schedules` makes a scenario from a seed, `trial` runs and judges it, `shrink` makes a failing
scenario small, and `search` does this for many seeds. What a system contributes to its own
verification, such as walks, is in `verification.proofs`.
"""
