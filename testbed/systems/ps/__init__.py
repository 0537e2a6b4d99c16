"""Parameter servers, on hosts of their own or beside the workers (docs/systems/ps.md)."""

from agglab.testbed.systems.ps.system import ParameterServer

SYSTEM = ParameterServer
