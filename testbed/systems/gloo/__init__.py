"""Gloo, the all-reduce of PyTorch over TCP (docs/systems/gloo.md)."""

from agglab.testbed.systems.gloo.system import Gloo

SYSTEM = Gloo
