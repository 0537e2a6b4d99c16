"""p4/netrpc.p4 against systems/netrpc/README.md."""

from __future__ import annotations

import random
from collections import Counter

from conversations import Conversation, Step
from frames import from_aggregator, worker
from netrpc_model import frame
from netrpc_schedules import COUNTERS, DEFINES, INDEX, JOB, PORTS, model, random_packet, setup
from tables import Setup

from rules import Rules

OUTSIDERS = 16
"""The index of counters of what is in no job."""
EPOCH = 0x12345
"""The switch's clock would tell another one each time."""


def calls(chance: random.Random, length: int = 250) -> Conversation:
    """Calls in an epoch that has begun; what leaves is what the model says."""
    switch, steps, outsiders = model(), [], 0
    switch.epoch = EPOCH
    for _ in range(length):
        port, packet = random_packet(chance, switch, opens=False)
        outsiders += port not in PORTS or packet.job != JOB
        answer = switch.receive(port, packet, 0)
        ports, answered = answer or ((), packet)
        out = [(to, from_aggregator(worker(to, JOB), answered.payload())) for to in sorted(ports)]
        steps.append(Step(port, frame(port, packet), out))
    begun = Setup(registers={("epochs", INDEX): EPOCH})
    return Conversation(setup() + begun, steps, counters(switch.counts, outsiders))


def counters(counts: Counter[str], outsiders: int) -> dict[str, int]:
    """Of the program's counters, what the model counted; outsiders: of no job, and refused."""
    of_job = Counter(counts)
    of_job["refused"] -= outsiders
    known = {f"{name}({INDEX})": of_job[what] for what, name in COUNTERS.items()}
    return {**known, f"{COUNTERS['refused']}({OUTSIDERS})": outsiders}


RULES = Rules(
    "netrpc",
    DEFINES,
    {"calls": calls},
    systems=("netrpc",),
    members=setup(),
    refused=f"call_refused({OUTSIDERS})",
)
