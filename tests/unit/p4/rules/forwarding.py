"""p4/forwarding.p4, the switch of systems that aggregate between hosts."""

from rules import Rules

RULES = Rules("forwarding", {}, systems=("ring", "ps"))
