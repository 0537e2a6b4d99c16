"""Measures what rate this machine can carry. `search` finds the highest rate, `capacity` stores it
and compares it with what a scenario needs, and `command` implements `agglab calibrate`."""
