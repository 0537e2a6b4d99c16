"""Action profiles, meters, digests, value sets and idle timeouts over gRPC."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from waiting import until

import p4native.switch.p4runtime  # before protobuf is first imported

# isort: split
import grpc
from p4.v1 import p4runtime_pb2
from p4.v1.p4runtime_pb2 import (
    ActionProfileGroup,
    ActionProfileMember,
    DigestEntry,
    DirectMeterEntry,
    Entity,
    MeterConfig,
    MeterEntry,
    StreamMessageRequest,
    TableEntry,
    ValueSetEntry,
)

from p4native.compiler.command import main as compile_p4
from p4native.switch.p4runtime.text import read_p4info

assert p4native.switch.p4runtime

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("state")
    json, p4info = folder / "state.json", folder / "state.txtpb"
    arguments = [str(HERE / "state.p4"), "-o", str(json), "--p4runtime-files", str(p4info)]
    assert compile_p4(arguments) == 0
    return p4runtime_pb2.ForwardingPipelineConfig(
        p4info=read_p4info(p4info.read_bytes()), p4_device_config=json.read_bytes()
    )


@pytest.fixture
def id_of(config: Any) -> Any:
    def find(kind: str, name: str) -> int:
        things = getattr(config.p4info, kind)
        return next(t.preamble.id for t in things if t.preamble.name == name)

    return find


@pytest.fixture
def client(switch_server: Any, config: Any) -> Any:
    client = switch_server.client()
    assert client.arbitrate(1).status.code == 0
    client.configure("VERIFY_AND_COMMIT", config)
    return client


def action(id_of: Any, name: str, *args: bytes) -> p4runtime_pb2.Action:
    message = p4runtime_pb2.Action(action_id=id_of("actions", name))
    for number, value in enumerate(args, 1):
        message.params.add(param_id=number, value=value)
    return message


def member(id_of: Any, number: int, profile: str = "I.chooser", port: int = 0) -> Entity:
    message = ActionProfileMember(
        action_profile_id=id_of("action_profiles", profile), member_id=number
    )
    message.action.CopyFrom(action(id_of, "I.set", bytes([number]), bytes([0, port or number])))
    return Entity(action_profile_member=message)


def group(id_of: Any, number: int, weights: dict[int, int], max_size: int = 0) -> Entity:
    message = ActionProfileGroup(
        action_profile_id=id_of("action_profiles", "I.chooser"), group_id=number, max_size=max_size
    )
    for id_, weight in weights.items():
        message.members.add(member_id=id_, weight=weight)
    return Entity(action_profile_group=message)


def entry(id_of: Any, table: str, a: int) -> Entity:
    entity = Entity()
    entity.table_entry.table_id = id_of("tables", table)
    entity.table_entry.match.add(field_id=1).exact.value = bytes([a])
    return entity


def to_member(id_of: Any, table: str, a: int, number: int) -> Entity:
    entity = entry(id_of, table, a)
    entity.table_entry.action.action_profile_member_id = number
    return entity


def to_group(id_of: Any, a: int, number: int) -> Entity:
    entity = entry(id_of, "I.balanced", a)
    entity.table_entry.action.action_profile_group_id = number
    return entity


def ports(server: Any, a: int, values: range) -> list[int]:
    """Where packets with the key a and b of values go; the selector's hash is b itself."""
    return [server.pipeline.process(0, bytes([a, b, 0, 0]))[0][0] for b in values]


def test_groups_share_packets_by_weight(client: Any, switch_server: Any, id_of: Any) -> None:
    client.write(*(("INSERT", member(id_of, n)) for n in (4, 9)))
    client.write(("INSERT", group(id_of, 1, {9: 1, 4: 2})))
    client.write(("INSERT", to_group(id_of, 5, 1)))
    client.write(("INSERT", to_member(id_of, "I.balanced", 6, 9)))
    assert ports(switch_server, 5, range(6)) == [4, 4, 9, 4, 4, 9]
    assert ports(switch_server, 6, range(3)) == [9, 9, 9]
    client.write(("MODIFY", group(id_of, 1, {9: 1})), ("MODIFY", member(id_of, 9, port=17)))
    assert ports(switch_server, 5, range(3)) == [17] * 3
    found = client.read(Entity(action_profile_group=ActionProfileGroup()))
    assert found == [group(id_of, 1, {9: 1})]
    query = Entity(action_profile_member=ActionProfileMember())
    read = [e.action_profile_member.member_id for e in client.read(query)]
    assert read == [4, 9]
    assert client.read(to_group(id_of, 5, 0))[0].table_entry.action.action_profile_group_id == 1


