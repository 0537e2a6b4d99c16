"""Action profiles of an instance: members and groups."""

from __future__ import annotations

import errno
from collections.abc import Sequence

from agglab.switch.encoding import encode_action
from agglab.switch.errors import PipelineError
from agglab.switch.library import U32, Instance, check
from agglab.switch.matches import Group, Member, target_number
from agglab.switch.model import Action, Profile


class Profiles:
    """Members and groups; `pipeline.profiles`. Entries refer to them by Tables.add_indirect."""

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
        """Add a member, an action with its arguments."""
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
        """Change what a member does, also for the entries and groups that refer to it."""
        found = self._profile(profile)
        chosen = self._member_action(found, action)
        data = encode_action(chosen, args)
        number = target_number(member)
        result = self._instance.call("pl_member_modify", found.index, number, chosen.index, data)
        check(result, f"action profile '{profile}', {member}")

    def delete_member(self, profile: str, member: Member) -> None:
        """Remove a member; no entry or group may refer to it."""
        found = self._profile(profile)
        result = self._instance.call("pl_member_delete", found.index, target_number(member))
        check(result, f"action profile '{profile}', {member}")

    def add_group(self, profile: str, members: Sequence[Member] = ()) -> Group:
        """Add a group, of which packets choose the (hash % n)-th member by ascending number; one
        that is given k times is chosen k times as often."""
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
        """Set all members of a group; without any, its entries do nothing."""
        found = self._profile(profile)
        numbers = (U32 * len(members))(*[target_number(m) for m in members])
        number = group.number
        result = self._instance.call("pl_group_set", found.index, number, numbers, len(members))
        check(result, f"action profile '{profile}', {group} or one of its members")

    def delete_group(self, profile: str, group: Group) -> None:
        """Remove a group; no entry may refer to it."""
        found = self._profile(profile)
        result = self._instance.call("pl_group_delete", found.index, group.number)
        check(result, f"action profile '{profile}', {group}")
