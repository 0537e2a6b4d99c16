"""Measures what this machine can carry. `search` finds the highest rate, `capacity` stores it and
compares it with what a scenario needs, and `command` is `agglab calibrate`."""
