"""What every part of the testbed may use: errors, exit codes, paths, the kernel. Nothing here knows
what a scenario is."""
