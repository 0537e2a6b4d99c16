"""The worker begins as many chunks as there are slots, each once."""


def check(student):
    worker = student.Recovery(10, 3, 20)
    sent = list(worker.due(0))
    assert sent == [0, 1, 2], f"with 3 slots, due(0) returned {sent} instead of [0, 1, 2]"
    more = list(worker.due(1))
    assert more == [], f"without any result, due(1) returned {more} instead of nothing"
    few = list(student.Recovery(2, 3, 20).due(0))
    assert few == [0, 1], f"with 2 chunks and 3 slots, due(0) returned {few} instead of [0, 1]"
