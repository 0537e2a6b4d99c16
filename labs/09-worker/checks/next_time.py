"""The worker says when it has to be called again."""


def check(student):
    worker = student.Recovery(2, 2, 20)
    worker.due(0)
    worker.received(0)
    assert worker.next_time() == 20, (
        f"chunk 1 was sent at 0, but next_time() is {worker.next_time()}"
    )
    worker = student.Recovery(3, 2, 20)
    worker.due(0)
    worker.received(0)
    worker.due(7)
    first = worker.next_time()
    assert first == 20, f"chunk 1 was sent at 0 and chunk 2 at 7, but next_time() is {first}"
    worker.received(1)
    first = worker.next_time()
    assert first == 27, f"chunk 2 was sent at 7, but next_time() is {first}"
    worker.received(2)
    assert worker.next_time() is None, "next_time() is not None although every chunk has its result"
