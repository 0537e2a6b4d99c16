"""Digests, idle timeouts, packets, reads, atomicity, configurations, several controllers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from controller import DEVICE_ID, Controller
from dialogue import Step, delete, exact, group, insert, lpm, modify, packet
from dialogue_state import multicast
from p4.v1 import p4runtime_pb2 as pb


@group
def digests(c: Controller) -> Iterator[Step]:
    def digest(**config: int) -> Any:
        entity = pb.Entity(digest_entry={"digest_id": c.id("digests", "learn_t")})
        if config:
            entity.digest_entry.config.CopyFrom(pb.DigestEntry.Config(**config))
        return entity

    def heard() -> Any:
        message = c.next("digest")
        data = [[m.bitstring for m in item.struct.members] for item in message.digest.data]
        return message.digest.digest_id, data

    everything = pb.Entity(digest_entry={})
    yield "read before", c.read(everything)
    yield "modify before", c.write(modify(digest(max_list_size=1)))
    yield "delete before", c.write(delete(digest()))
    yield "insert", c.write(insert(digest(max_list_size=2, max_timeout_ns=2 * 10**9)))
    yield "insert again", c.write(insert(digest(max_list_size=2)))
    yield "read", c.read(digest())
    yield "read all", c.read(everything)
    c.packets(packet(10, 1, 2), packet(10, 3, 0x405))
    yield "list of two", heard()
    yield "modify", c.write(modify(digest(max_list_size=10, max_timeout_ns=10**8)))
    c.packets(packet(10, 0, 0))
    yield "list of a timeout", heard()
    yield "unknown", c.write(insert(pb.Entity(digest_entry={"digest_id": 0x17000001})))
    yield "read unknown", c.read(pb.Entity(digest_entry={"digest_id": 0x17000001}))
    yield "delete", c.write(delete(digest()))
    c.packets(packet(10, 5, 5))
    yield "nothing more", c.next("digest", within_s=0.5)


@group
def idle_timeouts(c: Controller) -> Iterator[Step]:
    def row(a: int, timeout_ms: int) -> Any:
        return c.entry(
            "idle", exact(1, bytes([a])), does=c.action("keep"), idle_timeout_ns=timeout_ms * 10**6
        )

    yield "insert", c.write(insert(row(1, 600)), insert(row(2, 0)), insert(row(3, 3_600_000)))
    yield "negative", c.write(insert(row(4, -1)))
    yield "read", c.read(c.entry("idle"))
    told = c.next("idle_timeout_notification", within_s=10)
    yield "told", [e.match[0].exact.value for e in told.idle_timeout_notification.table_entry]
    yield "what is told", str(told.idle_timeout_notification.table_entry[0])
    asked = c.entry("idle", exact(1, b"\3"))
    asked.table_entry.time_since_last_hit.SetInParent()
    yield "ask", c.read(asked)
    other = c.entry("exact_table")
    other.table_entry.time_since_last_hit.SetInParent()
    yield "ask another table", c.read(other)
    default = c.entry("idle", is_default_action=True)
    default.table_entry.time_since_last_hit.SetInParent()
    yield "ask the default", c.read(default)
    yield "delete", c.write(delete(row(1, 0)))


@group
def packets(c: Controller) -> Iterator[Step]:
    yield "echo", c.packets(packet(0, 1, 2, 3, 4, 5))
    yield "dropped", c.packets(packet(18))

    def sent(payload: bytes, *metadata: tuple[int, bytes]) -> Any:
        request = pb.StreamMessageRequest()
        request.packet.payload = payload
        for id_, value in metadata:
            request.packet.metadata.add(metadata_id=id_, value=value)
        c.requests.put(request)
        message = c.next(within_s=2)
        if message is None:
            return None
        kind = message.WhichOneof("update")
        if kind == "error":
            return kind, message.error.canonical_code, message.error.WhichOneof("details")
        values = [(m.metadata_id, m.value) for m in message.packet.metadata]
        return kind, message.packet.payload, values

    payload = packet(0, 7)
    yield "both fields", sent(payload, (1, b"\1\x23"), (2, b"\x05"))
    yield "other order", sent(payload, (2, b"\0"), (1, b"\1"))
    yield "one missing", sent(payload, (1, b"\1"))
    yield "one too wide", sent(payload, (1, b"\x02\0"), (2, b"\0"))
    yield "unknown field", sent(payload, (1, b"\1"), (2, b"\0"), (9, b"\0"))
    yield "none", sent(payload)
    yield "empty payload", sent(b"", (1, b"\1"), (2, b"\0"))
    request = pb.StreamMessageRequest()
    request.digest_ack.digest_id = 0x17000001
    c.requests.put(request)
    yield "unknown digest_ack", c.next("error", within_s=0.5) is not None
    c.requests.put(pb.StreamMessageRequest())
    message = c.next(within_s=2)
    yield "empty message", message and not isinstance(message, str) and message.WhichOneof("update")


@group
def reads(c: Controller) -> Iterator[Step]:
    keep = c.action("keep")
    c.write(insert(c.entry("exact_table", exact(1, b"\1"), exact(2, b"\1"), does=keep)))
    c.write(insert(c.entry("lpm_table", lpm(1, b"\x0a\0\0\0", 8), does=keep)))
    c.write(insert(c.entry("ternary_table", exact(4, b"\1"), does=keep, priority=4)))
    yield "all tables", c.read(pb.Entity(table_entry={}))
    yield "nothing asked", c.read()
    yield "an empty entity", c.read(pb.Entity())
    yield "unknown table", c.read(pb.Entity(table_entry={"table_id": 0x02000001}))
    yield "no table", c.read(pb.Entity(table_entry={"table_id": c.id("actions", "set")}))
    yield "two queries", c.read(c.entry("exact_table"), c.entry("lpm_table"))
    yield "one wrong", c.read(c.entry("exact_table"), pb.Entity(table_entry={"table_id": 1}))
    yield "another device", c.read(pb.Entity(table_entry={}), device=DEVICE_ID + 1)
    wrong = c.entry("exact_table", lpm(1, b"\1", 8), exact(2, b"\1"))
    yield "a wrong key", c.read(wrong)
    yield "a key without priority", c.read(c.entry("ternary_table", exact(4, b"\1")))


@group
def atomicity(c: Controller) -> Iterator[Step]:
    def row(n: int) -> Any:
        return c.entry("exact_table", exact(1, bytes([n])), exact(2, b"\1"), does=c.action("keep"))

    yield "roll back", c.write(insert(row(1)), insert(row(1)), atomicity="ROLLBACK_ON_ERROR")
    yield "data plane", c.write(insert(row(2)), atomicity="DATAPLANE_ATOMIC")
    yield "read", c.read(c.entry("exact_table"))


@group
def configurations(c: Controller) -> Iterator[Step]:
    for kind in ("ALL", "COOKIE_ONLY", "P4INFO_AND_COOKIE", "DEVICE_CONFIG_AND_COOKIE"):
        yield kind, c.configuration(kind)
    row = c.entry("exact_table", exact(1, b"\1"), exact(2, b"\1"), does=c.action("keep"))
    c.write(insert(row), insert(multicast(3, (255, 1))))
    yield "verify", c.configure("VERIFY")
    yield "kept", c.read(c.entry("exact_table"))
    yield "reconcile", c.configure("RECONCILE_AND_COMMIT")
    yield "kept again", c.read(c.entry("exact_table"))
    yield "commit", c.configure("VERIFY_AND_COMMIT")
    yield "cleared", c.read(c.entry("exact_table"))
    yield "groups cleared", c.read(multicast(0))
    yield "unspecified", c.configure("UNSPECIFIED")
    yield "save", c.configure("VERIFY_AND_SAVE")
    yield "commit saved", c.configure("COMMIT", None)
    yield "still there", c.configuration("COOKIE_ONLY")
    bad = pb.ForwardingPipelineConfig(p4info=c.p4info, p4_device_config=b"{")
    yield "bad program", c.configure("VERIFY_AND_COMMIT", bad) != "OK"


@group
def several_controllers(c: Controller) -> Iterator[Step]:
    """The first has election id 1."""
    second, third = c.another(), c.another()
    row = c.entry("exact_table", exact(1, b"\1"), exact(2, b"\1"), does=c.action("keep"))
    yield "a stranger writes", second.write(insert(row))
    yield "a stranger reads", second.read(c.entry("exact_table"))
    yield "lower", second.arbitrate(0)
    yield "backup writes", second.write(insert(row))
    yield "backup configures", second.configure("VERIFY_AND_COMMIT")
    yield "with the primary's id", second.write(insert(row), election_id=c.election)
    yield "higher", third.arbitrate((1 << 64) + 5)
    yield "the first is told", c.next_arbitration()
    yield "the second is told", second.next_arbitration()
    yield "the first writes", c.write(delete(row))
    yield "the third writes", third.write(delete(row))
    yield "the same id again", c.another().arbitrate((1 << 64) + 5)
    yield "the first rises", c.arbitrate((1 << 64) + 6)
    yield "the third is told", third.next_arbitration()
    yield "the third writes no more", third.write(insert(row))
    yield "the first writes again", c.write(insert(row))
    yield "another device", c.another().arbitrate(9, device=DEVICE_ID + 1)
    yield "write to another device", c.write(insert(row), device_id=DEVICE_ID + 1)
    c.close()
    while (heard := third.next_arbitration()) and heard[0] == "ALREADY_EXISTS":
        pass
    yield "the primary leaves", heard
    yield "nobody is primary", third.write(delete(row))
    yield "takes over", third.arbitrate((1 << 64) + 7)
    yield "and writes", third.write(delete(row))


@group
def roles(c: Controller) -> Iterator[Step]:
    other = c.another()
    row = c.entry("exact_table", exact(1, b"\1"), exact(2, b"\1"), does=c.action("keep"))
    yield "a role", other.arbitrate(1, role="monitor")
    yield "it writes", other.write(insert(row))
    yield "an unknown role", c.write(insert(row), role="nobody")
