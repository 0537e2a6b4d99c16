"""Small numbers get the largest scale, 2^30."""


def check(student):
    for largest in (0.0, 1e-6, 0.1):
        scale = student.scale_for(largest, 2)
        assert scale == 2**30, f"scale_for({largest}, 2) is {scale}, and 2^30 is {2**30}"
