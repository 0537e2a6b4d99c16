"""Runs one program on packets as v1model's pipeline does. Clones, multicast copies, resubmitted and
recirculated packets behave as in BMv2."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Sequence
from typing import Any

from p4native.compiler import ast, types
from p4native.compiler.typed import CallInfo, CallKind, Instance, TypedProgram
from p4native.verification.interpreter.context import Context, Exited, Rejected, Returned
from p4native.verification.interpreter.expressions import Expressions
from p4native.verification.interpreter.externs import Externs
from p4native.verification.interpreter.packet import DROP_PORT, Copy, Packet
from p4native.verification.interpreter.parser import Parsers
from p4native.verification.interpreter.statements import Statements
from p4native.verification.interpreter.tables import Tables
from p4native.verification.interpreter.values import copy

INGRESS_CLONE, EGRESS_CLONE, RECIRCULATED, REPLICATED, RESUBMITTED = 1, 2, 4, 5, 6
"""The values of standard_metadata.instance_type. It is 0 for any other packet."""

Replicas = Sequence[tuple[int, int]]
"""The (port, egress_rid) of each copy."""


class Machine:
    """A switch that runs one program. groups, sessions: the copies to make for each multicast group
    and for each clone session, by its number."""

    def __init__(self, program: TypedProgram) -> None:
        self.context = Context(program)
        self.expressions = Expressions(self.context)
        self.statements = Statements(self.context, self.expressions)
        self.tables = Tables(self.context, self.expressions, self.statements)
        self.parsers = Parsers(self.context, self.expressions, self.statements, self.tables)
        self.externs = Externs(self.context, self.expressions, self.parsers)
        self.context.calls[CallKind.CONTROL_APPLY] = self._apply
        self.groups: dict[int, Replicas] = {}
        self.sessions: dict[int, Replicas] = {}
        assert program.main is not None
        blocks = [v for v in program.main.arguments.values() if isinstance(v, Instance)]
        self._parser, self._verify, self._ingress, self._egress, self._update, self._deparser = (
            blocks
        )
        self._waiting: deque[Packet] = deque()
        self._sent: list[tuple[int, bytes]] = []

    def process(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        """Returns the frames that leave when a frame comes in at a port, each with the port where
        it leaves."""
        self._sent = []
        packet = self._fresh(port, frame, len(frame))
        packet.standard.fields["ingress_port"] = port
        self._waiting.append(packet)
        while self._waiting:
            self._through(self._waiting.popleft())
        return self._sent

    # ---- the way of a packet

    def _fresh(self, port: int, frame: bytes, length_bytes: int) -> Packet:
        """Returns a packet whose metadata is 0, except for `packet_length`."""
        parser = self._parser.type
        assert isinstance(parser, types.Parser)
        headers, metadata, standard = (self.context.default(p.type) for p in parser.parameters[1:])
        standard.fields["packet_length"] = len(frame)
        return Packet(frame, port, length_bytes, headers, metadata, standard)

    def _through(self, packet: Packet) -> None:
        """Runs the parser, checksum verification and ingress. Then clones, resubmits, replicates or
        drops the packet, or passes it to egress."""
        self._parse(packet)
        self._control(self._ingress, packet)
        if packet.clone is not None:
            self._clone_of_ingress(packet, packet.clone)
            packet.clone = None
        standard = packet.standard.fields
        if packet.resubmit is not None:
            self._again(packet, packet.frame, packet.length_bytes, packet.resubmit, RESUBMITTED)
        elif standard["mcast_grp"]:
            standard["instance_type"] = REPLICATED
            self._replicate(packet, self.groups.get(standard["mcast_grp"], ()))
        elif standard["egress_spec"] != DROP_PORT:
            standard["instance_type"] = 0
            self._leave(packet, standard["egress_spec"])

    def _parse(self, packet: Packet) -> None:
        standard = packet.standard.fields
        standard["parser_error"] = self.context.errors["NoError"]
        standard["checksum_error"] = 0
        try:
            self._block(self._parser, packet, lambda: self.parsers.run(self._parser))
        except Rejected as rejected:
            self._take_back(self._parser, packet)
            if rejected.error is not None:
                packet.standard.fields["parser_error"] = rejected.error
        packet.payload = packet.frame[packet.at_bit // 8 :]
        self._control(self._verify, packet)

    def _leave(self, packet: Packet, port: int) -> None:
        """Runs egress and the deparser, and sends the packet unless it was dropped or is
        recirculated."""
        standard = packet.standard.fields
        standard["egress_port"], standard["egress_spec"] = port, 0
        self._control(self._egress, packet)
        clone, asked = None, packet.clone
        if asked is not None:
            clone = self._copy(packet)
            self._only_listed(clone, packet, asked, EGRESS_CLONE)
            packet.clone = None
        if packet.standard.fields["egress_spec"] != DROP_PORT:
            frame = self._deparse(packet)
            if packet.recirculate is not None:
                self._again(packet, frame, len(frame), packet.recirculate, RECIRCULATED)
            else:
                self._sent.append((port, frame[: packet.truncate_bytes]))
        if clone is not None and asked is not None:
            self._replicate(clone, self.sessions.get(asked.session, ()))

    def _deparse(self, packet: Packet) -> bytes:
        self._control(self._update, packet)
        self._control(self._deparser, packet)
        return packet.emitted() + packet.payload

    # ---- copies

    def _clone_of_ingress(self, packet: Packet, asked: Copy) -> None:
        """Sends the clone that ingress requested, with the headers that the packet had when it came
        in."""
        clone = self._fresh(packet.port, packet.frame, packet.length_bytes)
        clone.standard.fields["ingress_port"] = packet.port
        self._parse(clone)
        self._only_listed(clone, packet, asked, INGRESS_CLONE)
        self._replicate(clone, self.sessions.get(asked.session, ()))

    def _again(
        self, packet: Packet, frame: bytes, length_bytes: int, asked: Copy, kind: int
    ) -> None:
        """Lets the packet enter the pipeline once more."""
        other = self._fresh(packet.port, frame, length_bytes)
        self._only_listed(other, packet, asked, kind)
        other.standard.fields["packet_length"] = len(frame)
        self._waiting.append(other)

    def _only_listed(self, target: Packet, source: Packet, asked: Copy, kind: int) -> None:
        """Sets all metadata of `target` to 0, except the fields of the requested list, which are
        copied from `source`, and `instance_type`, which becomes `kind`."""
        empty = self._fresh(target.port, target.frame, target.length_bytes)
        target.metadata, target.standard = empty.metadata, empty.standard
        target.standard.fields["packet_length"] = 0
        for each in source.metadata.type.fields:
            note = each.declaration.annotation("field_list") if each.declaration else None
            lists = [self.expressions.number(e) for e in note.arguments] if note else []
            if asked.fields in lists:
                target.metadata.fields[each.name] = copy(source.metadata.fields[each.name])
        target.standard.fields["instance_type"] = kind

    def _copy(self, packet: Packet) -> Packet:
        return Packet(
            packet.frame,
            packet.port,
            packet.length_bytes,
            copy(packet.headers),
            copy(packet.metadata),
            copy(packet.standard),
            packet.at_bit,
            packet.payload,
        )

    def _replicate(self, packet: Packet, replicas: Replicas) -> None:
        for port, number in replicas:
            each = self._copy(packet)
            each.standard.fields["egress_rid"] = number
            self._leave(each, port)

    # ---- blocks

    def _control(self, control: Instance, packet: Packet) -> None:
        """Runs one of the package's controls."""

        def body() -> None:
            with contextlib.suppress(Exited, Returned):
                self._run(control)

        self._block(control, packet, body)

    def _block(self, block: Instance, packet: Packet, body: Any) -> None:
        """Runs `body` for a parser or control, whose parameters are the parts of a packet."""
        self.parsers.packet = self.externs.packet = packet
        variables = self.context.variables
        for node, name in self._parameters(block):
            variables[node] = getattr(packet, name)
        body()
        self._take_back(block, packet)

    def _take_back(self, block: Instance, packet: Packet) -> None:
        """Stores the values of the block's parameters in the packet again. An assignment to a whole
        parameter has replaced the object that the packet refers to."""
        for node, name in self._parameters(block):
            setattr(packet, name, self.context.variables[node])

    def _parameters(self, block: Instance) -> list[tuple[ast.Parameter, str]]:
        """Returns the parameters of one of the package's blocks, each with the part of a packet
        that it holds."""
        declaration = block.declaration
        assert isinstance(declaration, (ast.ParserDeclaration, ast.ControlDeclaration))
        own = [p for p in declaration.parameters if not self._is_packet(p)]
        return list(zip(own, ("headers", "metadata", "standard"), strict=False))

    def _is_packet(self, parameter: ast.Parameter) -> bool:
        return isinstance(self.context.program.type_of_declaration[parameter], types.Extern)

    def _run(self, control: Instance) -> None:
        """Executes the declarations of a control and then its body."""
        outer, self.context.instance = self.context.instance, control
        declaration = control.declaration
        assert isinstance(declaration, ast.ControlDeclaration)
        try:
            for each in declaration.locals:
                if isinstance(each, ast.Variable):
                    self.statements.declare(each)
            self.statements.run(declaration.body.statements)
        finally:
            self.context.instance = outer

    def _apply(self, call: ast.Call, info: CallInfo) -> None:
        """Applies a control inside a control."""
        if info.receiver is None:
            control = self.context.instance.children[call]
        else:
            control = self.context.object(info.receiver)
        given, outputs = self.statements.bind(info.arguments)
        self.statements.perform(given, outputs, lambda: self._run(control))