def test_an_action_set_belongs_to_its_entry(client: Any, switch_server: Any, id_of: Any) -> None:
    entity = entry(id_of, "I.balanced", 5)
    actions = entity.table_entry.action.action_profile_action_set.action_profile_actions
    for port, weight in ((7, 1), (8, 2)):
        item = actions.add(weight=weight)
        item.action.CopyFrom(action(id_of, "I.set", b"\x01", bytes([port])))
    client.write(("INSERT", entity))
    assert ports(switch_server, 5, range(6)) == [7, 8, 8, 7, 8, 8]
    assert client.read(entry(id_of, "I.balanced", 5)) == [entity]
    actions[1].weight = 1
    padded = Entity()
    padded.CopyFrom(entity)
    set_ = padded.table_entry.action.action_profile_action_set
    set_.action_profile_actions[0].action.params[1].value = b"\0\x07"
    client.write(("MODIFY", padded))
    assert client.read(entry(id_of, "I.balanced", 5)) == [entity]
    assert ports(switch_server, 5, range(4)) == [7, 8, 7, 8]
    assert client.read(Entity(action_profile_member=ActionProfileMember())) == []
    client.write(("DELETE", entity))
    # Everything was given back: numbers start again.
    assert switch_server.pipeline.profiles.add_group("I.chooser").number == 0
    assert switch_server.pipeline.profiles.add_member("I.chooser", "I.mark").number == 0


def test_what_profiles_refuse(client: Any, id_of: Any) -> None:
    client.write(*(("INSERT", member(id_of, n)) for n in (1, 2)))
    client.write(("INSERT", group(id_of, 1, {1: 1})), ("INSERT", to_group(id_of, 5, 1)))
    plain = entry(id_of, "I.balanced", 7)
    plain.table_entry.action.action.CopyFrom(action(id_of, "I.mark"))
    foreign = member(id_of, 5)
    foreign.action_profile_member.action.CopyFrom(action(id_of, "I.paint"))
    no_selector = group(id_of, 1, {})
    profile = id_of("action_profiles", "I.profile")
    no_selector.action_profile_group.action_profile_id = profile
    twice = group(id_of, 2, {1: 1})
    twice.action_profile_group.members.add(member_id=1, weight=1)
    set_without_selector = entry(id_of, "I.shared", 9)
    of_shared = set_without_selector.table_entry.action.action_profile_action_set
    of_shared.action_profile_actions.add(weight=1).action.CopyFrom(action(id_of, "I.mark"))
    cases = [
        ("INSERT", member(id_of, 1), "ALREADY_EXISTS", "exists already"),
        ("MODIFY", member(id_of, 3), "NOT_FOUND", "does not exist"),
        ("DELETE", member(id_of, 1), "FAILED_PRECONDITION", "group_id 1 uses it"),
        ("DELETE", group(id_of, 1, {}), "FAILED_PRECONDITION", "in use"),
        ("INSERT", group(id_of, 2, {7: 1}), "NOT_FOUND", "no member with member_id 7"),
        ("INSERT", group(id_of, 2, {1: 0}), "INVALID_ARGUMENT", "the weight is 0"),
        ("INSERT", group(id_of, 2, {1: 2, 2: 2}), "RESOURCE_EXHAUSTED", "add up to 4"),
        ("INSERT", group(id_of, 2, {1: 1}, max_size=4), "INVALID_ARGUMENT", "max_size is 4"),
        ("INSERT", no_selector, "INVALID_ARGUMENT", "no selector"),
        ("INSERT", foreign, "INVALID_ARGUMENT", "not an action of"),
        ("INSERT", plain, "INVALID_ARGUMENT", "has an action profile"),
        ("INSERT", to_group(id_of, 8, 3), "NOT_FOUND", "action_profile_group_id 3"),
        ("INSERT", to_member(id_of, "I.shared", 8, 1), "NOT_FOUND", "action_profile_member_id 1"),
        ("INSERT", member(id_of, 0), "INVALID_ARGUMENT", "ids begin with 1"),
        ("INSERT", group(id_of, 0, {1: 1}), "INVALID_ARGUMENT", "ids begin with 1"),
        ("INSERT", twice, "INVALID_ARGUMENT", "member_id 1 is given twice"),
        (
            "MODIFY",
            group(id_of, 1, {1: 1}, max_size=2),
            "INVALID_ARGUMENT",
            "max_size cannot be changed",
        ),
        ("INSERT", set_without_selector, "INVALID_ARGUMENT", "no selector"),
    ]
    refused = client.refused(*((kind, entity) for kind, entity, *_ in cases))
    assert [code for code, _ in refused] == [code for *_, code, _ in cases]
    for (_, message), (*_, words) in zip(refused, cases, strict=True):
        assert words in message


