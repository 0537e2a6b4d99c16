"""p4/esa.p4 against docs/pooling.md and docs/systems/esa.md."""

from __future__ import annotations

from rules.atp import rules_of

RULES = rules_of("esa", preempts=True)
