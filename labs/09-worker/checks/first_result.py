"""Every chunk that was sent can get its result, in any order."""


def check(student):
    worker = student.Recovery(6, 3, 20)
    worker.due(0)
    for chunk in (2, 0, 1):
        came = worker.received(chunk)
        assert came is True, f"chunk {chunk} was sent, but received({chunk}) returned {came}"
