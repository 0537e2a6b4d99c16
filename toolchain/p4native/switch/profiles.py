"""The class Profiles, which manages the members and groups of action profiles of one running
program."""

from __future__ import annotations

import errno
from collections.abc import Sequence

from p4native.switch.encoding import encode_action
from p4native.switch.errors import PipelineError
from p4native.switch.library import U32, Instance, check
from p4native.switch.matches import Group, Member, target_number
from p4native.switch.model import Action, Profile


class Profiles:
    """The members and groups of one running program. `pipeline.profiles` is an instance.
    Tables.add_indirect makes entries that refer to them."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance

    def _profile(self, name: str) -> Profile:
        profile = self._instance.program.profiles.get(name)
        if profile is None:
            raise PipelineError(f"no action profile is called '{name}'")
        return profile

    def _member_action(self, profile: Profile, name: str) -> Action:
        action = profile.action(name)
        if action is None:
            allowed = ", ".join(a.name for a in profile.actions)
            raise PipelineError(
                f"action profile '{profile.name}' has no action '{name}' (it has: {allowed})"
            )
        return action

    def add_member(self, profile: str, action: str, args: Sequence[int] = ()) -> Member:
        """Adds a member, which is an action with its arguments."""
        found = self._profile(profile)
        chosen = self._member_action(found, action)
        data = encode_action(chosen, args)
        number = U32()
        result = self._instance.call("pl_member_add", found.index, chosen.index, data, number)
        check(result, f"action profile '{profile}'")
        return Member(number.value)

    def modify_member(
        self, profile: str, member: Member, action: str, args: Sequence[int] = ()
    ) -> None:
        """Changes the action that a member stands for. This affects all entries and groups that
        refer to the member."""
        found = self._profile(profile)
        chosen = self._member_action(found, action)
        data = encode_action(chosen, args)
        number = target_number(member)
        result = self._instance.call("pl_member_modify", found.index, number, chosen.index, data)
        check(result, f"action profile '{profile}', {member}")

    def delete_member(self, profile: str, member: Member) -> None:
        """Removes a member. No entry or group may refer to it."""
        found = self._profile(profile)
        result = self._instance.call("pl_member_delete", found.index, target_number(member))
        check(result, f"action profile '{profile}', {member}")

    def add_group(self, profile: str, members: Sequence[Member] = ()) -> Group:
        """Adds a group of n members. A packet chooses member number (hash % n), where members are
        in ascending order of their numbers. A member that is given k times is chosen k times as
        often."""
        found = self._profile(profile)
        number = U32()
        result = self._instance.call("pl_group_add", found.index, number)
        if result == -errno.EPERM:
            raise PipelineError(f"action profile '{profile}' has no selector")
        check(result, f"action profile '{profile}'")
        group = Group(number.value)
        try:
            self.set_group(profile, group, members)
        except PipelineError:
            self.delete_group(profile, group)
            raise
        return group

    def set_group(self, profile: str, group: Group, members: Sequence[Member]) -> None:
        """Replaces the members of a group. An entry whose group has no members does nothing."""
        found = self._profile(profile)
        numbers = (U32 * len(members))(*[target_number(m) for m in members])
        number = group.number
        result = self._instance.call("pl_group_set", found.index, number, numbers, len(members))
        check(result, f"action profile '{profile}', {group} or one of its members")

    def delete_group(self, profile: str, group: Group) -> None:
        """Removes a group. No entry may refer to it."""
        found = self._profile(profile)
        result = self._instance.call("pl_group_delete", found.index, group.number)
        check(result, f"action profile '{profile}', {group}")
