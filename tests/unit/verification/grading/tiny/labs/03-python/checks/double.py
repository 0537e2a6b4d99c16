import numpy as np


def check(student):
    for value in (1, 7, -3):
        came = student.double(value)
        assert came == 2 * value, f"double({value}) is {2 * value}, but {came} came"
    came = student.double(np.arange(4, dtype=np.int32))
    assert isinstance(came, np.ndarray) and came.tolist() == [0, 2, 4, 6], (
        "an array is doubled, too"
    )
