"""A larger scale keeps more digits, so it is as large as it can be."""


def check(student):
    for largest in (3.0, 12345.6, 3e8):
        for workers in (2, 3, 8):
            scale = student.scale_for(largest, workers)
            total = workers * round(largest * scale * 2)
            assert total >= 2**31, (
                f"scale_for({largest}, {workers}) is {scale}, but twice that would fit as well"
            )
    scale = student.scale_for(2.0**31 - 1, 1)
    assert scale == 1, (
        f"scale_for(2^31 - 1, 1) is {scale}, but with 1 the sum is 2^31 - 1, which fits"
    )
