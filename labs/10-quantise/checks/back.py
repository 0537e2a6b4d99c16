"""The way back undoes the way there."""


def check(student):
    came = list(student.to_floats([4, -8, 3], 4.0))
    assert came == [1.0, -2.0, 0.75], f"to_floats([4, -8, 3], 4.0) is {came}"
    values = [0.1, -3.14, 1000.0]
    came = list(student.to_floats(student.to_integers(values, 1024.0), 1024.0))
    for value, back in zip(values, came, strict=True):
        assert abs(value - back) <= 0.5 / 1024, f"{value} became {back} with a scale of 1024"
