"""A chunk that is zero everywhere has a scale as well."""


def check(student):
    scale = student.scale_for(0.0, 4)
    assert scale > 0, f"scale_for(0.0, 4) is {scale}"
    came = list(student.to_integers([0.0, 0.0], scale))
    assert came == [0, 0], f"zeros became {came}"
