"""Defines the error of a command at the prompt."""

from __future__ import annotations


class Refused(Exception):
    """Raised if a command at the prompt cannot be carried out. The message is one line that says
    why, or the report of a part that failed."""
