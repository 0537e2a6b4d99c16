"""Measures what this machine can carry: `search` finds it, `capacity` stores it and compares it
with what a scenario needs, `command` is `agglab calibrate`."""
