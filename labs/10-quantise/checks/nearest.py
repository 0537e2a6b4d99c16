"""Each float becomes the nearest integer, also if it is negative."""


def check(student):
    for value, scale, right in ((0.6, 1.0, 1), (-0.6, 1.0, -1), (-0.4, 1.0, 0), (0.3, 8.0, 2)):
        came = list(student.to_integers([value], scale))
        assert came == [right], f"to_integers([{value}], {scale}) is {came} instead of [{right}]"
    came = list(student.to_integers([1.0, -2.0, 0.0], 4.0))
    assert came == [4, -8, 0], f"to_integers([1.0, -2.0, 0.0], 4.0) is {came}"
