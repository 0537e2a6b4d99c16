"""The sum through the switch is nearly the sum of the floats."""

import math
import random


def check(student):
    chance = random.Random(1)
    for workers in (2, 5, 8):
        tensors = [[chance.gauss(0, 0.01) for _ in range(50)] for _ in range(workers)]
        scale = student.scale_for(max(abs(x) for tensor in tensors for x in tensor), workers)
        sent = [list(student.to_integers(tensor, scale)) for tensor in tensors]
        came = list(student.to_floats([sum(lane) for lane in zip(*sent, strict=True)], scale))
        for lane, back in zip(zip(*tensors, strict=True), came, strict=True):
            error, most = abs(math.fsum(lane) - back), workers * 0.5 / scale + 1e-12
            assert error <= most, f"the sum of {workers} floats is off by {error}; allowed: {most}"
