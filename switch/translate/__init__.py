"""The model to C: `translate(program)` is the text of one translation unit (see unit.py)."""

from switch.translate.unit import translate

__all__ = ["translate"]
