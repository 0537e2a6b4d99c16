"""The P4Runtime service, which passes RPCs to `Device` and `Arbitration` and turns errors into gRPC
status."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
from collections.abc import Iterator
from typing import NoReturn

import grpc
from p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc
from p4.v1.p4runtime_pb2 import GetForwardingPipelineConfigRequest

from p4native.switch.p4runtime.arbitration import Arbitration, election_number
from p4native.switch.p4runtime.device import Device
from p4native.switch.p4runtime.packets import decode_packet_in, encode_packet_out
from p4native.switch.p4runtime.status import BatchError, Code, StatusError, invalid, unsupported

API_VERSION = "1.4.1"
MAX_CONTROLLERS = 16
MAX_RETURNED_BYTES = 1 << 17
"""The size limit for returning a refused message to its sender. A packet-out is never longer."""
MAX_TEXT_LENGTH = 1000
"""The longest text of a status. There is a limit because the text travels as a header and may
contain names that a client has sent."""
ENTITIES_A_RESPONSE = 200
"""The number of entities in one ReadResponse. There is a limit because clients refuse messages
above 4 MB."""

_STATUS_CODES = {code.value[0]: code for code in grpc.StatusCode}


class Stream:
    """One controller's StreamChannel, in the form that the rest of the server uses."""

    MAX_QUEUED = 1024

    def __init__(self) -> None:
        self.outgoing: queue.SimpleQueue[
            p4runtime_pb2.StreamMessageResponse | StatusError | None
        ] = queue.SimpleQueue()

    def send(self, message: p4runtime_pb2.StreamMessageResponse) -> None:
        """Queues a message. If the controller does not keep up, all messages except those about
        elections are dropped."""
        if not message.HasField("arbitration") and self.outgoing.qsize() >= self.MAX_QUEUED:
            return
        self.outgoing.put(message)

    def end(self, error: StatusError | None = None) -> None:
        """Closes the stream, with an error or without."""
        self.outgoing.put(error)


