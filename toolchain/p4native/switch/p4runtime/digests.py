"""The classes that serve the entity DigestEntry, and make the lists of samples that are sent to
controllers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from p4.v1.p4runtime_pb2 import DigestEntry, DigestList, DigestListAck, Entity, Update

from p4native.switch import Pipeline
from p4native.switch.p4runtime.p4info import Digest, P4InfoIndex, find
from p4native.switch.p4runtime.p4types import Encoder, encoder
from p4native.switch.p4runtime.status import Code, StatusError, invalid

MAX_LIST = 1024
"""The largest number of samples in one message, even if the controller would accept more."""
FOREVER_NS = 1 << 64

Sample = tuple[int, ...]


@dataclass
class _Stream:
    """One digest that a controller has asked for, with the samples that wait to be sent. Times are
    in ns of the monotonic clock."""

    digest: Digest
    encode: Encoder
    config: DigestEntry.Config
    waiting: list[Sample] = field(default_factory=list)
    since_ns: int = 0
    list_id: int = 0
    unacknowledged: dict[Sample, tuple[int, int]] = field(default_factory=dict)
    """The samples that were sent, each with its list_id and the time from which it may be sent
    again without an acknowledgement. Samples that still wait are here with list 0, if equal samples
    are not to be sent twice."""

    def add(self, sample: Sample, now_ns: int) -> None:
        """Keeps a sample until it is sent. Ignores a sample if an equal one waits, or was sent and
        must not be sent again yet."""
        if now_ns < self.unacknowledged.get(sample, (0, 0))[1]:
            return
        if self.config.ack_timeout_ns:
            self.unacknowledged[sample] = (0, FOREVER_NS)
        if not self.waiting:
            self.since_ns = now_ns
        self.waiting.append(sample)

    def due(self, now_ns: int) -> Iterator[DigestList]:
        """Yields the lists that are full or whose samples have waited long enough."""
        size = min(self.config.max_list_size or MAX_LIST, MAX_LIST)
        late = now_ns - self.since_ns >= self.config.max_timeout_ns
        taken = 0
        while taken < len(self.waiting) and (late or len(self.waiting) - taken >= size):
            samples = self.waiting[taken : taken + size]
            taken += size
            self.list_id += 1
            until = now_ns + self.config.ack_timeout_ns
            self.unacknowledged.update((sample, (self.list_id, until)) for sample in samples)
            yield DigestList(
                digest_id=self.digest.id,
                list_id=self.list_id,
                data=[self.encode(iter(sample)) for sample in samples],
                timestamp=time.time_ns(),
            )
        self.waiting = self.waiting[taken:]
        if taken:
            self._forget(now_ns)

    def _forget(self, now_ns: int) -> None:
        """Forgets the samples that may be sent again."""
        self.unacknowledged = {
            sample: sent for sample, sent in self.unacknowledged.items() if now_ns < sent[1]
        }

    def acknowledge(self, list_id: int) -> None:
        """Handles a controller's acknowledgement: forgets the samples of a list, so that equal
        samples count as new."""
        self.unacknowledged = {
            sample: sent for sample, sent in self.unacknowledged.items() if sent[0] != list_id
        }


class Digests:
    """The digests of one loaded program."""

    def __init__(
        self,
        index: P4InfoIndex,
        pipeline: Pipeline,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._digests = index.digests
        self._fields = {known.name: len(known.fields) for known in pipeline.program.learn_lists}
        self._pipeline = pipeline
        self._clock_ns = clock_ns
        self._streams: dict[int, _Stream] = {}

    def write(self, kind: int, message: DigestEntry) -> None:
        """Starts sending a digest, changes how it is sent, or stops sending it."""
        digest = find(self._digests, "digest", message.digest_id, Code.NOT_FOUND)
        where = f"digest {digest.name}"
        exists = digest.id in self._streams
        if kind == Update.INSERT and exists:
            raise StatusError(Code.ALREADY_EXISTS, f"{where}: it is configured already")
        if kind != Update.INSERT and not exists:
            raise StatusError(Code.NOT_FOUND, f"{where}: it is not configured")
        if kind == Update.DELETE:
            del self._streams[digest.id]
            return
        for name in ("max_timeout_ns", "max_list_size", "ack_timeout_ns"):
            if getattr(message.config, name) < 0:
                raise invalid(f"{where}: {name} is negative")
        if exists:
            self._streams[digest.id].config = message.config
        else:
            encode = encoder(where, digest.spec, digest.types)
            _check_fields(where, encode, self._fields[digest.name])
            self._streams[digest.id] = _Stream(digest, encode, message.config)

    def read(self, query: DigestEntry) -> Iterator[Entity]:
        """Yields the configuration of one digest, or of all (digest_id 0)."""
        if query.digest_id:
            find(self._digests, "digest", query.digest_id, Code.NOT_FOUND)
        for id_, stream in self._streams.items():
            if query.digest_id in (0, id_):
                yield Entity(digest_entry=DigestEntry(digest_id=id_, config=stream.config))

    @property
    def wanted(self) -> bool:
        """Whether a controller has asked for any digest."""
        return bool(self._streams)

    def collect(self) -> list[DigestList]:
        """Takes the samples of the data plane, and returns the lists that are to be sent now."""
        now_ns = self._clock_ns()
        by_name = {stream.digest.name: stream for stream in self._streams.values()}
        for name, sample in self._pipeline.digests.take():
            if name in by_name:
                by_name[name].add(sample, now_ns)
        return [message for stream in by_name.values() for message in stream.due(now_ns)]

    def acknowledge(self, message: DigestListAck) -> None:
        """Records that a controller has received a list."""
        digest = find(self._digests, "digest", message.digest_id, Code.NOT_FOUND)
        if digest.id in self._streams:
            self._streams[digest.id].acknowledge(message.list_id)


def _check_fields(where: str, encode: Encoder, count: int) -> None:
    """Refuses a type whose fields are not those that the program samples. Without this check, the
    first sample would fail."""
    fields = iter((0,) * count)
    try:
        encode(fields)
        fits = next(fields, None) is None
    except (StopIteration, ValueError):
        fits = False
    if not fits:
        raise invalid(f"{where}: its type in the P4Info does not have the program's {count} fields")
