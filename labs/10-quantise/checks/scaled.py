"""A float times the scale, and a sum divided by it, however it is rounded."""


def check(student):
    came = list(student.to_integers([1.0, -2.0, 3.0], 8.0))
    errors = [abs(value - right) for value, right in zip(came, (8, -16, 24), strict=True)]
    assert max(errors) <= 1, f"to_integers([1.0, -2.0, 3.0], 8.0) is {came}"
    came = list(student.to_floats([8, -16], 8.0))
    assert came == [1.0, -2.0], f"to_floats([8, -16], 8.0) is {came}"
