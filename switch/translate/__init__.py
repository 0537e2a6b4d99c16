"""The model to C: `translate(program)` is the text of one translation unit (see unit.py)."""

from agglab.switch.translate.unit import translate

__all__ = ["translate"]
