"""Lab 10: a switch adds integers, and training needs sums of floats."""

LARGEST = 2**31 - 1  # what a signed integer of 32 bits can hold


def scale_for(largest, workers):
    """Returns the scale for a chunk: the largest power of two with which no sum overflows. largest:
    the largest absolute value that any of the workers has in this chunk."""
    scale = 2.0**30
    while workers * round(largest * scale) > LARGEST:
        scale = scale / 2
    return scale


def to_integers(values, scale):
    """Returns what a worker sends for these floats: the integers nearest to value * scale."""
    return [round(value * scale) for value in values]


def to_floats(sums, scale):
    """Returns the floats that the integers from the switch stand for."""
    return [total / scale for total in sums]
