"""Runs the passes of the back end, which turn a typed v1model program into a complete
ir.Program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from p4native.compiler import ast, types
from p4native.compiler.backend import ir
from p4native.compiler.backend.assemble import assemble
from p4native.compiler.backend.checks import lower_checksums, lower_deparser
from p4native.compiler.backend.control import lower_control
from p4native.compiler.backend.graph import build_graph
from p4native.compiler.backend.in_place import read_registers_in_place
from p4native.compiler.backend.objects import declare_externs, extern_instances
from p4native.compiler.backend.parsers import lower_parser
from p4native.compiler.backend.places import (
    HeaderPlace,
    Place,
    Scalar,
    StructPlace,
    members_of,
    plain,
)
from p4native.compiler.backend.scope import Unit
from p4native.compiler.backend.share import share_variables
from p4native.compiler.backend.storage import Storage, Unsupported
from p4native.compiler.diagnostics import Diagnostics
from p4native.compiler.typed import Instance, TypedProgram

USER_METADATA = "userMetadata"
# The package's parameters, in order (v1model.p4).
BLOCKS = ("parser", "verify", "ingress", "egress", "update", "deparser")


@dataclass
class Compilation:
    unit: Unit
    blocks: dict[str, Instance] = field(default_factory=dict)
    headers: Place | None = None
    metadata: Place | None = None
    standard: Place | None = None

    def shared(self) -> list[Place]:
        """Returns the places of (hdr, meta, standard_metadata), which all blocks share."""
        places = [self.headers, self.metadata, self.standard]
        assert all(p is not None for p in places)
        return [p for p in places if p is not None]


def find_blocks(work: Compilation) -> None:
    """Finds the six blocks of V1Switch: the parser, the four controls and the deparser."""
    typed = work.unit.typed
    main = typed.main
    if main is None:
        end = typed.tree.declarations[-1] if typed.tree.declarations else typed.tree
        work.unit.diagnostics.error(
            end.position, "no package is instantiated as main", "V1Switch(...) main;"
        )
        return
    given = list(main.arguments.values())
    instances = [v for v in given if isinstance(v, Instance)]
    if main.declaration.name != "V1Switch" or len(instances) != len(BLOCKS):
        where = main.node.position if main.node is not None else typed.tree.position
        raise Unsupported(where, f"the architecture {main.declaration.name}", "use V1Switch")
    work.blocks = dict(zip(BLOCKS, instances, strict=True))
    if main.node is not None:
        work.unit.program.name = main.node.position.file


def allocate_parameters(work: Compilation) -> None:
    """Gives headers, user metadata and standard metadata one place each for the whole program."""
    storage = work.unit.storage
    shape = work.blocks["parser"].type
    assert isinstance(shape, types.Parser)
    _, headers, metadata, standard = shape.parameters
    where = work.blocks["parser"].declaration.position
    standard_type = plain(standard.type)
    assert isinstance(standard_type, types.Struct)
    work.standard = storage.standard_metadata(standard_type)
    work.headers = storage.allocate("", headers.type, where)
    work.metadata = storage.allocate(USER_METADATA, metadata.type, where)


def collect_numbers(work: Compilation) -> None:
    """Collects errors and enums with the numbers that stand for them."""
    typed, program = work.unit.typed, work.unit.program
    program.errors = sorted(
        ((member.name, code) for member, code in typed.error_codes.items()), key=lambda e: e[1]
    )
    for declaration in typed.tree.declarations:
        if isinstance(declaration, ast.EnumDeclaration) and declaration.underlying is None:
            members = [(m.name, i) for i, m in enumerate(declaration.members)]
            program.enums.append((declaration.name, members))


def collect_externs(work: Compilation) -> None:
    everywhere = work.unit.typed.globals.values()
    declare_externs(work.unit, (i for i in everywhere if isinstance(i.type, types.Extern)))
    for name in ("ingress", "egress"):
        declare_externs(work.unit, extern_instances(work.blocks[name]))


def lower_parsing(work: Compilation) -> None:
    lower_parser(work.unit, work.blocks["parser"], [None, *work.shared()])


def lower_pipelines(work: Compilation) -> None:
    for name in ("ingress", "egress"):
        lower_control(work.unit, work.blocks[name], name, work.shared())


def check_direct_objects(work: Compilation) -> None:
    """Checks direct counters and meters, which BMv2 binds to tables. Each needs a table, from which
    it gets its size. A meter also needs a field for its result."""
    unit = work.unit
    for array, where in unit.direct_uses:
        if array.table is None and array in unit.program.counters:
            message = f"{array.name} is attached to no table: it counts nothing"
            unit.diagnostics.warning(where, message, kind="unused")
            unit.program.counters.remove(array)
        elif array.table is None and array in unit.program.meters:
            unit.diagnostics.error(where, f"{array.name} is attached to no table")
    sizes = {site.table.name: site.table.size for site in unit.tables}
    for array in (*unit.program.counters, *unit.program.meters):
        if array.table is not None:
            array.size = sizes[array.table]
    for meter in unit.program.meters:
        if meter.table is not None and meter.result is None:
            unit.report(Unsupported(meter.position, f"{meter.name}, which no action reads"))


def lower_lists(work: Compilation) -> None:
    """Lowers the checksums and the deparser, which BMv2 takes as lists."""
    places = work.shared()
    lower_checksums(work.unit, work.blocks["verify"], "verify", places[:2])
    lower_checksums(work.unit, work.blocks["update"], "update", places[:2])
    lower_deparser(work.unit, work.blocks["deparser"], [None, places[0]])


def fill_field_lists(work: Compilation) -> None:
    """Fills the lists of metadata that clone, resubmit and recirculate keep. `@field_list(n)` at a
    field adds the field to list n."""
    lists = {f.name: f for f in work.unit.program.field_lists}
    if lists and work.metadata is not None:
        _fill(work.unit.typed, work.metadata, (), lists)


def _fill(
    typed: TypedProgram, place: Place, inherited: tuple[int, ...], lists: dict[str, ir.FieldList]
) -> None:
    if isinstance(place, Scalar):
        for index in inherited:
            if f"field_list{index}" in lists:
                lists[f"field_list{index}"].elements.append(place.ref)
        return
    if not isinstance(place, (StructPlace, HeaderPlace)):
        return
    shape = plain(place.type)
    for name, _ in members_of(shape):
        member = place.members[name] if isinstance(place, StructPlace) else place.member(name)
        _fill(typed, member, (*inherited, *_list_indices(typed, shape, name)), lists)


def _list_indices(typed: TypedProgram, shape: types.Type, name: str) -> tuple[int, ...]:
    found = shape.field(name) if isinstance(shape, types.StructLike) else None
    if found is None or found.declaration is None:
        return ()
    annotation = found.declaration.annotation("field_list")
    given = annotation.arguments if annotation else ()
    known = (typed.const_value[value] for value in given)
    numbers = (typed.enum_values[v] if isinstance(v, ast.EnumMember) else v for v in known)
    return tuple(n for n in numbers if isinstance(n, int))


def build_graphs(work: Compilation) -> None:
    for pipeline in work.unit.program.pipelines:
        build_graph(work.unit, pipeline)


def assemble_actions(work: Compilation) -> None:
    for action in work.unit.program.actions:
        action.primitives = assemble(action.body)


def save_fields(work: Compilation) -> None:
    """Reduces the number of fields. Wide registers are read without a copy, and variables of an
    action share fields if their values are not needed at the same time."""
    program = work.unit.program
    scalars = program.header_types[0].fields
    own = {name for name, _, _ in scalars if name.startswith(f"{USER_METADATA}.")}
    read_registers_in_place(program, own)
    share_variables(program, own)


def pad_scalars(work: Compilation) -> None:
    work.unit.storage.finish()


PASSES: tuple[Callable[[Compilation], None], ...] = (
    find_blocks,
    allocate_parameters,
    collect_numbers,
    collect_externs,
    lower_parsing,
    lower_pipelines,
    check_direct_objects,
    lower_lists,
    fill_field_lists,
    build_graphs,
    assemble_actions,
    save_fields,
    pad_scalars,
)


def lower(
    typed: TypedProgram, diagnostics: Diagnostics, emit_externs: bool = False
) -> Compilation | None:
    """Runs the passes and returns the result. Returns None if any pass reported an error."""
    program = ir.Program(typed.tree.position.file)
    work = Compilation(Unit(typed, diagnostics, program, Storage(program), emit_externs))
    for run in PASSES:
        try:
            run(work)
        except Unsupported as problem:
            work.unit.report(problem)
        if diagnostics.failed:
            return None
    return work
