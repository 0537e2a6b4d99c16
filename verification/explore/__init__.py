"""The search for bad schedules, in virtual time.

    python -m agglab.verification explore --schedules 100000

`schedules` makes a scenario from a seed, `trial` runs and judges it, `shrink` makes a failing one
small, `search` does it for many. What a system brings itself, such as walks, is in `proofs`.
"""
