"""NetRPC's part of the verification: faults of its program, its hosts and its prediction
(mutants/). Its schedules are searched like those of every system. In some of them there are so few
entries that servers keep most keys."""

from agglab.testbed.systems.netrpc.keys import NetRpcKeys
from agglab.verification.proofs import Proofs

CELLS = (16, 32, 1024)

PROOFS = Proofs(options=lambda chance: NetRpcKeys(cells=chance.choice(CELLS)))
