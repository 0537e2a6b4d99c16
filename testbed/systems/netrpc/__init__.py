"""NetRPC: calls that switches execute, of services that tables describe
(docs/systems/netrpc.md)."""

from agglab.testbed.systems.netrpc.system import NetRpc

SYSTEM = NetRpc
