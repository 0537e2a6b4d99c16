"""Action profiles of an instance: members, groups, and the entries that refer to them."""

from __future__ import annotations

import errno
from collections.abc import Sequence

from agglab.switch.encoding import encode_action, encode_match
from agglab.switch.errors import PipelineError
from agglab.switch.library import U32, U64, check
from agglab.switch.matches import Group, Match, Member
from agglab.switch.model import Action, Profile
from agglab.switch.tables import Entry, Tables

GROUP_BIT = 1 << 31
"""PL_GROUP of pipeline.h."""


def target_number(target: Member | Group) -> int:
    """What pipeline.h calls target."""
    if not 0 <= target.number < GROUP_BIT:
        raise PipelineError(f"{target} does not exist")
    return target.number | (GROUP_BIT if isinstance(target, Group) else 0)


class Profiles(Tables):
    """What `Pipeline` does with action profiles."""

    def _profile(self, name: str) -> Profile:
        profile = self.program.profiles.get(name)
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

    def profile_add_member(self, profile: str, action: str, args: Sequence[int] = ()) -> Member:
        """Add a member, an action with its arguments."""
        found = self._profile(profile)
        chosen = self._member_action(found, action)
        data = encode_action(chosen, args)
        number = U32()
        result = self.library.pl_member_add(self.handle, found.index, chosen.index, data, number)
        check(result, f"action profile '{profile}'")
        return Member(number.value)

    def profile_modify_member(
        self, profile: str, member: Member, action: str, args: Sequence[int] = ()
    ) -> None:
        """Change what a member does, also for the entries and groups that refer to it."""
        found = self._profile(profile)
        chosen = self._member_action(found, action)
        data = encode_action(chosen, args)
        number = target_number(member)
        result = self.library.pl_member_modify(self.handle, found.index, number, chosen.index, data)
        check(result, f"action profile '{profile}', {member}")

    def profile_delete_member(self, profile: str, member: Member) -> None:
        """Remove a member; no entry or group may refer to it."""
        found = self._profile(profile)
        result = self.library.pl_member_delete(self.handle, found.index, target_number(member))
        check(result, f"action profile '{profile}', {member}")

    def profile_add_group(self, profile: str, members: Sequence[Member] = ()) -> Group:
        """Add a group, of which packets choose the (hash % n)-th member by ascending number; one
        that is given k times is chosen k times as often."""
        found = self._profile(profile)
        number = U32()
        result = self.library.pl_group_add(self.handle, found.index, number)
        if result == -errno.EPERM:
            raise PipelineError(f"action profile '{profile}' has no selector")
        check(result, f"action profile '{profile}'")
        group = Group(number.value)
        try:
            self.profile_set_group(profile, group, members)
        except PipelineError:
            self.profile_delete_group(profile, group)
            raise
        return group

    def profile_set_group(self, profile: str, group: Group, members: Sequence[Member]) -> None:
        """Set all members of a group; without any, its entries do nothing."""
        found = self._profile(profile)
        numbers = (U32 * len(members))(*[target_number(m) for m in members])
        number = group.number
        result = self.library.pl_group_set(self.handle, found.index, number, numbers, len(members))
        check(result, f"action profile '{profile}', {group} or one of its members")

    def profile_delete_group(self, profile: str, group: Group) -> None:
        """Remove a group; no entry may refer to it."""
        found = self._profile(profile)
        result = self.library.pl_group_delete(self.handle, found.index, group.number)
        check(result, f"action profile '{profile}', {group}")

    def table_add_indirect(
        self, table: str, match: Sequence[Match], target: Member | Group, priority: int = 0
    ) -> int:
        """Add an entry to a table with an action profile and return its handle."""
        found = self._table(table)
        key, mask = encode_match(found, match)
        number = target_number(target)
        handle = U64()
        result = self.library.pl_table_add_indirect(
            self.handle, found.index, key, mask, priority, number, handle
        )
        check(result, f"table '{table}', {target}")
        entry = Entry(handle.value, tuple(match), "", (), priority, const=False, target=target)
        self._entries[table][handle.value] = entry
        return handle.value

    def table_modify_indirect(self, table: str, handle: int, target: Member | Group) -> None:
        """Make an entry refer to another member or group."""
        found = self._table(table)
        number = target_number(target)
        result = self.library.pl_table_modify_indirect(self.handle, found.index, handle, number)
        check(result, f"table '{table}', {target}")
        old = self._entries[table][handle]
        self._entries[table][handle] = Entry(
            handle, old.match, "", (), old.priority, const=False, target=target
        )

    def table_set_default_indirect(self, table: str, target: Member | Group) -> None:
        """Set the member or group that a miss takes."""
        found = self._table(table)
        number = target_number(target)
        result = self.library.pl_table_set_default_indirect(self.handle, found.index, number)
        check(result, f"table '{table}', {target}")
