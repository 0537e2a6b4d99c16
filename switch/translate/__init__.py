"""The translator from the model to C: `translate(program)` returns the text of one translation unit
(see unit.py)."""

from agglab.switch.translate.unit import translate

__all__ = ["translate"]
