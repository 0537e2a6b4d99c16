"""Multiplying by a power of two loses nothing, and no other scale can say so."""

import math


def check(student):
    for largest in (0.001, 0.3, 1.0, 3.0, 1e6):
        scale = student.scale_for(largest, 5)
        mantissa, _ = math.frexp(scale)
        assert mantissa == 0.5, f"scale_for({largest}, 5) is {scale}, which is no power of two"
