"""What the search knows of switchml: a second reading of docs/protocol.md and docs/hosts.md in
plain Python, which shares nothing with the P4 program or worker.c, and worlds in which both run
side by side.

    packets       bytes of frames
    forwarding_model  what a switch does with other frames
    switch_model  what a switch decides and sends
    worker_model  what a worker sends, counts and returns, and when
    forgery       frames that nobody honest sends
    world         switches, workers and a bag of frames, moved by steps
"""
