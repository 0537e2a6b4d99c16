"""The translator from the model of a program to C. `translate(program)` returns the text of one C
file (see unit.py)."""

from p4native.switch.translate.unit import translate

__all__ = ["translate"]