def test_what_nothing_uses_any_more_can_be_deleted(
    client: Any, switch_server: Any, id_of: Any
) -> None:
    objects = [member(id_of, 1), member(id_of, 2), group(id_of, 1, {1: 1, 2: 1})]
    for other in (to_group(id_of, 5, 1), to_member(id_of, "I.balanced", 6, 2)):
        client.write(*(("INSERT", each) for each in (*objects, other)))
        ((code, _),) = client.refused(("DELETE", objects[1]))
        assert code == "FAILED_PRECONDITION"
        client.write(*(("DELETE", each) for each in (other, *reversed(objects))))
        assert client.read(Entity(action_profile_member=ActionProfileMember())) == []
        assert client.read(Entity(action_profile_group=ActionProfileGroup())) == []
    assert switch_server.pipeline.profiles.add_group("I.chooser").number == 0
    assert switch_server.pipeline.profiles.add_member("I.chooser", "I.mark").number == 0


def colours(server: Any, a: int, b: int, count: int) -> list[tuple[int, int]]:
    """(indirect, direct) colours of equal packets, all at time 0."""
    frames = [server.pipeline.process(0, bytes([a, b, 0, 1]))[0][1] for _ in range(count)]
    return [(frame[0], frame[1]) for frame in frames]


def test_meters(client: Any, switch_server: Any, id_of: Any) -> None:
    meter = id_of("meters", "I.cells")
    rates = MeterConfig(cir=1234567, cburst=1, pir=7654321, pburst=2)
    message = MeterEntry(meter_id=meter, config=rates)
    message.index.index = 3
    client.write(("MODIFY", Entity(meter_entry=message)))
    assert [c for c, _ in colours(switch_server, 0, 3, 3)] == [0, 1, 2]
    assert [c for c, _ in colours(switch_server, 0, 2, 3)] == [0, 0, 0]
    read = client.read(Entity(meter_entry=MeterEntry(meter_id=meter)))
    assert [e.meter_entry.index.index for e in read] == [0, 1, 2, 3]
    assert [e.meter_entry.HasField("config") for e in read] == [False, False, False, True]
    assert read[3].meter_entry.config == rates
    message.ClearField("config")
    client.write(("MODIFY", Entity(meter_entry=message)))
    assert [c for c, _ in colours(switch_server, 0, 3, 3)] == [0, 0, 0]
    message.config.CopyFrom(MeterConfig(cir=2, pir=1))
    assert client.refused(("MODIFY", Entity(meter_entry=message)))[0][0] == "INVALID_ARGUMENT"


def test_direct_meters(client: Any, switch_server: Any, id_of: Any) -> None:
    entity = entry(id_of, "I.metered", 5)
    entity.table_entry.action.action.CopyFrom(action(id_of, "I.paint"))
    entity.table_entry.meter_config.CopyFrom(MeterConfig(cburst=1, pburst=2))
    client.write(("INSERT", entity))
    assert [c for _, c in colours(switch_server, 5, 0, 3)] == [0, 1, 2]
    query = entry(id_of, "I.metered", 5)
    query.table_entry.meter_config.SetInParent()
    assert client.read(query)[0].table_entry.meter_config == MeterConfig(cburst=1, pburst=2)
    direct = DirectMeterEntry(table_entry=entry(id_of, "I.metered", 5).table_entry)
    assert client.read(Entity(direct_meter_entry=direct))[0].direct_meter_entry.config.pburst == 2
    client.write(("MODIFY", Entity(direct_meter_entry=direct)))
    assert [c for _, c in colours(switch_server, 5, 0, 3)] == [0, 0, 0]


