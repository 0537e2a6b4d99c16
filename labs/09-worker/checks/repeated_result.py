"""A result that nobody waits for changes nothing."""


def check(student):
    worker = student.Recovery(4, 2, 20)
    worker.due(0)
    assert worker.received(0) is True, "received(0) did not return True for the first result"
    assert worker.received(0) is False, "received(0) did not return False for the second result"
    assert worker.received(3) is False, "received(3) did not return False before chunk 3 was sent"
    assert worker.received(99) is False, "received(99) did not return False: there is no chunk 99"
    worker.received(1)
    worker.due(1)
    worker.received(2)
    assert worker.done() is False, "done() is True although chunk 3 has no result"
    worker.received(3)
    assert worker.done() is True, "done() is not True although every chunk has its result"
