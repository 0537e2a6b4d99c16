"""Lab 10: a switch adds integers, and training needs sums of floats."""

LARGEST = 2**31 - 1  # what a signed integer of 32 bits can hold


def scale_for(largest, workers):
    """Returns the scale for a chunk: the largest power of two with which no sum overflows. largest:
    the largest absolute value that any of the workers has in this chunk."""
    scale = 2.0**30
    # TODO 3: halve the scale until the sum of all workers fits, even if each has the largest value.
    return scale


def to_integers(values, scale):
    """Returns what a worker sends for these floats: the integers nearest to value * scale."""
    # TODO 1
    return [0 for value in values]


def to_floats(sums, scale):
    """Returns the floats that the integers from the switch stand for."""
    # TODO 2
    return [float(total) for total in sums]