def test_value_sets(client: Any, switch_server: Any, id_of: Any) -> None:
    message = ValueSetEntry(value_set_id=id_of("value_sets", "P.known"))
    for pair in ((1, 2), (3, 4)):
        added = message.members.add()
        for number, value in enumerate(pair, 1):
            added.match.add(field_id=number).exact.value = bytes([value])
    client.write(("MODIFY", Entity(value_set_entry=message)))
    assert [ports(switch_server, a, range(4, 5))[0] for a in (1, 3)] == [0, 99]
    assert ports(switch_server, 1, range(4)) == [0, 0, 99, 0]
    assert client.read(Entity(value_set_entry=ValueSetEntry())) == [Entity(value_set_entry=message)]
    message.members.append(message.members[0])
    refused = client.refused(("MODIFY", Entity(value_set_entry=message)))
    assert refused[0][0] == "RESOURCE_EXHAUSTED"
    refused = client.refused(("INSERT", Entity(value_set_entry=message)))
    assert refused[0][0] == "INVALID_ARGUMENT"


def digest(id_of: Any, **config: int) -> Entity:
    message = DigestEntry(
        digest_id=id_of("digests", "learn_t"), config=DigestEntry.Config(**config)
    )
    return Entity(digest_entry=message)


def learn(server: Any, *values: int) -> None:
    for value in values:
        server.pipeline.process(0, bytes([value, 0, 0xFF, 0x80]))


def samples(message: Any) -> list[tuple[bytes, bytes, bool]]:
    found = []
    for data in message.digest.data:
        a, inner = data.struct.members
        c, odd = inner.struct.members
        found.append((a.bitstring, c.bitstring, odd.bool))
    return found


def test_digests_come_as_lists(client: Any, switch_server: Any, id_of: Any) -> None:
    client.write(("INSERT", digest(id_of, max_timeout_ns=10**12, max_list_size=3)))
    learn(switch_server, 1, 2, 2, 4)
    message = next(client.stream)
    # c is int<16>, -128: the shortest form has one byte.
    assert samples(message) == [(bytes([n]), b"\x80", False) for n in (1, 2, 2)]
    learn(switch_server, 5, 6)
    following = next(client.stream)
    assert samples(following) == [(bytes([n]), b"\x80", False) for n in (4, 5, 6)]
    assert following.digest.list_id == message.digest.list_id + 1
    assert client.read(digest(id_of)) == [digest(id_of, max_timeout_ns=10**12, max_list_size=3)]


def test_a_digest_is_not_sent_again_until_it_is_acknowledged(
    client: Any, switch_server: Any, id_of: Any
) -> None:
    client.write(("INSERT", digest(id_of, max_list_size=1, ack_timeout_ns=10**12)))
    learn(switch_server, 1, 1, 2)
    lists = [next(client.stream) for _ in range(2)]
    assert [samples(m)[0][0] for m in lists] == [b"\x01", b"\x02"]
    request = StreamMessageRequest()
    request.digest_ack.digest_id = id_of("digests", "learn_t")
    request.digest_ack.list_id = lists[0].digest.list_id
    client.requests.put(request)
    stream = next(iter(switch_server.device.current.digests._streams.values()))
    until(lambda: len(stream.unacknowledged) == 1, "the first list is acknowledged")
    learn(switch_server, 2, 1)
    assert samples(next(client.stream))[0][0] == b"\x01"


def test_digests_that_nobody_asked_for_or_wants_no_more_are_not_sent(
    client: Any, switch_server: Any, id_of: Any
) -> None:
    assert client.refused(("DELETE", digest(id_of)))[0][0] == "NOT_FOUND"
    learn(switch_server, 1)
    assert switch_server.device.notices() == []
    client.write(("INSERT", digest(id_of, max_list_size=1)))
    client.write(("DELETE", digest(id_of)))
    learn(switch_server, 2)
    assert switch_server.device.notices() == []


