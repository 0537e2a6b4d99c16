"""The values of `switch.target`; testbed/real/targets/ implements each."""

P4_TARGETS = ("native", "bmv2")
"""The targets that run a P4 program."""
TARGETS = (*P4_TARGETS, "bridge")
"""All targets. A bridge only forwards."""
