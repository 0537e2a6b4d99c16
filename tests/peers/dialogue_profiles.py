"""Action profiles: members, groups, action sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from controller import Controller
from dialogue import Step, delete, exact, group, insert, modify, packet, tried
from p4.v1 import p4runtime_pb2 as pb


def member(c: Controller, number: int, profile: str = "choice", action: Any = None) -> Any:
    action = action or c.action("set", bytes([number]), bytes([number]))
    id_ = c.id("action_profiles", profile)
    return pb.Entity(
        action_profile_member={"action_profile_id": id_, "member_id": number, "action": action}
    )


def members(
    c: Controller,
    number: int,
    *weights: tuple[int, int],
    max_size: int = 0,
    profile: str = "choice",
) -> Any:
    message = pb.ActionProfileGroup(
        action_profile_id=c.id("action_profiles", profile), group_id=number, max_size=max_size
    )
    for id_, weight in weights:
        message.members.add(member_id=id_, weight=weight)
    return pb.Entity(action_profile_group=message)


@group
def profile_members(c: Controller) -> Iterator[Step]:
    everything = pb.Entity(action_profile_member={})
    yield "read before", c.read(everything)
    yield "read one before", c.read(member(c, 1))
    yield "insert", c.write(*(insert(member(c, n)) for n in (1, 2, 3)))
    yield "insert again", c.write(insert(member(c, 1)))
    yield "number 0", tried(c, member(c, 0))
    yield "modify unknown", c.write(modify(member(c, 8)))
    yield "delete unknown", c.write(delete(member(c, 8)))
    yield "an action of others", c.write(insert(member(c, 9, action=c.action("paint"))))
    yield "no action", c.write(insert(member(c, 9, action=pb.Action())))
    yield "a parameter missing", c.write(insert(member(c, 9, action=c.action("set", b"\1"))))
    unknown = pb.Entity(action_profile_member={"action_profile_id": 0x11000001, "member_id": 1})
    yield "unknown profile", c.write(insert(unknown))
    yield "read unknown profile", c.read(unknown)
    yield "read", c.read(everything)
    yield "read one", c.read(member(c, 2))
    one = c.entry("selected", exact(1, b"\1"), does={"action_profile_member_id": 2})
    yield "an entry", c.write(insert(one))
    yield "packet", c.packets(packet(4, 1), packet(4, 2))
    yield "modify", c.write(modify(member(c, 2, action=c.action("set", b"\x66", b"\6"))))
    yield "packet again", c.packets(packet(4, 1))
    yield "read changed", c.read(member(c, 2))
    yield "delete in use", c.write(delete(member(c, 2)))
    yield "delete unused", c.write(delete(member(c, 3)))
    wrong = c.entry("selected", exact(1, b"\2"), does={"action_profile_member_id": 77})
    yield "an entry of an unknown member", c.write(insert(wrong))
    direct = c.entry("selected", exact(1, b"\2"), does=c.action("keep"))
    yield "an entry with an action", c.write(insert(direct))
    yield "read entries", c.read(c.entry("selected"))
    yield "delete entry", c.write(delete(one))
    yield "delete member", c.write(delete(member(c, 2)))
    for n in range(1, 7):
        yield f"member {n} of 4", c.write(insert(member(c, n, "profile")))
    plain = c.entry("profiled", exact(1, b"\1"), does={"action_profile_member_id": 4})
    yield "profile without selector", c.write(insert(plain))
    yield "its packet", c.packets(packet(5, 1))
    yield "a group of it", tried(c, members(c, 1, (4, 1), profile="profile"))


@group
def profile_groups(c: Controller) -> Iterator[Step]:
    everything = pb.Entity(action_profile_group={})
    for n in (1, 2, 3, 4):
        c.write(insert(member(c, n)))
    yield "read one before", c.read(members(c, 1))
    yield "insert", c.write(insert(members(c, 1, (1, 1), (2, 1))))
    yield "insert again", c.write(insert(members(c, 1, (1, 1))))
    yield "modify unknown", c.write(modify(members(c, 8, (1, 1))))
    yield "delete unknown", c.write(delete(members(c, 8)))
    yield "number 0", tried(c, members(c, 0, (1, 1)))
    yield "unknown member", tried(c, members(c, 2, (77, 1)))
    yield "weight 0", tried(c, members(c, 3, (1, 0)))
    yield "negative weight", tried(c, members(c, 3, (1, -1)))
    yield "too heavy", tried(c, members(c, 4, (1, 3), (2, 2)))
    yield "max_size too large", tried(c, members(c, 5, (1, 1), max_size=5))
    yield "negative max_size", tried(c, members(c, 5, (1, 1), max_size=-1))
    yield "above max_size", tried(c, members(c, 6, (1, 1), (2, 1), max_size=1))
    yield "weights", c.write(insert(members(c, 7, (1, 1), (2, 3), max_size=4)))
    yield "other max_size", c.write(modify(members(c, 7, (1, 1), max_size=3)))
    yield "no max_size", c.write(modify(members(c, 7, (1, 1), (2, 3))))
    yield "read", c.read(everything)
    yield "empty", c.write(insert(members(c, 9)))
    yield "read one", c.read(members(c, 7))
    entry = c.entry("selected", exact(1, b"\1"), does={"action_profile_group_id": 1})
    yield "entry", c.write(insert(entry))
    yield "packets", sorted(c.packets(*(packet(4, 1, b) for b in range(2))))
    yield "delete in use", c.write(delete(members(c, 1)))
    yield "delete member in use", c.write(delete(member(c, 1)))
    yield "change", c.write(modify(members(c, 1, (3, 1))))
    yield "packets of one", c.packets(*(packet(4, 1, b) for b in range(3)))
    yield "modify member", c.write(modify(member(c, 3, action=c.action("set", b"\x70", b"\7"))))
    yield "packet of it", c.packets(packet(4, 1))
    wrong = c.entry("selected", exact(1, b"\2"), does={"action_profile_group_id": 55})
    yield "unknown group", c.write(insert(wrong))
    yield "read entries", c.read(c.entry("selected"))
    yield (
        "to a member",
        c.write(modify(c.entry("selected", exact(1, b"\1"), does={"action_profile_member_id": 4}))),
    )
    yield "packet of a member", c.packets(packet(4, 1))
    yield "delete group", c.write(delete(members(c, 1)))
    yield "read again", c.read(everything)


@group
def watch_ports(c: Controller) -> Iterator[Step]:
    for n in (1, 2):
        c.write(insert(member(c, n)))
    watched = members(c, 1, (1, 1), (2, 1))
    watched.action_profile_group.members[0].watch_port = bytes([255])
    yield "insert", c.write(insert(watched))
    yield "read", c.read(members(c, 1))
    older = members(c, 1, (1, 1), (2, 1))
    older.action_profile_group.members[1].watch = 255
    yield "older way", c.write(modify(older))
    yield "read older", c.read(members(c, 1))


@group
def action_sets(c: Controller) -> Iterator[Step]:
    def chosen(key: int, *actions: tuple[int, int]) -> Any:
        entity = c.entry("selected", exact(1, bytes([key])))
        actions_ = entity.table_entry.action.action_profile_action_set.action_profile_actions
        for number, weight in actions:
            item = actions_.add(weight=weight)
            item.action.CopyFrom(c.action("set", bytes([number]), b"\1"))
        return entity

    yield "insert", c.write(insert(chosen(1, (5, 1), (6, 2))))
    yield "read", c.read(c.entry("selected"))
    yield "packets", sorted(set(c.packets(*(packet(4, 1, b) for b in range(3)))))
    yield "no members of it", c.read(pb.Entity(action_profile_member={}))
    yield "no groups of it", c.read(pb.Entity(action_profile_group={}))
    yield "modify", c.write(modify(chosen(1, (7, 1))))
    yield "packet", c.packets(packet(4, 1))
    yield "read modified", c.read(c.entry("selected"))
    yield "weight 0", c.write(insert(chosen(2, (5, 0))))
    yield "too heavy", c.write(insert(chosen(2, (5, 3), (6, 2))))
    wrong = chosen(2, (5, 1))
    actions_ = wrong.table_entry.action.action_profile_action_set.action_profile_actions
    actions_[0].action.CopyFrom(c.action("paint"))
    yield "an action of others", c.write(insert(wrong))
    yield "insert again", c.write(insert(chosen(1, (5, 1))))
    yield "read as it was", c.read(c.entry("selected"))
    yield "delete", c.write(delete(chosen(1)))
    yield "miss", c.packets(packet(4, 1))
    yield "read none", c.read(c.entry("selected"))
