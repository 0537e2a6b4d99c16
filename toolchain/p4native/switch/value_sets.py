"""The class ValueSets, which sets the members of the value sets of a parser."""

from __future__ import annotations

from collections.abc import Sequence

from p4native.switch.encoding import encode_value_set
from p4native.switch.errors import PipelineError
from p4native.switch.library import Instance, check
from p4native.switch.matches import Match


class ValueSets:
    """The members of the value sets of one running program. `pipeline.value_sets` is an
    instance."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance

    def write(self, name: str, members: Sequence[Sequence[Match]]) -> None:
        """Sets all members of a parser value set, each with a match for every field of the key."""
        value_set = self._instance.program.value_sets.get(name)
        if value_set is None:
            raise PipelineError(f"no value set is called '{name}'")
        if not value_set.bits:
            raise PipelineError(f"no parser state uses the value set '{name}'")
        data = b"".join(encode_value_set(value_set, member) for member in members)
        result = self._instance.call("pl_value_set_fill", value_set.index, data, len(members))
        check(result, f"value set '{name}'")
