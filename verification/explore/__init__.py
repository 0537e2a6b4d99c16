"""The search for schedules of faults that break the protocol, in virtual time.

    python -m agglab.verification explore --schedules 100000

`schedules` makes a scenario from a seed, `trial` runs and judges it, `shrink` makes a failing one
small, and `search` does this for many seeds. What a system itself contributes to its verification,
such as walks, is in `proofs`.
"""
