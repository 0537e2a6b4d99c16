"""From main downwards: every instance with its evaluated constructor arguments and full name."""

from __future__ import annotations

from compiler import ast, types
from compiler.diagnostics import Diagnostics
from compiler.typed import BoundArgument, ConstructionInfo, Instance, TypedProgram, Value, qualified

MAX_INSTANCES = 100_000


class _Elaborator:
    def __init__(self, program: TypedProgram, diagnostics: Diagnostics) -> None:
        self.program = program
        self.diagnostics = diagnostics
        self.globals: dict[ast.Declaration, Value] = {}
        self.count = 0

    def run(self) -> Instance | None:
        main: Instance | None = None
        for node in self.program.tree.declarations:
            if isinstance(node, ast.Instantiation):
                instance = self.build(node, self.program.constructions[node], {}, "", node)
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
        prefix: str,
        named_by: ast.Declaration,
        parent: Instance | None = None,
    ) -> Instance:
        """The instance that node makes; outer: values known where node stands."""
        name = qualified(prefix, named_by)
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
            child = self.build(node, info, outer, "", info.target, owner)
            owner.children[node] = child
            return child
        return self.program.evaluate(node, {**self.globals, **outer})

    def _locals(self, instance: Instance) -> None:
        """The instances a parser or control declares, and those of its direct applications."""
        block = instance.declaration
        assert isinstance(block, (ast.ParserDeclaration, ast.ControlDeclaration))
        known = dict(instance.constants)
        for node in block.locals:
            if isinstance(node, ast.Instantiation):
                info = self.program.constructions[node]
                child = self.build(node, info, known, instance.name, node, instance)
                instance.children[node] = child
                known[node] = child
                instance.constants[node] = child
        for call in direct_applications(block, self.program):
            info = self.program.constructions[call]
            child = self.build(call, info, known, instance.name, info.target, instance)
            instance.children[call] = child
        for made in property_constructions(block):
            if made in self.program.constructions:
                info = self.program.constructions[made]
                child = self.build(made, info, known, instance.name, info.target, instance)
                instance.children[made] = child


def direct_applications(
    block: ast.ParserDeclaration | ast.ControlDeclaration, program: TypedProgram
) -> list[ast.Call]:
    """The calls `Type.apply(...)` in a block, in the order of the text."""
    places: tuple[ast.Node, ...] = (
        (block.body,) if isinstance(block, ast.ControlDeclaration) else block.states
    )
    return [
        node
        for place in places
        for node in ast.walk(place)
        if isinstance(node, ast.Call) and node in program.constructions
    ]


def property_constructions(
    block: ast.ParserDeclaration | ast.ControlDeclaration,
) -> list[ast.ConstructorCall]:
    """Objects made in table properties: `implementation = action_profile(32)`."""
    return [
        property_.value
        for table in block.locals
        if isinstance(table, ast.TableDeclaration)
        for property_ in table.properties
        if isinstance(property_.value, ast.ConstructorCall)
    ]


def elaborate(program: TypedProgram, diagnostics: Diagnostics) -> None:
    """Sets program.main and program.globals; a program without main is a library, and fine here."""
    elaborator = _Elaborator(program, diagnostics)
    program.main = elaborator.run()