class P4RuntimeService(p4runtime_pb2_grpc.P4RuntimeServicer):
    """The P4Runtime service of one device."""

    def __init__(self, device_id: int, device: Device, controller: socket.socket | None) -> None:
        self._device = device
        self._controller = controller
        self._arbitration = Arbitration(device_id)
        self._streams = 0
        # One lock for election and state: a new primary waits for writes that have begun.
        self._lock = threading.Lock()

    def Write(
        self, request: p4runtime_pb2.WriteRequest, context: grpc.ServicerContext
    ) -> p4runtime_pb2.WriteResponse:
        """Applies a batch of updates, in order."""
        with _errors_to(context), self._lock:
            self._check_primary(request)
            if request.atomicity not in p4runtime_pb2.WriteRequest.Atomicity.values():
                raise invalid(f"atomicity: there is no atomicity {request.atomicity}")
            self._device.write(list(request.updates), request.atomicity)
        return p4runtime_pb2.WriteResponse()

    def Read(
        self, request: p4runtime_pb2.ReadRequest, context: grpc.ServicerContext
    ) -> Iterator[p4runtime_pb2.ReadResponse]:
        """Yields everything that fits the queries. All results show the state at one moment between
        two writes."""
        with _errors_to(context), self._lock:
            self._arbitration.check_device(request.device_id)
            found = list(self._device.read(list(request.entities)))
        for start in range(0, len(found), ENTITIES_A_RESPONSE):
            yield p4runtime_pb2.ReadResponse(entities=found[start : start + ENTITIES_A_RESPONSE])

    def SetForwardingPipelineConfig(
        self,
        request: p4runtime_pb2.SetForwardingPipelineConfigRequest,
        context: grpc.ServicerContext,
    ) -> p4runtime_pb2.SetForwardingPipelineConfigResponse:
        """Compiles the program, and then verifies, saves or commits it. The lock is not held while
        the program is compiled, because that takes seconds."""
        with _errors_to(context):
            with self._lock:
                self._check_primary(request)
            prepared = self._device.prepare(request)
            with self._lock:
                try:
                    self._check_primary(request)
                except StatusError:
                    self._device.discard(prepared)
                    raise
                self._device.configure(request.action, prepared)
        return p4runtime_pb2.SetForwardingPipelineConfigResponse()

    def GetForwardingPipelineConfig(
        self, request: GetForwardingPipelineConfigRequest, context: grpc.ServicerContext
    ) -> p4runtime_pb2.GetForwardingPipelineConfigResponse:
        """Returns the configuration, or the requested parts of it."""
        response = p4runtime_pb2.GetForwardingPipelineConfigResponse()
        with _errors_to(context), self._lock:
            self._arbitration.check_device(request.device_id)
            config = self._device.current.config
        wanted = request.response_type
        if config.HasField("cookie"):
            response.config.cookie.CopyFrom(config.cookie)
        if wanted in (
            GetForwardingPipelineConfigRequest.ALL,
            GetForwardingPipelineConfigRequest.P4INFO_AND_COOKIE,
        ):
            response.config.p4info.CopyFrom(config.p4info)
        if wanted in (
            GetForwardingPipelineConfigRequest.ALL,
            GetForwardingPipelineConfigRequest.DEVICE_CONFIG_AND_COOKIE,
        ):
            response.config.p4_device_config = config.p4_device_config
        return response

    def Capabilities(
        self, request: p4runtime_pb2.CapabilitiesRequest, context: grpc.ServicerContext
    ) -> p4runtime_pb2.CapabilitiesResponse:
        """Returns the version of P4Runtime that this server follows."""
        with _errors_to(context), self._lock:
            if request.device_id:
                self._arbitration.check_device(request.device_id)
        return p4runtime_pb2.CapabilitiesResponse(p4runtime_api_version=API_VERSION)

    def StreamChannel(
        self,
        request_iterator: Iterator[p4runtime_pb2.StreamMessageRequest],
        context: grpc.ServicerContext,
    ) -> Iterator[p4runtime_pb2.StreamMessageResponse]:
        """Serves one controller's session, which lasts as long as the stream."""
        stream = Stream()
        reader = threading.Thread(
            target=self._read_stream, args=(stream, request_iterator), daemon=True
        )
        with self._lock:
            self._streams += 1
            full = self._streams > MAX_CONTROLLERS
        try:
            if full:
                text = f"{MAX_CONTROLLERS} controllers are connected already"
                _abort(context, Code.RESOURCE_EXHAUSTED, text)
            reader.start()
            while (message := stream.outgoing.get()) is not None:
                if isinstance(message, StatusError):
                    _abort(context, message.code, message.message)
                yield message
        finally:
            with self._lock:
                self._streams -= 1
                self._arbitration.disconnect(stream)

    def _read_stream(
        self, stream: Stream, requests: Iterator[p4runtime_pb2.StreamMessageRequest]
    ) -> None:
        try:
            for request in requests:
                self._on_stream_message(stream, request)
        except StatusError as error:
            stream.end(error)
            return
        except grpc.RpcError:
            pass
        stream.end()

    def _on_stream_message(
        self, stream: Stream, request: p4runtime_pb2.StreamMessageRequest
    ) -> None:
        kind = request.WhichOneof("update")
        if kind == "arbitration":
            with self._lock:
                self._arbitration.update(stream, request.arbitration)
            return
        response = p4runtime_pb2.StreamMessageResponse()
        try:
            if kind == "packet":
                self._packet_out(stream, request.packet)
            elif kind == "digest_ack":
                self._acknowledge(stream, request.digest_ack)
            else:
                raise unsupported(kind or "an empty stream message")
            return
        except StatusError as error:
            response.error.canonical_code = error.code
            response.error.message = error.message
        if request.ByteSize() <= MAX_RETURNED_BYTES:
            _return(request, response.error)
        stream.send(response)

    def _packet_out(self, stream: Stream, packet: p4runtime_pb2.PacketOut) -> None:
        with self._lock:
            if not self._arbitration.is_primary(stream):
                raise StatusError(
                    Code.PERMISSION_DENIED, "packet: only the primary controller may send packets"
                )
            fields = self._device.current.index.packet_out
        if self._controller is None:
            raise StatusError(
                Code.FAILED_PRECONDITION,
                "packet: the switch has no CPU port, start with --cpu-port",
            )
        frame = encode_packet_out(fields, packet)
        try:
            self._controller.send(frame)
        except OSError as error:
            raise StatusError(
                Code.RESOURCE_EXHAUSTED, f"packet: {len(frame)} bytes: {error.strerror}"
            ) from error

    def _acknowledge(self, stream: Stream, message: p4runtime_pb2.DigestListAck) -> None:
        with self._lock:
            if not self._arbitration.is_primary(stream):
                raise StatusError(
                    Code.PERMISSION_DENIED,
                    "digest_ack: only the primary controller may acknowledge digests",
                )
            self._device.current.digests.acknowledge(message)

    def send_notices(self) -> bool:
        """Sends digests and notices of idle entries to every primary. Returns whether there may be
        more soon."""
        with self._lock:
            notices = self._device.notices()
            primaries = self._arbitration.primaries()
            watched = self._device.watched
        for notice in notices:
            for stream in primaries:
                stream.send(notice)
        return watched

    def links_changed(self) -> None:
        """Tells the device that a port came up or went down."""
        with self._lock:
            self._device.links_changed()

    def packet_in(self, frame: bytes) -> None:
        """Sends a frame from the CPU port to every primary."""
        with self._lock:
            try:
                fields = self._device.current.index.packet_in
            except StatusError:
                return
            primaries = self._arbitration.primaries()
        packet = decode_packet_in(fields, frame)
        if packet is not None:
            for stream in primaries:
                stream.send(p4runtime_pb2.StreamMessageResponse(packet=packet))

    def _check_primary(
        self,
        request: p4runtime_pb2.WriteRequest | p4runtime_pb2.SetForwardingPipelineConfigRequest,
    ) -> None:
        self._arbitration.check_primary(
            request.device_id, request.role, election_number(request.election_id)
        )


def _return(request: p4runtime_pb2.StreamMessageRequest, error: p4runtime_pb2.StreamError) -> None:
    """Adds the refused message to the error that is sent back to its sender."""
    kind = request.WhichOneof("update")
    if kind == "packet":
        error.packet_out.packet_out.CopyFrom(request.packet)
    elif kind == "digest_ack":
        error.digest_list_ack.digest_list_ack.CopyFrom(request.digest_ack)
    else:
        error.other.other.CopyFrom(request.other)


@contextlib.contextmanager
def _errors_to(context: grpc.ServicerContext) -> Iterator[None]:
    """Ends the RPC with the gRPC status for a StatusError or BatchError that the block raises."""
    try:
        yield
    except StatusError as error:
        _abort(context, error.code, error.message)
    except BatchError as error:
        status = error.to_status()
        context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
        _abort(context, Code.UNKNOWN, status.message)


def _abort(context: grpc.ServicerContext, code: Code, message: str) -> NoReturn:
    context.abort(_STATUS_CODES[code], message[:MAX_TEXT_LENGTH])
    raise AssertionError("abort returned")
