"""Election of the primary controller, without gRPC: who is told what, in which order."""

from __future__ import annotations

import pytest

import p4native.switch.p4runtime  # before protobuf is first imported

# isort: split
from p4.v1 import p4runtime_pb2

from p4native.switch.p4runtime.arbitration import Arbitration
from p4native.switch.p4runtime.status import Code, StatusError

assert p4native.switch.p4runtime
DEVICE = 3


class FakeClient:
    def __init__(self) -> None:
        self.told: list[tuple[int, int]] = []

    def send(self, message: p4runtime_pb2.StreamMessageResponse) -> None:
        update = message.arbitration
        assert update.device_id == DEVICE
        number = update.election_id.high << 64 | update.election_id.low
        self.told.append((update.status.code, number))

    def take(self) -> list[tuple[int, int]]:
        told, self.told = self.told, []
        return told


def hello(
    election_id: int | None, role: str = "", device: int = DEVICE
) -> p4runtime_pb2.MasterArbitrationUpdate:
    message = p4runtime_pb2.MasterArbitrationUpdate(device_id=device)
    if role:
        message.role.name = role
    if election_id is not None:
        message.election_id.high = election_id >> 64
        message.election_id.low = election_id & (1 << 64) - 1
    return message


@pytest.fixture
def arbitration() -> Arbitration:
    return Arbitration(DEVICE)


def refused(arbitration: Arbitration, client: FakeClient, message: object) -> Code:
    with pytest.raises(StatusError) as caught:
        arbitration.update(client, message)
    return caught.value.code


def test_the_higher_election_id_becomes_primary(arbitration: Arbitration) -> None:
    first, second = FakeClient(), FakeClient()
    arbitration.update(first, hello(10))
    assert first.take() == [(Code.OK, 10)]
    arbitration.update(second, hello(11))
    assert first.take() == [(Code.ALREADY_EXISTS, 11)]
    assert second.take() == [(Code.OK, 11)]
    assert arbitration.is_primary(second) and not arbitration.is_primary(first)


def test_a_lower_id_is_a_backup_and_only_it_is_told(arbitration: Arbitration) -> None:
    first, second = FakeClient(), FakeClient()
    arbitration.update(first, hello(10))
    first.take()
    arbitration.update(second, hello(9))
    assert (first.take(), second.take()) == ([], [(Code.ALREADY_EXISTS, 10)])


def test_a_backup_is_not_promoted_when_the_primary_leaves(arbitration: Arbitration) -> None:
    first, second = FakeClient(), FakeClient()
    arbitration.update(first, hello(10))
    arbitration.update(second, hello(9))
    second.take()
    arbitration.disconnect(first)
    assert second.take() == [(Code.NOT_FOUND, 10)]
    assert not arbitration.is_primary(second)
    arbitration.update(second, hello(9))
    assert second.take() == [(Code.NOT_FOUND, 10)], "9 is below the highest id ever seen"
    arbitration.update(second, hello(10))
    assert second.take() == [(Code.OK, 10)]


def test_who_has_left_is_told_nothing_any_more(arbitration: Arbitration) -> None:
    primary, backup, other = FakeClient(), FakeClient(), FakeClient()
    for client, election_id in ((primary, 10), (backup, 9), (other, 8)):
        arbitration.update(client, hello(election_id))
    for client in (primary, backup, other):
        client.take()
    arbitration.disconnect(backup)
    arbitration.disconnect(primary)
    assert (primary.take(), backup.take(), other.take()) == ([], [], [(Code.NOT_FOUND, 10)])
    arbitration.update(other, hello(11))
    assert (primary.take(), backup.take(), other.take()) == ([], [], [(Code.OK, 11)])
    assert arbitration.primaries() == [other]


def test_a_primary_can_step_down(arbitration: Arbitration) -> None:
    first, second = FakeClient(), FakeClient()
    arbitration.update(first, hello(10))
    arbitration.update(second, hello(4))
    first.take(), second.take()
    arbitration.update(first, hello(5))
    assert first.take() == second.take() == [(Code.NOT_FOUND, 10)]


def test_no_id_is_never_primary(arbitration: Arbitration) -> None:
    client = FakeClient()
    arbitration.update(client, hello(None))
    assert client.take() == [(Code.NOT_FOUND, 0)]
    assert not arbitration.is_primary(client)


def test_ids_of_128_bits(arbitration: Arbitration) -> None:
    low, high = FakeClient(), FakeClient()
    arbitration.update(high, hello(1 << 64))
    arbitration.update(low, hello((1 << 64) - 1))
    assert arbitration.is_primary(high)
    assert low.take() == [(Code.ALREADY_EXISTS, 1 << 64)]


def test_roles_are_independent(arbitration: Arbitration) -> None:
    one, other = FakeClient(), FakeClient()
    arbitration.update(one, hello(10, role="routes"))
    arbitration.update(other, hello(10, role="stats"))
    assert arbitration.is_primary(one) and arbitration.is_primary(other)
    arbitration.check_primary(DEVICE, "routes", 10)
    with pytest.raises(StatusError) as caught:
        arbitration.check_primary(DEVICE, "billing", 10)
    assert caught.value.code == Code.NOT_FOUND


def test_refusals_of_a_new_stream(arbitration: Arbitration) -> None:
    arbitration.update(FakeClient(), hello(10))
    assert refused(arbitration, FakeClient(), hello(11, device=4)) == Code.NOT_FOUND
    assert refused(arbitration, FakeClient(), hello(10)) == Code.INVALID_ARGUMENT
    configured = hello(12, role="x")
    configured.role.config.SetInParent()
    assert refused(arbitration, FakeClient(), configured) == Code.INVALID_ARGUMENT
    assert refused(arbitration, FakeClient(), hello(12, role="x" * 257)) == Code.INVALID_ARGUMENT


def test_refusals_of_a_live_stream(arbitration: Arbitration) -> None:
    client, other = FakeClient(), FakeClient()
    arbitration.update(client, hello(10))
    arbitration.update(other, hello(8))
    assert refused(arbitration, client, hello(10, device=4)) == Code.FAILED_PRECONDITION
    assert refused(arbitration, client, hello(10, role="x")) == Code.FAILED_PRECONDITION
    assert refused(arbitration, client, hello(8)) == Code.INVALID_ARGUMENT


def test_writes_need_the_primarys_id(arbitration: Arbitration) -> None:
    client = FakeClient()

    def code(device: int, election_id: int) -> Code:
        with pytest.raises(StatusError) as caught:
            arbitration.check_primary(device, "", election_id)
        return caught.value.code

    assert code(DEVICE, 0) == Code.PERMISSION_DENIED, "nobody has introduced itself"
    arbitration.update(client, hello(10))
    arbitration.check_primary(DEVICE, "", 10)
    assert code(DEVICE, 11) == Code.PERMISSION_DENIED
    assert code(DEVICE + 1, 10) == Code.NOT_FOUND
    arbitration.disconnect(client)
    assert code(DEVICE, 10) == Code.PERMISSION_DENIED
