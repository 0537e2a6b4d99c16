"""The sum of all workers fits, even if each of them has the largest value."""


def check(student):
    for largest in (0.3, 1.0, 3.0, 12345.6, 3e8):
        for workers in (1, 2, 3, 8, 64):
            scale = student.scale_for(largest, workers)
            total = workers * round(largest * scale)
            assert total < 2**31, (
                f"scale_for({largest}, {workers}) is {scale}: the sum of {workers} workers with "
                f"{largest} is {total}, which does not fit into 32 bits"
            )
