"""What this machine can carry: `search` finds it, `capacity` keeps it and says what a scenario asks
of it, `command` is `agglab calibrate`."""
