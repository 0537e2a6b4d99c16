"""Checks accesses to members (fields, members of enums, properties of stacks and of apply results)
and indices."""

from __future__ import annotations

from p4native.compiler import ast, types
from p4native.compiler.check.context import Context, did_you_mean
from p4native.compiler.check.operators import OperatorChecker

STACK_METHODS = frozenset({"push_front", "pop_front"})
HEADER_METHODS = frozenset({"isValid", "setValid", "setInvalid"})
APPLY_RESULTS = frozenset({"hit", "miss", "action_run"})
SIZE_METHODS = frozenset({"minSizeInBits", "minSizeInBytes", "maxSizeInBits", "maxSizeInBytes"})


def holds_headers(stack: types.Stack) -> bool:
    """Whether a stack is a header stack and not an array of something else."""
    return isinstance(stack.element, (types.Header, types.HeaderUnion, types.TypeVariable))


MAX_LISTED = 8


def _all_of(names: set[str]) -> str:
    """Returns a hint with all names, if they are few."""
    return f"there are {', '.join(sorted(names))}" if 0 < len(names) <= MAX_LISTED else ""


class MemberChecker:
    """The part that checks members and indices of values, and whether an expression can be assigned
    to."""

    def __init__(self, context: Context, operators: OperatorChecker) -> None:
        self.context = context
        self.operators = operators

    def check_member(self, node: ast.Member, expected: types.Type | None) -> types.Type:
        base = self.context.check(node.base)
        if isinstance(base, types.Unknown):
            return base
        if isinstance(base, types.TypeName):
            return self._type_member(node, base.named)
        if isinstance(base, types.StructLike):
            return self._field(node, base)
        if isinstance(base, types.Stack) and (node.member == "size" or holds_headers(base)):
            return self._stack_member(node, base)
        if isinstance(base, types.ApplyResult):
            return self._apply_result(node, base)
        if isinstance(base, types.StructLiteral) and (field := base.field(node.member)):
            return field.type
        return self._no_member(node, base, set())

    def _no_member(self, node: ast.Member, base: types.Type, names: set[str]) -> types.Type:
        methods = STACK_METHODS | HEADER_METHODS | SIZE_METHODS | {"apply"}
        if node.member in methods or isinstance(base, (types.Extern, types.Block, types.Table)):
            problem = f"'{node.member}' of {base} is not a value: call it"
            is_result = isinstance(base, types.Table) and node.member in APPLY_RESULTS
            hint = f"write .apply().{node.member}" if is_result else ""
            return self.context.error(node.member_position, problem, hint)
        if isinstance(base, types.Header) and node.member.lower() == "valid":
            hint = "write isValid()"
        else:
            hint = did_you_mean(node.member, names) or _all_of(names)
        return self.context.error(
            node.member_position, f"{base} has no member '{node.member}'", hint
        )

    def _type_member(self, node: ast.Member, named: types.Type) -> types.Type:
        if isinstance(named, types.Error):
            found = self.context.error_members.get(node.member)
            names = set(self.context.error_members)
        elif isinstance(named, (types.Enum, types.SerializableEnum)):
            members = named.declaration.members
            found = next((m for m in members if m.name == node.member), None)
            names = {m.name for m in members}
        elif isinstance(named, types.Unknown):
            return named
        else:
            return self._no_member(node, types.TypeName(named), set())
        if found is None:
            return self._no_member(node, named, names)
        self.context.program.decl_of[node] = found
        self.context.set_constant(node, found)
        return named

    # name -> member, of all `error { ... }` so far
    error_members: dict[str, ast.EnumMember]

    def _field(self, node: ast.Member, base: types.StructLike) -> types.Type:
        for index, field in enumerate(base.fields):
            if field.name == node.member:
                if field.declaration is not None:
                    self.context.program.decl_of[node] = field.declaration
                value = self.context.program.const_value.get(node.base)
                if isinstance(value, tuple):
                    self.context.set_constant(node, value[index])
                return field.type
        return self._no_member(node, base, {f.name for f in base.fields})

    def _stack_member(self, node: ast.Member, base: types.Stack) -> types.Type:
        if node.member in ("next", "last"):
            if self.context.frame.kind not in ("state", "function"):
                self.context.error(node, f"'{node.member}' of a stack exists in parsers only")
            return base.element
        if node.member == "lastIndex":
            if self.context.frame.kind not in ("state", "function"):
                self.context.error(node, "'lastIndex' of a stack exists in parsers only")
            return types.BIT32
        if node.member == "size":
            self.context.set_constant(node, base.size)
            return types.BIT32
        return self._no_member(node, base, {"next", "last", "lastIndex", "size"})

    def _apply_result(self, node: ast.Member, base: types.ApplyResult) -> types.Type:
        if node.member in ("hit", "miss"):
            return types.BOOLEAN
        if node.member == "action_run":
            return types.ActionRun(base.table)
        return self._no_member(node, base, set(APPLY_RESULTS))

    # ---- indices

    def check_index(self, node: ast.Index, expected: types.Type | None) -> types.Type:
        base = self.context.check(node.base)
        index = self.context.check(node.index)
        if isinstance(base, types.Unknown) or isinstance(index, types.Unknown):
            return base.element if isinstance(base, types.Stack) else types.UNKNOWN
        if isinstance(index, types.SerializableEnum):
            index = self.operators.enum_to_bits(node.index)
        if not isinstance(index, (types.Bits, types.Integer)):
            return self.context.error(node.index, f"an index must be a number, not {index}")
        if isinstance(base, types.Stack):
            return self._checked_index(node, (base.element,) * base.size)
        if isinstance(base, types.Tuple):
            if self.context.program.const_value.get(node.index) is None:
                return self.context.error(
                    node.index, "a tuple's index must be known at compile time"
                )
            return self._checked_index(node, base.elements)
        if isinstance(base, types.List):
            return base.element
        hint = "write .read(result, index) and .write(index, value)"
        is_register = isinstance(base, types.Extern) and base.name == "register"
        problem = f"{base} has no elements to index"
        return self.context.error(node, problem, hint if is_register else "")

    def _checked_index(self, node: ast.Index, elements: tuple[types.Type, ...]) -> types.Type:
        index = self.context.program.const_value.get(node.index)
        if not isinstance(index, int):
            return elements[0]
        if not 0 <= index < len(elements):
            return self.context.error(
                node.index, f"index {index} is outside 0..{len(elements) - 1}"
            )
        value = self.context.program.const_value.get(node.base)
        if isinstance(value, tuple):
            self.context.set_constant(node, value[index])
        return elements[index]

    # ---- l-values

    def lvalue_problem(self, node: ast.Expression) -> str:
        """Returns the reason why a node cannot be assigned to, or an empty string if it can."""
        while True:
            if isinstance(node, ast.NameExpression):
                return self._name_problem(node)
            if isinstance(node, ast.Member):
                owner = self.context.program.type_of.get(node.base)
                if isinstance(owner, types.Stack) and node.member not in ("next", "last"):
                    return f"'{node.member}' of a stack cannot be changed"
                if isinstance(owner, (types.TypeName, types.ApplyResult)):
                    return f"'{node.member}' of {owner} cannot be changed"
                node = node.base
            elif isinstance(node, (ast.Index, ast.Slice, ast.PlusSlice)):
                node = node.base
            else:
                return "this is not a variable"

    def _name_problem(self, node: ast.NameExpression) -> str:
        declaration = self.context.program.decl_of.get(node)
        if declaration is None or isinstance(declaration, ast.Variable):
            return ""
        if isinstance(declaration, ast.Parameter):
            if declaration.direction in ("out", "inout"):
                return ""
            kind = f"'{declaration.direction}' parameter" if declaration.direction else "parameter"
            return f"{kind} '{node.name}' is read-only"
        if isinstance(declaration, ast.Constant):
            return f"'{node.name}' is a constant"
        return f"'{node.name}' is not a variable"