def test_an_entry_that_nothing_matches_is_told(client: Any, switch_server: Any, id_of: Any) -> None:
    entity = entry(id_of, "I.metered", 5)
    entity.table_entry.action.action.CopyFrom(action(id_of, "I.paint"))
    entity.table_entry.idle_timeout_ns = 30_000_000
    client.write(("INSERT", entity))
    client.write(("INSERT", entity_without_timeout(id_of)))
    message = next(client.stream)
    entity.table_entry.ClearField("action")
    assert list(message.idle_timeout_notification.table_entry) == [entity.table_entry]
    assert message.idle_timeout_notification.timestamp > 0
    assert next(client.stream).HasField("idle_timeout_notification"), "it is told again"
    query = entry(id_of, "I.metered", 5)
    query.table_entry.time_since_last_hit.SetInParent()
    before = client.read(query)[0].table_entry.time_since_last_hit.elapsed_ns
    assert before >= 60_000_000
    switch_server.pipeline.process(0, bytes([5, 0, 0, 0]))
    assert client.read(query)[0].table_entry.time_since_last_hit.elapsed_ns < before


def entity_without_timeout(id_of: Any) -> Entity:
    entity = entry(id_of, "I.metered", 6)
    entity.table_entry.action.action.CopyFrom(action(id_of, "I.paint"))
    return entity


def test_only_tables_that_say_so_have_timeouts(client: Any, id_of: Any) -> None:
    client.write(("INSERT", member(id_of, 1)))
    entity = to_member(id_of, "I.balanced", 5, 1)
    entity.table_entry.idle_timeout_ns = 1
    code, message = client.refused(("INSERT", entity))[0]
    assert code == "INVALID_ARGUMENT" and "do not time out" in message


def test_everything_is_carried_over_to_the_next_program(
    client: Any, switch_server: Any, config: Any, id_of: Any
) -> None:
    direct = entry(id_of, "I.metered", 5)
    direct.table_entry.action.action.CopyFrom(action(id_of, "I.paint"))
    direct.table_entry.meter_config.CopyFrom(MeterConfig(cburst=1, pburst=2))
    meter = MeterEntry(meter_id=id_of("meters", "I.cells"))
    meter.index.index = 1
    meter.config.CopyFrom(MeterConfig(cburst=2, pburst=2))
    client.write(*(("INSERT", member(id_of, n)) for n in (4, 9)))
    client.write(("INSERT", group(id_of, 1, {9: 1, 4: 1})), ("INSERT", to_group(id_of, 6, 1)))
    client.write(("INSERT", direct), ("MODIFY", Entity(meter_entry=meter)))
    client.write(("INSERT", digest(id_of, max_list_size=1)))
    client.configure("RECONCILE_AND_COMMIT", config)
    assert colours(switch_server, 5, 1, 3) == [(0, 0), (0, 1), (2, 2)]
    assert ports(switch_server, 6, range(4)) == [4, 9, 4, 9]
    learn(switch_server, 1)
    assert next(client.stream).HasField("digest")


def test_default_entries_of_tables_with_profiles_are_refused(client: Any, id_of: Any) -> None:
    message = TableEntry(table_id=id_of("tables", "I.shared"), is_default_action=True)
    message.action.action.CopyFrom(action(id_of, "I.mark"))
    assert client.refused(("MODIFY", Entity(table_entry=message)))[0][0] == "INVALID_ARGUMENT"


def watching(entity: Entity, ports: dict[int, int]) -> Entity:
    """The group with watch ports: member_id -> port."""
    for item in entity.action_profile_group.members:
        if item.member_id in ports:
            item.watch_port = bytes([ports[item.member_id]])
    return entity


