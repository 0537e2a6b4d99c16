"""A result makes the slot free for the next chunk of that slot, and no other."""


def check(student):
    worker = student.Recovery(10, 3, 20)
    worker.due(0)
    worker.received(0)
    sent = list(worker.due(5))
    assert sent == [3], f"after the result of chunk 0, due(5) returned {sent} instead of [3]"
    worker.received(2)
    sent = list(worker.due(6))
    assert sent == [], (
        f"slot 1 is not free, but due(6) returned {sent}: chunk 4 comes before chunk 5"
    )
    worker.received(1)
    sent = list(worker.due(7))
    assert sent == [4, 5], f"after the results of 1 and 2, due(7) returned {sent} instead of [4, 5]"
