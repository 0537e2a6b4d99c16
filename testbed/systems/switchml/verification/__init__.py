"""The verification of this system: a second reading of docs/protocol.md and docs/hosts.md in plain
Python, which shares nothing with the P4 program or worker.c, and worlds in which both run side by
side. Nothing of the testbed imports it.

    packets       bytes of frames
    forwarding_model  what a switch does with other frames
    switch_model  what a switch decides and sends
    worker_model  what a worker sends, counts and returns, and when
    forgery       frames that nobody honest sends
    world         switches, workers and a bag of frames, moved by steps
    interleavings every order of events of a small case
    contributions a packet test that fuzzing starts from
    mutants/      faults of the program, the plan and the judgement
"""

from agglab.testbed.systems.switchml.verification.contributions import script
from agglab.testbed.systems.switchml.verification.interleavings import exhaust
from agglab.testbed.systems.switchml.verification.world import Walks
from agglab.verification.proofs import Proofs

PROOFS = Proofs(walks=Walks, exhaust=exhaust, script=script)
