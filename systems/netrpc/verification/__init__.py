"""What NetRPC contributes to its verification: faults of its program, its hosts and the predicted
traffic (mutants/), and random keys for the scenarios of `explore`. Some scenarios have so few
entries in switches that servers keep most keys."""

from agglab.systems.netrpc.keys import NetRpcKeys
from agglab.verification.proofs import Proofs

CELLS = (16, 32, 1024)

PROOFS = Proofs(options=lambda chance, jobs: NetRpcKeys(cells=chance.choice(CELLS)))
