"""The switch as P4Runtime sees it: the running program with its entities, and at most one program
that is saved but not yet running."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2
from p4.v1.p4runtime_pb2 import (
    Entity,
    SetForwardingPipelineConfigRequest,
    StreamMessageResponse,
    Update,
    WriteRequest,
)

from p4native.switch import Pipeline, PipelineError, Program
from p4native.switch.p4runtime.arrays import Counters, DirectCounters, Registers
from p4native.switch.p4runtime.digests import Digests
from p4native.switch.p4runtime.legacy import device_data
from p4native.switch.p4runtime.links import Links
from p4native.switch.p4runtime.meters import DirectMeters, Meters
from p4native.switch.p4runtime.p4info import P4InfoIndex
from p4native.switch.p4runtime.profiles import ActionProfiles, Groups, Members
from p4native.switch.p4runtime.replication import Replication
from p4native.switch.p4runtime.status import BatchError, Code, StatusError, invalid, unsupported
from p4native.switch.p4runtime.tables import TableEntries
from p4native.switch.p4runtime.value_sets import ValueSets

SetPipeline = Callable[[Pipeline], None]
"""A function that makes the data plane forward by a program. When it returns, the previous program
is no longer used."""


Make = Callable[[Program], Pipeline]
"""A function that compiles a program and makes an instance of it."""

_UNSUPPORTED = {"extern_entry": "externs"}
"""The kinds of entity that are not supported, with the list of the P4Info that would describe
them."""


_INSERTED = (
    "packet_replication_engine_entry",
    "action_profile_member",
    "action_profile_group",
    "table_entry",
    "digest_entry",
)
_MODIFIED = ("counter_entry", "register_entry", "meter_entry", "value_set_entry")
"""The kinds of entity that are copied to another program by modifying them, in this order."""


class Forwarding:
    """One program with its P4Info and everything that clients have written to it."""

    def __init__(
        self,
        config: p4runtime_pb2.ForwardingPipelineConfig,
        pipeline: Pipeline,
        links: Links,
    ) -> None:
        self.config = config
        self.pipeline = pipeline
        self.index = P4InfoIndex(config.p4info)
        self.index.check_program(pipeline.program)
        self.profiles = ActionProfiles(self.index, pipeline, links)
        self.tables = tables = TableEntries(self.index, pipeline, self.profiles)
        self.digests = Digests(self.index, pipeline)
        self._handlers: dict[str, Any] = {
            "table_entry": tables,
            "counter_entry": Counters(self.index, pipeline),
            "direct_counter_entry": DirectCounters(self.index, pipeline, tables),
            "register_entry": Registers(self.index, pipeline),
            "meter_entry": Meters(self.index, pipeline),
            "direct_meter_entry": DirectMeters(self.index, pipeline, tables),
            "action_profile_member": Members(self.profiles),
            "action_profile_group": Groups(self.profiles),
            "value_set_entry": ValueSets(self.index, pipeline),
            "digest_entry": self.digests,
            "packet_replication_engine_entry": Replication(pipeline),
        }

    def write(self, update: Update) -> None:
        """Applies one update. Raises StatusError if it is refused."""
        if update.type not in (Update.INSERT, Update.MODIFY, Update.DELETE):
            raise invalid("update.type: it is not set")
        name = _entity_name(update.entity)
        try:
            self._handler(name).write(update.type, getattr(update.entity, name))
        except PipelineError as error:
            raise invalid(str(error)) from error

    def before(self, update: Update) -> list[Update]:
        """Returns the updates that would undo `update`, in the order in which they have to be made.
        Must be called before `update` is made."""
        name = _entity_name(update.entity)
        if name == "table_entry":
            held = self.tables.held(update.type, update.entity.table_entry)
        else:
            try:
                held = list(self.read(update.entity))
            except StatusError:
                held = []
        if update.type == Update.INSERT:
            return [Update(type=Update.DELETE, entity=update.entity)]
        kind = Update.INSERT if update.type == Update.DELETE else Update.MODIFY
        return [Update(type=kind, entity=entity) for entity in held]

    def write_all(self, updates: list[Update]) -> list[StatusError | None]:
        """Applies all updates or, if one fails, none. Returns for each update None or an
        error. If one update fails, the error of all others is ABORTED."""
        undo: list[Update] = []
        for done, update in enumerate(updates):
            try:
                back = self.before(update)
                self.write(update)
            except StatusError as error:
                for earlier in undo:
                    self.write(earlier)
                others = [StatusError(Code.ABORTED, f"update {done} failed")] * len(updates)
                return [*others[:done], error, *others[done + 1 :]]
            undo = back + undo
        return [None] * len(updates)

    def read(self, query: Entity) -> Iterator[Entity]:
        """Yields everything that fits one query."""
        name = _entity_name(query)
        # Clients that clear a switch ask for every kind; where a program has none there is nothing.
        if name in _UNSUPPORTED and not getattr(self.config.p4info, _UNSUPPORTED[name]):
            return
        yield from self._handler(name).read(getattr(query, name))

    def _handler(self, name: str) -> Any:
        if name not in self._handlers:
            raise unsupported(name)
        return self._handlers[name]

    def carry_over(self, old: Forwarding) -> None:
        """Writes the entities of `old` to this program. Raises INVALID_ARGUMENT if one of them does
        not fit."""
        for name in _INSERTED:
            query = _everything(name)
            if name == "table_entry" and any(t.direct_meter for t in old.index.tables.values()):
                query.table_entry.meter_config.SetInParent()
            for entity in old.read(query):
                if not entity.table_entry.is_const:
                    self._carry(Update(type=Update.INSERT, entity=entity))
        for name in _MODIFIED:
            for entity in old.read(_everything(name)):
                self._carry(Update(type=Update.MODIFY, entity=entity))

    def _carry(self, update: Update) -> None:
        try:
            self.write(update)
        except StatusError as error:
            if error.code != Code.ALREADY_EXISTS:
                raise invalid(f"state cannot be kept: {error.message}") from None


def _entity_name(entity: Entity) -> str:
    name = entity.WhichOneof("entity")
    if name is None:
        raise invalid("entity: it is not set")
    return str(name)


def _tried(forwarding: Forwarding, update: Update) -> StatusError | None:
    try:
        forwarding.write(update)
    except StatusError as error:
        return error
    return None


def _everything(name: str) -> Entity:
    query = Entity()
    getattr(query, name).SetInParent()
    return query


class Device:
    """The device on which the RPCs act. Only `prepare` is thread-safe: for everything else, the
    caller must hold a lock."""

    def __init__(
        self,
        set_pipeline: SetPipeline,
        make: Make = Pipeline.of,
        links: Links | None = None,
    ) -> None:
        self._set_pipeline = set_pipeline
        self._make = make
        self._running: Pipeline | None = None
        self._links = links or Links({})
        self._committed: Forwarding | None = None
        self._saved: Forwarding | None = None

    def run(self, pipeline: Pipeline) -> None:
        """Makes the switch forward by a program that no client has sent. Clients cannot write to it
        yet."""
        assert self._running is None
        self._set_pipeline(pipeline)
        self._running = pipeline

    def describe(self, p4info: p4info_pb2.P4Info, config: bytes) -> None:
        """Gives clients access to the program that runs already. Raises StatusError if the P4Info
        does not belong to this program."""
        assert self._running is not None
        message = p4runtime_pb2.ForwardingPipelineConfig(p4info=p4info, p4_device_config=config)
        self._committed = Forwarding(message, self._running, self._links)

    @property
    def current(self) -> Forwarding:
        """The configuration to which reads and writes refer: the saved configuration if there is
        one, otherwise the running one."""
        forwarding = self._saved or self._committed
        if forwarding is None:
            raise StatusError(
                Code.FAILED_PRECONDITION,
                "no forwarding pipeline config: send one, or start the switch with --p4info",
            )
        return forwarding

    def prepare(self, request: SetForwardingPipelineConfigRequest) -> Forwarding | None:
        """Compiles and checks the request's configuration. Returns None for COMMIT, which has no
        configuration."""
        if request.action == SetForwardingPipelineConfigRequest.COMMIT:
            if request.HasField("config"):
                raise invalid("config: the action COMMIT takes no config")
            return None
        if request.action == SetForwardingPipelineConfigRequest.UNSPECIFIED:
            raise invalid("action: it is not set")
        if not request.HasField("config"):
            raise invalid("config: it is not set")
        if not request.config.p4_device_config:
            raise invalid("config.p4_device_config: it is empty; BMv2 JSON is expected")
        pipeline = self._load(request.config.p4_device_config)
        try:
            return Forwarding(request.config, pipeline, self._links)
        except BaseException:
            pipeline.close()
            raise

    def _load(self, text: bytes) -> Pipeline:
        try:
            return self._make(Program.parse(device_data(text).decode()))
        except (PipelineError, UnicodeDecodeError) as error:
            raise invalid(f"config.p4_device_config: {error}") from error

    def discard(self, prepared: Forwarding | None) -> None:
        """Releases a prepared configuration that will not be used."""
        if prepared is not None:
            prepared.pipeline.close()

    def configure(self, action: int, prepared: Forwarding | None) -> None:
        """Verifies, saves or commits a prepared configuration, as `action` says."""
        if prepared is None:
            self._commit_saved()
        elif action == SetForwardingPipelineConfigRequest.VERIFY:
            prepared.pipeline.close()
        elif action == SetForwardingPipelineConfigRequest.VERIFY_AND_SAVE:
            self._discard_saved()
            self._saved = prepared
        else:
            if action == SetForwardingPipelineConfigRequest.RECONCILE_AND_COMMIT:
                self._carry_over(prepared)
            self._discard_saved()
            self._commit(prepared)

    def _carry_over(self, prepared: Forwarding) -> None:
        if self._committed is None:
            return
        try:
            prepared.carry_over(self._committed)
        except StatusError:
            prepared.pipeline.close()
            raise

    def _commit_saved(self) -> None:
        if self._saved is None:
            raise StatusError(Code.NOT_FOUND, "action: there is no saved config to COMMIT")
        saved, self._saved = self._saved, None
        self._commit(saved)

    def _commit(self, forwarding: Forwarding) -> None:
        self._set_pipeline(forwarding.pipeline)
        if self._running is not None:
            self._running.close()
        self._running = forwarding.pipeline
        self._committed = forwarding

    def _discard_saved(self) -> None:
        if self._saved is not None:
            self._saved.pipeline.close()
            self._saved = None

    def notices(self) -> list[StreamMessageResponse]:
        """Returns the messages of the running program for controllers: digests and idle entries."""
        if self._committed is None:
            return []
        found = [StreamMessageResponse(digest=d) for d in self._committed.digests.collect()]
        idle = self._committed.tables.idle()
        if idle:
            notice = StreamMessageResponse()
            notice.idle_timeout_notification.table_entry.extend(idle)
            notice.idle_timeout_notification.timestamp = time.time_ns()
            found.append(notice)
        return found

    @property
    def watched(self) -> bool:
        """Whether the running program can have messages for controllers now."""
        running = self._committed
        return running is not None and (running.digests.wanted or running.tables.timed)

    def links_changed(self) -> None:
        """Updates the members of groups after a port came up or went down."""
        for forwarding in (self._committed, self._saved):
            if forwarding is not None:
                forwarding.profiles.links_changed()

    def write(self, updates: list[Update], atomicity: int = WriteRequest.CONTINUE_ON_ERROR) -> None:
        """Applies a batch. Raises BatchError if an update fails. The other updates are applied
        nevertheless, unless the atomicity requires that none is."""
        forwarding = self.current
        if atomicity == WriteRequest.CONTINUE_ON_ERROR:
            results = [_tried(forwarding, update) for update in updates]
        elif atomicity == WriteRequest.ROLLBACK_ON_ERROR:
            results = forwarding.write_all(updates)
        else:
            with forwarding.pipeline.at_once():
                results = forwarding.write_all(updates)
        if any(results):
            raise BatchError(results)

    def read(self, queries: list[Entity]) -> Iterator[Entity]:
        """Yields everything that fits any of the queries."""
        forwarding = self.current
        for query in queries:
            yield from forwarding.read(query)
