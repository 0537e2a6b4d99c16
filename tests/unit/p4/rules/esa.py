"""p4/esa.p4 against systems/pooling/README.md and systems/esa/README.md."""

from __future__ import annotations

from rules.atp import rules_of

RULES = rules_of("esa", preempts=True)
