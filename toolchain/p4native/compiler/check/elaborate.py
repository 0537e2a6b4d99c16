"""Elaborates a program: from main downwards, makes every instance with its evaluated constructor
arguments and its full name."""

from __future__ import annotations

from p4native.compiler import ast, types
from p4native.compiler.diagnostics import Diagnostics
from p4native.compiler.fold import evaluate
from p4native.compiler.typed import (
    BoundArgument,
    ConstructionInfo,
    Instance,
    TypedProgram,
    Value,
    qualified,
)

MAX_INSTANCES = 100_000


class _Elaborator:
    def __init__(self, program: TypedProgram, diagnostics: Diagnostics) -> None:
        self.program = program
        self.diagnostics = diagnostics
        self.globals: dict[ast.Declaration, Value] = {}
        self.count = 0
        self.unnamed_profiles = 0

    def run(self) -> Instance | None:
        main: Instance | None = None
        for node in self.program.tree.declarations:
            if isinstance(node, ast.Instantiation):
                info = self.program.constructions[node]
                instance = self.build(node, info, {}, qualified("", node))
                self.globals[node] = instance
                if node.name == "main":
                    main = instance
                else:
                    self.program.globals[node] = instance
        return main

    def build(
        self,
        node: ast.Node,
        info: ConstructionInfo,
        outer: dict[ast.Declaration, Value],
        name: str,
        parent: Instance | None = None,
    ) -> Instance:
        """Returns the instance that `node` makes. outer: the values known at the place of the
        node."""
        instance = Instance(name, info.type, info.target, node, parent=parent)
        self.count += 1
        if self.count > MAX_INSTANCES:
            if self.count == MAX_INSTANCES + 1:
                self.diagnostics.error(
                    node.position, f"the program has more than {MAX_INSTANCES} instances"
                )
            return instance
        for bound in info.arguments:
            self._argument(instance, bound, outer)
        if isinstance(info.type, types.Block):
            self._locals(instance)
        return instance

    def _argument(
        self, instance: Instance, bound: BoundArgument, outer: dict[ast.Declaration, Value]
    ) -> None:
        if bound.value is None:
            return
        value = self._value(bound.value, outer, instance)
        if value is None:
            self.diagnostics.error(
                bound.value.position,
                f"the value of parameter '{bound.parameter.name}' is not known at compile time",
            )
            return
        instance.arguments[bound.parameter.name] = value
        if bound.parameter.declaration is not None:
            instance.constants[bound.parameter.declaration] = value

    def _value(
        self, node: ast.Expression, outer: dict[ast.Declaration, Value], owner: Instance
    ) -> Value | None:
        if isinstance(node, ast.ConstructorCall):
            info = self.program.constructions[node]
            child = self.build(node, info, outer, info.target.name, owner)
            owner.children[node] = child
            return child
        return evaluate(self.program, node, {**self.globals, **outer})

    def _unnamed(self) -> str:
        """Returns the name of an action profile that a table creates without a name. The name is
        the one that p4c gives."""
        self.unnamed_profiles += 1
        return f"action_profile_{self.unnamed_profiles - 1}"

    def _locals(self, instance: Instance) -> None:
        """Builds the instances that a parser or control declares, and those of blocks that it
        applies directly."""
        block = instance.declaration
        assert isinstance(block, (ast.ParserDeclaration, ast.ControlDeclaration))
        known = dict(instance.constants)
        for node in block.locals:
            if isinstance(node, ast.Instantiation):
                info = self.program.constructions[node]
                child = self.build(node, info, known, instance.name_of(node), instance)
                instance.children[node] = child
                known[node] = child
                instance.constants[node] = child
        for call in direct_applications(block, self.program):
            info = self.program.constructions[call]
            name = f"{instance.name}.{info.target.name}"
            child = self.build(call, info, known, name, instance)
            instance.children[call] = child
        for property_ in made_in_properties(block, self.program):
            info = self.program.constructions[property_.value]
            name = _property_name(property_) or self._unnamed()
            child = self.build(property_.value, info, known, name, instance)
            instance.children[property_.value] = child


def direct_applications(
    block: ast.ParserDeclaration | ast.ControlDeclaration, program: TypedProgram
) -> list[ast.Call]:
    """Returns the calls `Type.apply(...)` in a block, in the order of the text."""
    places: tuple[ast.Node, ...] = (
        (block.body,) if isinstance(block, ast.ControlDeclaration) else block.states
    )
    return [
        node
        for place in places
        for node in ast.walk(place)
        if isinstance(node, ast.Call) and node in program.constructions
    ]


def made_in_properties(
    block: ast.ParserDeclaration | ast.ControlDeclaration, program: TypedProgram
) -> list[ast.TableProperty]:
    """Returns the table properties that make the object to which they refer, as in `implementation
    = action_profile(32)`."""
    return [
        property_
        for table in block.locals
        if isinstance(table, ast.TableDeclaration)
        for property_ in table.properties
        if property_.value in program.constructions
    ]


def _property_name(property_: ast.TableProperty) -> str:
    """Returns the full name that `@name` before a property gives to the property's object, as in
    p4c. Returns an empty string without `@name`."""
    names = [a.arguments for a in property_.annotations if a.name == "name"]
    given = names[0][0] if names and names[0] else None
    return given.value if isinstance(given, ast.StringLiteral) else ""


def elaborate(program: TypedProgram, diagnostics: Diagnostics) -> None:
    """Sets program.main and program.globals. Leaves main unset in a program without main, which is
    a library and no error."""
    elaborator = _Elaborator(program, diagnostics)
    program.main = elaborator.run()
