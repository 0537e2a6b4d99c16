"""Each packet waits for a timeout of its own."""


def check(student):
    worker = student.Recovery(2, 1, 20)
    worker.due(0)
    worker.due(20)
    early = list(worker.due(21))
    assert early == [], (
        f"sent again at 20, the chunk was sent at 21 once more: due returned {early}"
    )
    sent = list(worker.due(40))
    assert sent == [0], f"sent again at 20, due(40) returned {sent} instead of [0]"
    worker.received(0)
    worker.due(50)
    early = list(worker.due(69))
    assert early == [], f"chunk 1 was sent at 50, but due(69) returned {early}"
    worker = student.Recovery(3, 2, 20)
    worker.due(0)
    worker.received(0)
    worker.due(7)
    sent = list(worker.due(20))
    assert sent == [1], f"chunk 1 was sent at 0 and chunk 2 at 7, but due(20) returned {sent}"
