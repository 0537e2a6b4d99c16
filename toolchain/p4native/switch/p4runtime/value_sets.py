"""The class that serves the entity ValueSetEntry: the members of parser value sets."""

from __future__ import annotations

from collections.abc import Iterator

from p4.v1 import p4runtime_pb2
from p4.v1.p4runtime_pb2 import Entity, ValueSetEntry, ValueSetMember

from p4native.switch import Pipeline
from p4native.switch.p4runtime.arrays import only_modify
from p4native.switch.p4runtime.matches import decode_key, encode_key
from p4native.switch.p4runtime.p4info import P4InfoIndex, ValueSet, find
from p4native.switch.p4runtime.status import Code, StatusError, invalid


class ValueSets:
    """The value sets of one loaded program."""

    def __init__(self, index: P4InfoIndex, pipeline: Pipeline) -> None:
        self._sets = index.value_sets
        self._pipeline = pipeline
        self._stored = {id_: ValueSetEntry(value_set_id=id_) for id_ in self._sets}

    def write(self, kind: int, message: ValueSetEntry) -> None:
        """Replaces all members of a value set."""
        value_set = find(self._sets, "value_set", message.value_set_id)
        where = f"value set {value_set.name}"
        only_modify(kind, where)
        if len(message.members) > value_set.size:
            raise StatusError(
                Code.RESOURCE_EXHAUSTED,
                f"{where}: {len(message.members)} members are given, "
                f"but at most {value_set.size} fit",
            )
        keys = [decode_key(where, value_set.fields, member.match) for member in message.members]
        if len(set(keys)) != len(keys):
            raise invalid(f"{where}: a member is given twice")
        self._pipeline.value_sets.write(value_set.name, keys)
        self._stored[value_set.id] = ValueSetEntry(
            value_set_id=value_set.id,
            members=[ValueSetMember(match=encode_key(value_set.fields, key)) for key in keys],
        )

    def read(self, query: p4runtime_pb2.ValueSetEntry) -> Iterator[Entity]:
        """Yields one value set, or all (value_set_id 0)."""
        chosen: list[ValueSet] = list(self._sets.values())
        if query.value_set_id:
            chosen = [find(self._sets, "value_set", query.value_set_id)]
        for value_set in chosen:
            yield Entity(value_set_entry=self._stored[value_set.id])
