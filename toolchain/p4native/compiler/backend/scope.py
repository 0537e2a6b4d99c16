"""The state that the parts of lowering share: the compilation as a whole, the block or function
that is being inlined, and the code emitted so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from p4native.compiler import ast, types
from p4native.compiler.backend import ir
from p4native.compiler.backend.places import Place, StackPlace
from p4native.compiler.backend.storage import Names, Storage, Unsupported
from p4native.compiler.diagnostics import Diagnostics
from p4native.compiler.fold import evaluate
from p4native.compiler.source import NOWHERE, Position
from p4native.compiler.typed import CallInfo, CallKind, Instance, TypedProgram, Value


@dataclass
class TableSite:
    """A table as the control plane sees it. size: the size that the program declares, even if BMv2
    holds another number of entries."""

    table: ir.Table
    declaration: ast.TableDeclaration
    size: int


@dataclass
class ValueSetSite:
    """A parser value set as the control plane sees it."""

    name: str
    declaration: ast.ValueSet
    element: types.Type
    size: int


@dataclass
class Unit:
    """One compilation: its input, the program under construction, and the state shared by all
    blocks."""

    typed: TypedProgram
    diagnostics: Diagnostics
    program: ir.Program
    storage: Storage
    # whether extern functions and objects that v1model does not declare are left to BMv2's modules
    emit_externs: bool = False
    names: Names = field(default_factory=Names)
    # extern instances that became arrays, and the arrays by name
    arrays: dict[int, ir.Array] = field(default_factory=dict)
    profiles: dict[int, ir.ActionProfile] = field(default_factory=dict)
    field_lists: dict[int, int] = field(default_factory=dict)
    # actions that tables call, by owner, declaration and pipeline
    program_actions: dict[tuple[object, ...], ir.Action] = field(default_factory=dict)
    tables: list[TableSite] = field(default_factory=list)
    # full name -> declaration; None for a NoAction that core.p4 does not declare
    control_plane_actions: dict[str, ast.ActionDeclaration | None] = field(default_factory=dict)
    # direct counters and meters that actions use, and where
    direct_uses: list[tuple[ir.Array, Position]] = field(default_factory=list)
    externs: list[Instance] = field(default_factory=list)
    # name -> type of what digest() sends
    digests: dict[str, types.Type] = field(default_factory=dict)
    value_sets: list[ValueSetSite] = field(default_factory=list)
    labels: int = 0
    # calls inlined so far; how often the code at hand is copied by loops that are unrolled
    inlined: int = 0
    copies: int = 1

    def new_label(self) -> int:
        self.labels += 1
        return self.labels

    def report(self, problem: Unsupported) -> None:
        self.diagnostics.unsupported(problem.position, problem.construct, problem.hint)


@dataclass
class CopyOut:
    target: Place
    source: Place


@dataclass
class Frame:
    """One inlined block, action or function.

    lexical: the frame in which names are looked up that are not in env. caller: the frame of the
    caller. end: the label to which a `return` jumps. result: the place for a function's value.
    """

    instance: Instance | None
    block: str
    prefix: str
    env: dict[ast.Declaration, Place] = field(default_factory=dict)
    # parameters that are extern objects
    objects: dict[ast.Declaration, Instance] = field(default_factory=dict)
    lexical: Frame | None = None
    caller: Frame | None = None
    bindings: types.Bindings = field(default_factory=dict)
    end: int = 0
    result: Place | None = None
    copy_outs: list[CopyOut] = field(default_factory=list)
    break_label: int = 0
    continue_label: int = 0
    in_action: bool = False
    # a control with tables that is applied at several places
    shared: bool = False
    called: ast.Declaration | None = None

    def lookup(self, declaration: ast.Declaration) -> Place | None:
        frame: Frame | None = self
        while frame is not None:
            if declaration in frame.env:
                return frame.env[declaration]
            frame = frame.lexical
        return None


class Scope:
    """The state of lowering one block, which all parts share.

    A part is given the parts that it needs when it is made. Lowering is recursive: an expression
    contains a call, which contains expressions. Of parts that need each other, the one made last
    therefore registers its functions here, and the parts made before it call them through the
    scope. A control, a parser or a deparser replaces some of these functions by its own.
    """

    # Entered by Assignments, Comparisons, Calls and Statements.
    assign: Callable[[Place, Place], None]
    equal: Callable[[Place, Place, ast.Node], ir.Expr]
    call_value: Callable[[ast.Call], Place | None]
    lower_statements: Callable[[Sequence[ast.Statement | ast.Declaration]], None]
    # Entered by Expressions: a member of the result of a table's apply, a member of `stack.last`.
    apply_result: Callable[[ast.Member], Place]
    last_union_member: Callable[[StackPlace, str, ast.Member], Place]

    def __init__(self, unit: Unit, frame: Frame) -> None:
        self.unit = unit
        self.frame = frame
        self.code: list[ir.Statement] = []
        self.position: Position = NOWHERE
        # How each kind of call and of statement is lowered.
        self.calls: dict[CallKind, Callable[[ast.Call, CallInfo], Place | None]] = {}
        self.statements: dict[type[ast.Statement], Callable[[Any], None]] = {}

    @property
    def typed(self) -> TypedProgram:
        return self.unit.typed

    @contextmanager
    def into(self, code: list[ir.Statement]) -> Iterator[list[ir.Statement]]:
        """Appends the statements that are emitted inside the `with` statement to `code`."""
        outer, self.code = self.code, code
        try:
            yield code
        finally:
            self.code = outer

    @contextmanager
    def inside(self, frame: Frame) -> Iterator[Frame]:
        outer, self.frame = self.frame, frame
        try:
            yield frame
        finally:
            self.frame = outer

    def emit(self, op: str, *parameters: ir.Expr) -> None:
        self.code.append(ir.Primitive(self.position, op, parameters))

    def goto(self, label: int) -> None:
        self.code.append(ir.Goto(self.position, label))

    def mark(self, label: int) -> None:
        self.code.append(ir.Label(self.position, label))

    def temporary(self, shape: types.Type) -> Place:
        return self.unit.storage.allocate("tmp", shape, self.position)

    def unsupported(self, node: ast.Node, construct: str, hint: str = "") -> Unsupported:
        return Unsupported(node.position, construct, hint)

    def type_of(self, expression: ast.Expression) -> types.Type:
        shape = self.typed.type_of[expression]
        return types.substitute(shape, self.frame.bindings)

    def type_at(self, reference: ast.TypeRef) -> types.Type:
        return types.substitute(self.typed.type_at[reference], self.frame.bindings)

    def constant(self, expression: ast.Expression) -> Value | None:
        """Returns the expression's value if it is known at compile time in this instance, otherwise
        None."""
        known = self.typed.const_value.get(expression)
        if known is None and isinstance(expression, ast.NameExpression):
            instance = self.frame.instance
            declaration = self.typed.decl_of.get(expression)
            known = instance.constants.get(declaration) if instance and declaration else None
        return None if isinstance(known, Instance) else known

    def evaluated(self, expression: ast.Expression) -> Value | None:
        """Returns an expression's constant value, also if it is computed from constructor
        parameters."""
        known = self.constant(expression)
        if known is None and self.frame.instance is not None:
            known = evaluate(self.typed, expression, self.frame.instance.constants)
        return known

    def instance_of(self, receiver: ast.Expression) -> Instance:
        """Returns the extern, control or parser instance that `receiver` names."""
        declaration = self.typed.decl_of.get(receiver)
        frame: Frame | None = self.frame
        while frame is not None and declaration is not None:
            if declaration in frame.objects:
                return frame.objects[declaration]
            instance = frame.instance
            while instance is not None:
                if declaration in instance.children:
                    return instance.children[declaration]
                value = instance.constants.get(declaration)
                if isinstance(value, Instance):
                    return value
                instance = instance.parent
            frame = frame.lexical
        if isinstance(declaration, ast.Instantiation) and declaration in self.typed.globals:
            return self.typed.globals[declaration]
        raise self.unsupported(receiver, "this object")

    def called_instance(self, call: ast.Call, info: CallInfo) -> Instance:
        """Returns the control or parser that a call of `apply` runs."""
        if info.receiver is not None:
            return self.instance_of(info.receiver)
        owner = self.frame.instance
        while owner is not None:
            if call in owner.children:
                return owner.children[call]
            owner = owner.parent
        raise self.unsupported(call, "applying this block")
