"""What has no result after the timeout is sent again, and nothing else."""


def check(student):
    worker = student.Recovery(3, 3, 20)
    worker.due(0)
    worker.received(1)
    early = list(worker.due(19))
    assert early == [], f"after 19 of 20 ms, due(19) returned {early} instead of nothing"
    sent = sorted(worker.due(20))
    assert sent == [0, 2], f"without results of 0 and 2, due(20) returned {sent} instead of [0, 2]"
