"""NetRPC: switches execute the calls of services, which tables describe
(docs/systems/netrpc.md)."""

from agglab.testbed.systems.netrpc.system import NetRpc

SYSTEM = NetRpc