def test_members_whose_port_is_down_are_not_chosen(
    client: Any, switch_server: Any, id_of: Any
) -> None:
    links = switch_server.links
    links.pull(8)
    client.write(*(("INSERT", member(id_of, n)) for n in (4, 9, 12)))
    written = watching(group(id_of, 1, {4: 1, 9: 1, 12: 1}), {4: 7, 9: 8})
    client.write(("INSERT", written), ("INSERT", to_group(id_of, 5, 1)))
    assert ports(switch_server, 5, range(4)) == [4, 12, 4, 12]
    links.pull(7)
    assert ports(switch_server, 5, range(4)) == [9, 12, 9, 12]
    refused = client.refused(("DELETE", member(id_of, 4)))
    assert refused[0][0] == "FAILED_PRECONDITION"
    assert client.read(group(id_of, 1, {})) == [written]
    links.pull()
    assert ports(switch_server, 5, range(6)) == [4, 9, 12, 4, 9, 12]
    links.pull(7, 8)
    alone = watching(group(id_of, 1, {4: 1, 9: 1}), {4: 7, 9: 8})
    client.write(("MODIFY", alone))
    assert ports(switch_server, 5, range(2)) == [0, 0]
    links.pull(8)
    assert ports(switch_server, 5, range(3)) == [4, 4, 4], "12 has left the group"
    client.write(("DELETE", member(id_of, 12)))
    client.write(("MODIFY", group(id_of, 1, {4: 1})))
    assert ports(switch_server, 5, range(2)) == [4, 4]
    client.write(("MODIFY", watching(group(id_of, 1, {4: 1}), {})))
    elsewhere = watching(group(id_of, 1, {4: 1}), {4: 77})
    assert "77" in client.refused(("MODIFY", elsewhere))[0][1]


def test_an_action_set_watches_ports_too(client: Any, switch_server: Any, id_of: Any) -> None:
    entity = entry(id_of, "I.balanced", 5)
    actions = entity.table_entry.action.action_profile_action_set.action_profile_actions
    for port in (7, 8):
        item = actions.add(weight=1, watch_port=bytes([port]))
        item.action.CopyFrom(action(id_of, "I.set", b"\x01", bytes([port])))
    client.write(("INSERT", entity))
    switch_server.links.pull(7)
    assert ports(switch_server, 5, range(2)) == [8, 8]
    assert client.read(entry(id_of, "I.balanced", 5)) == [entity]
    client.write(("DELETE", entity))
    switch_server.links.pull()
    assert switch_server.pipeline.profiles.add_group("I.chooser").number == 0


def test_the_default_entry_has_a_meter(client: Any, switch_server: Any, id_of: Any) -> None:
    rates = MeterConfig(cburst=1, pburst=2)
    default = TableEntry(table_id=id_of("tables", "I.metered"), is_default_action=True)
    direct = Entity(direct_meter_entry=DirectMeterEntry(table_entry=default, config=rates))
    paint = TableEntry(table_id=id_of("tables", "I.metered"), is_default_action=True)
    paint.action.action.CopyFrom(action(id_of, "I.paint"))
    client.write(("MODIFY", Entity(table_entry=paint)), ("MODIFY", direct))
    assert [c for _, c in colours(switch_server, 5, 0, 4)] == [0, 1, 2, 2]
    assert client.read(direct)[0].direct_meter_entry.config == rates
    asked = Entity(table_entry=default)
    asked.table_entry.meter_config.SetInParent()
    assert client.read(asked)[0].table_entry.meter_config == rates
    client.write(("MODIFY", Entity(table_entry=paint)))
    assert not client.read(asked)[0].table_entry.HasField("meter_config")
    asked.table_entry.time_since_last_hit.SetInParent()
    with pytest.raises(grpc.RpcError) as caught:
        client.read(asked)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_a_meter_that_a_change_does_not_name_is_none_any_more(client: Any, id_of: Any) -> None:
    entity = entry(id_of, "I.metered", 5)
    entity.table_entry.action.action.CopyFrom(action(id_of, "I.paint"))
    entity.table_entry.meter_config.CopyFrom(MeterConfig(cburst=1, pburst=2))
    client.write(("INSERT", entity))
    entity.table_entry.ClearField("meter_config")
    client.write(("MODIFY", entity))
    query = Entity(direct_meter_entry=DirectMeterEntry(table_entry=entity.table_entry))
    query.direct_meter_entry.table_entry.ClearField("action")
    assert not client.read(query)[0].direct_meter_entry.HasField("config")
    for wrong in (MeterConfig(eburst=1), MeterConfig(pir=10**13)):
        entity.table_entry.meter_config.CopyFrom(wrong)
        assert client.refused(("MODIFY", entity))[0][0] == "INVALID_ARGUMENT"


def test_a_p4info_of_another_program_is_refused(client: Any, config: Any) -> None:
    other = type(config)()
    other.CopyFrom(config)
    other.p4info.meters[0].preamble.name = "I.other"
    with pytest.raises(grpc.RpcError) as caught:
        client.configure("VERIFY", other)
    assert "meter I.other is not in the device configuration" in caught.value.details()
