"""The classes that serve the entities ActionProfileMember and ActionProfileGroup, and the action
sets of table entries."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from p4.v1 import p4runtime_pb2
from p4.v1.p4runtime_pb2 import ActionProfileGroup, ActionProfileMember, Entity, Update

from p4native.switch import Group, Member, Pipeline, PipelineError
from p4native.switch.p4runtime.bytestring import decode
from p4native.switch.p4runtime.links import Links
from p4native.switch.p4runtime.matches import decode_params, encode_action
from p4native.switch.p4runtime.p4info import P4InfoIndex, Profile, Table, find
from p4native.switch.p4runtime.status import Code, StatusError, invalid

MAX_WEIGHT = 1 << 16
"""The largest weight. As in BMv2, a member of weight w is in its group w times."""
PORT_BITS = 9

Item: TypeAlias = ActionProfileGroup.Member | p4runtime_pb2.ActionProfileAction


@dataclass
class _Member:
    message: ActionProfileMember
    member: Member


@dataclass
class _Group:
    message: ActionProfileGroup
    group: Group
    choices: list[Choice]


@dataclass(frozen=True)
class Choice:
    """One member of a group. weight: how often the member is in the group. watched: the port that
    must be up for packets to choose the member, if any."""

    member: Member
    weight: int
    watched: int | None


@dataclass(frozen=True)
class ActionSet:
    """The group and members that were made for one entry's action set and belong only to that
    entry."""

    profile: Profile
    group: Group
    choices: tuple[Choice, ...]
    message: p4runtime_pb2.TableAction
    """The set as it is read back, in canonical form."""


Stored = TypeVar("Stored")


class ActionProfiles:
    """The action profiles of one loaded program."""

    def __init__(self, index: P4InfoIndex, pipeline: Pipeline, links: Links) -> None:
        self._index = index
        self._pipeline = pipeline
        self._links = links
        self._sets: dict[tuple[int, Group], ActionSet] = {}
        self._members: dict[int, dict[int, _Member]] = {id_: {} for id_ in index.profiles}
        self._groups: dict[int, dict[int, _Group]] = {id_: {} for id_ in index.profiles}

    def _profile(self, id_: int) -> Profile:
        return find(self._index.profiles, "action_profile", id_)

    def _decode(
        self, profile: Profile, message: p4runtime_pb2.Action
    ) -> tuple[str, tuple[int, ...]]:
        if message.action_id not in profile.actions:
            raise invalid(
                f"action profile {profile.name}: action_id {message.action_id:#x} is not an "
                "action of its tables"
            )
        action = self._index.actions[message.action_id]
        return action.name, decode_params(action, message.params)

    # ---- members

    def write_member(self, kind: int, message: ActionProfileMember) -> None:
        """Inserts, modifies or deletes a member."""
        profile = self._profile(message.action_profile_id)
        members = self._members[profile.id]
        where = f"action profile {profile.name}, member_id {message.member_id}"
        _check_existence(where, message.member_id, kind, message.member_id in members)
        if kind == Update.DELETE:
            self._delete_member(profile, where, message.member_id)
            return
        name, args = self._decode(profile, message.action)
        if kind == Update.INSERT:
            member = self._pipeline.profiles.add_member(profile.name, name, args)
            members[message.member_id] = _Member(ActionProfileMember(), member)
        else:
            member = members[message.member_id].member
            self._pipeline.profiles.modify_member(profile.name, member, name, args)
        stored = members[message.member_id].message
        stored.CopyFrom(message)
        action = self._index.actions[message.action.action_id]
        stored.action.CopyFrom(encode_action(action, args).action)

    def _delete_member(self, profile: Profile, where: str, id_: int) -> None:
        member = self._members[profile.id][id_].member
        # A group keeps a member whose port is down, though the data plane's has it no longer.
        groups = self._groups[profile.id].items()
        users = [g for g, known in groups if any(c.member == member for c in known.choices)]
        if users:
            raise StatusError(
                Code.FAILED_PRECONDITION, f"{where}: the group with group_id {users[0]} uses it"
            )
        with _in_use(where):
            self._pipeline.profiles.delete_member(profile.name, member)
        del self._members[profile.id][id_]

    def read_members(self, query: ActionProfileMember) -> Iterator[Entity]:
        """Yields one member, all members of a profile (member_id 0), or those of all profiles."""
        for profile in self._chosen(query.action_profile_id):
            for stored in _select(self._members[profile.id], query.member_id):
                yield Entity(action_profile_member=stored.message)

    # ---- groups

    def write_group(self, kind: int, message: ActionProfileGroup) -> None:
        """Inserts, modifies or deletes a group."""
        profile = self._profile(message.action_profile_id)
        groups = self._groups[profile.id]
        where = f"action profile {profile.name}, group_id {message.group_id}"
        if not profile.with_selector:
            raise invalid(f"{where}: the profile has no selector")
        _check_existence(where, message.group_id, kind, message.group_id in groups)
        if kind == Update.DELETE:
            with _in_use(where):
                self._pipeline.profiles.delete_group(profile.name, groups[message.group_id].group)
            del groups[message.group_id]
            return
        choices = self._group_choices(profile, where, message)
        if kind == Update.INSERT:
            group = self._pipeline.profiles.add_group(profile.name, self._active(choices))
            groups[message.group_id] = _Group(ActionProfileGroup(), group, choices)
        else:
            old = groups[message.group_id]
            if message.max_size and message.max_size != old.message.max_size:
                raise invalid(f"{where}: max_size cannot be changed")
            self._pipeline.profiles.set_group(profile.name, old.group, self._active(choices))
            old.choices = choices
        max_size = message.max_size or groups[message.group_id].message.max_size
        groups[message.group_id].message.CopyFrom(message)
        groups[message.group_id].message.max_size = max_size

    def _active(self, choices: Iterable[Choice]) -> list[Member]:
        """Returns the members that packets may choose: those that watch no port or whose port is
        up. Each member is listed as often as its weight says."""
        return [
            choice.member
            for choice in choices
            if choice.watched is None or self._links.up(choice.watched)
            for _ in range(choice.weight)
        ]

    def links_changed(self) -> None:
        """Adds members whose port came up to their groups, and removes those whose port went
        down."""
        for id_, groups in self._groups.items():
            for known in groups.values():
                self._update(self._profile(id_), known.group, known.choices)
        for made in self._sets.values():
            self._update(made.profile, made.group, made.choices)

    def _update(self, profile: Profile, group: Group, choices: Sequence[Choice]) -> None:
        if any(choice.watched is not None for choice in choices):
            self._pipeline.profiles.set_group(profile.name, group, self._active(choices))

    def _group_choices(
        self, profile: Profile, where: str, message: ActionProfileGroup
    ) -> list[Choice]:
        choices: list[Choice] = []
        seen = set()
        for item in message.members:
            stored = self._members[profile.id].get(item.member_id)
            if stored is None:
                raise StatusError(
                    Code.NOT_FOUND, f"{where}: there is no member with member_id {item.member_id}"
                )
            if item.member_id in seen:
                raise invalid(f"{where}: member_id {item.member_id} is given twice")
            seen.add(item.member_id)
            choices.append(self._choice(where, stored.member, item))
        _check_size(profile, where, sum(c.weight for c in choices), message.max_size)
        return choices

    def _choice(self, where: str, member: Member, item: Item) -> Choice:
        if not 1 <= item.weight <= MAX_WEIGHT:
            raise invalid(f"{where}: the weight is {item.weight}; 1 to {MAX_WEIGHT} are allowed")
        return Choice(member, item.weight, self._watched(where, item))

    def _watched(self, where: str, item: Item) -> int | None:
        """Returns the port on which a member depends, or None. The message has it in `watch_port`
        or in the older field `watch`."""
        if item.WhichOneof("watch_kind") == "watch_port" and item.watch_port:
            port = decode(item.watch_port, PORT_BITS, f"{where}, watch_port")
        elif item.watch:
            port = item.watch
        else:
            return None
        if port not in self._links:
            raise invalid(f"{where}: the switch has no port {port} to watch")
        return port

    def read_groups(self, query: ActionProfileGroup) -> Iterator[Entity]:
        """Yields one group, all groups of a profile (group_id 0), or those of all profiles."""
        for profile in self._chosen(query.action_profile_id):
            for stored in _select(self._groups[profile.id], query.group_id):
                yield Entity(action_profile_group=stored.message)

    def _chosen(self, id_: int) -> list[Profile]:
        return [self._profile(id_)] if id_ else list(self._index.profiles.values())

    # ---- table entries

    def target(self, table: Table, message: p4runtime_pb2.TableAction) -> Member | Group:
        """Returns the member or group to which an entry refers by its id."""
        assert table.profile is not None
        kind = message.WhichOneof("type")
        where = f"table {table.name}"
        if kind == "action_profile_member_id":
            member = self._members[table.profile].get(message.action_profile_member_id)
            if member is not None:
                return member.member
        elif kind == "action_profile_group_id":
            group = self._groups[table.profile].get(message.action_profile_group_id)
            if group is not None:
                return group.group
        else:
            raise invalid(
                f"{where}: {kind or 'nothing'} is given, but the table has an action profile"
            )
        raise StatusError(Code.NOT_FOUND, f"{where}: there is no {kind} {getattr(message, kind)}")

    def make_set(self, table: Table, message: p4runtime_pb2.ActionProfileActionSet) -> ActionSet:
        """Makes a group for the action set of one entry."""
        assert table.profile is not None
        profile = self._profile(table.profile)
        where = f"table {table.name}, action_profile_action_set"
        if not profile.with_selector:
            raise invalid(f"{where}: its action profile has no selector")
        nobody = Member(0)
        asked = [self._choice(where, nobody, item) for item in message.action_profile_actions]
        _check_size(profile, where, sum(choice.weight for choice in asked), 0)
        wanted = [self._decode(profile, a.action) for a in message.action_profile_actions]
        members = [self._pipeline.profiles.add_member(profile.name, *w) for w in wanted]
        choices = tuple(replace(c, member=m) for c, m in zip(asked, members, strict=True))
        group = self._pipeline.profiles.add_group(profile.name, self._active(choices))
        canonical = p4runtime_pb2.TableAction(action_profile_action_set=message)
        for item, (_, args) in zip(
            canonical.action_profile_action_set.action_profile_actions, wanted, strict=True
        ):
            action = self._index.actions[item.action.action_id]
            item.action.CopyFrom(encode_action(action, args).action)
        made = self._sets[profile.id, group] = ActionSet(profile, group, choices, canonical)
        return made

    def release(self, made: ActionSet) -> None:
        """Deletes the group and members that make_set made. No entry may refer to them any more."""
        del self._sets[made.profile.id, made.group]
        self._pipeline.profiles.delete_group(made.profile.name, made.group)
        for choice in made.choices:
            self._pipeline.profiles.delete_member(made.profile.name, choice.member)


class Members:
    """The entities of kind ActionProfileMember in `ActionProfiles`."""

    def __init__(self, profiles: ActionProfiles) -> None:
        self.write = profiles.write_member
        self.read = profiles.read_members


class Groups:
    """The entities of kind ActionProfileGroup in `ActionProfiles`."""

    def __init__(self, profiles: ActionProfiles) -> None:
        self.write = profiles.write_group
        self.read = profiles.read_groups


def _check_existence(where: str, id_: int, kind: int, exists: bool) -> None:
    if not id_:
        raise invalid(f"{where}: ids begin with 1")
    if kind == Update.INSERT and exists:
        raise StatusError(Code.ALREADY_EXISTS, f"{where}: it exists already")
    if kind != Update.INSERT and not exists:
        raise StatusError(Code.NOT_FOUND, f"{where}: it does not exist")


def _check_size(profile: Profile, where: str, weight: int, max_size: int) -> None:
    if max_size < 0 or (profile.max_group_size and max_size > profile.max_group_size):
        raise invalid(f"{where}: max_size is {max_size}; 0 to {profile.max_group_size} are allowed")
    room = max_size or profile.max_group_size
    if room and weight > room:
        raise StatusError(
            Code.RESOURCE_EXHAUSTED,
            f"{where}: the weights add up to {weight}; a group may have at most {room}",
        )


@contextlib.contextmanager
def _in_use(where: str) -> Iterator[None]:
    """Turns an error of a deletion into FAILED_PRECONDITION. The id is known to exist, so that the
    only possible cause is an object that still refers to it."""
    try:
        yield
    except PipelineError as error:
        raise StatusError(Code.FAILED_PRECONDITION, f"{where}: {error}") from error


def _select(stored: dict[int, Stored], wanted: int) -> list[Stored]:
    """Returns the object with the wanted number, if there is one, or all objects if `wanted` is
    0."""
    return [stored[key] for key in sorted(stored) if wanted in (0, key)]
