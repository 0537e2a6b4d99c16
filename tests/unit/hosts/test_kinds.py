"""What a packet is, is one byte: no system's numbers are another's, whatever bits it sets beside
them. So no endpoint and no switch takes another system's packet for one of its own."""

import importlib
from itertools import combinations
from pathlib import Path

from agglab import systems
from agglab.hosts import wire

BITS = ("RESULT", "BARE", "FUSED")
"""What wire formats call the bits that they set in `kind`."""


def modules():
    """By system; switchml's format is that of hosts/wire.py."""
    folders = sorted(path.parent.name for path in Path(systems.__file__).parent.glob("*/wire.py"))
    found = {name: importlib.import_module(f"{systems.__name__}.{name}.wire") for name in folders}
    return {"switchml": wire, **found}


def numbers(module):
    """Every byte that `kind` may be: a number, with and without each bit."""
    found = {int(kind) for kind in module.Kind}
    for name in BITS:
        bit = getattr(module, name, 0)
        assert not any(number & bit for number in found), f"{name} is part of a number"
        found |= {number | bit for number in found}
    return found


def test_every_system_has_numbers_of_its_own():
    known = {name: numbers(module) for name, module in modules().items()}
    assert {"switchml", "libra", "netrpc", "omnireduce", "pooling", "mlfabric"} <= set(known)
    assert all(number < 256 for found in known.values() for number in found)
    shared = [
        (one, other, sorted(known[one] & known[other])) for one, other in combinations(known, 2)
    ]
    assert [clash for clash in shared if clash[2]] == []
