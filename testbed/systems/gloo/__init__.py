"""Gloo, PyTorch's all-reduce over TCP (docs/systems/gloo.md)."""

from agglab.testbed.systems.gloo.system import Gloo

SYSTEM = Gloo
