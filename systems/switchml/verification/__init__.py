"""The verification of SwitchML: a second implementation of docs/protocol.md and docs/hosts.md in
plain Python, which shares no code with the P4 program or worker.c. Both implementations run side by
side in worlds. Nothing else of the testbed imports this package.

    packets       the bytes of frames
    forwarding_model  what a switch does with frames that belong to no aggregation
    switch_model  what a switch decides and sends
    worker_model  what a worker sends, counts and returns, and when
    forgery       frames that no honest member sends
    world         switches, workers and a bag of frames, moved by steps
    interleavings every order of events of a small case
    contributions a packet test from which fuzzing starts
    mutants/      faults of the program, the plan and the judgement
"""

from agglab.systems.switchml.verification.contributions import script
from agglab.systems.switchml.verification.interleavings import exhaust
from agglab.systems.switchml.verification.world import Walks
from agglab.verification.proofs import Proofs

PROOFS = Proofs(walks=Walks, exhaust=exhaust, script=script)
