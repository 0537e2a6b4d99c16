"""The translator from the model of a program to C. `translate(program)` returns the text of one C
file (see unit.py)."""

from agglab.switch.translate.unit import translate

__all__ = ["translate"]
