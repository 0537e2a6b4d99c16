"""A program that is open in an editor, without protocol and threads."""

from __future__ import annotations

from pathlib import Path

from p4native.lsp.analysis import analysed
from p4native.lsp.text import Place
from p4native.lsp.workspace import Workspace

PROGRAM = """#include <core.p4>
#include <v1model.p4>
#define SLOTS 1024

enum bit<8> Kind { VALUES = 3, RESULT = 4 }
const bit<16> TYPE = 0x88b5;
header ethernet_t { bit<48> destination; bit<48> source; bit<16> type; }
// A chunk of a gradient.
// Slots are numbered from 0.
header chunk_t { bit<16> slot; Kind kind; bit<32> value; }
struct headers_t { ethernet_t ethernet; chunk_t[2] chunks; }
struct metadata_t { bit<32> sum; }

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { TYPE: chunk; default: accept; }
    }
    state chunk {
        packet.extract(hdr.chunks.next);
        transition accept;
    }
}
control Sum(inout headers_t hdr, inout metadata_t meta,
            inout standard_metadata_t standard_metadata) {
    register<bit<32>>(SLOTS) sums;
    action forward(bit<9> port) { standard_metadata.egress_spec = port; }
    table ports {
        key = { hdr.ethernet.type: exact; }
        actions = { forward; NoAction; }
        default_action = NoAction();
    }
    apply {
        bit<32> before;
        sums.read(before, (bit<32>) hdr.chunks[0].slot);
        meta.sum = before + hdr.chunks[0].value;
        sums.write((bit<32>) hdr.chunks[0].slot, meta.sum);
        ports.apply();
    }
}
control Pass(inout headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) { apply { } }
control Checksum(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Deparse(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(Parse(), Checksum(), Sum(), Pass(), Checksum(), Deparse()) main;
"""


class Session:
    """One program that is open, analysed after each edit."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.workspace = Workspace()
        self.open(path, PROGRAM)

    def open(self, path: Path, text: str) -> None:
        self.workspace.open(str(path), text)
        self.analyse()

    def analyse(self) -> None:
        for program in {*self.workspace.programs.values()}:
            texts = self.workspace.texts
            self.workspace.enter(analysed(program, texts, self.workspace.options))

    @property
    def text(self) -> str:
        return self.workspace.texts[self.path].content

    def replace(self, old: str, new: str, analyse: bool = True) -> None:
        """Edits the program: puts `new` in place of `old`, which it has once."""
        assert self.text.count(old) == 1, old
        self.workspace.edit(self.path, None, self.text.replace(old, new))
        if analyse:
            self.analyse()

    def place(self, text: str, after: str = "") -> Place:
        """Returns where `text` begins that the program has once, or where `after` in it ends."""
        assert self.text.count(text) == 1, text
        begin = self.text.index(text) + (text.index(after) + len(after) if after else 0)
        return self.workspace.texts[self.path].place(begin)

    def hover(self, text: str, after: str = "") -> tuple[str, str]:
        hover = self.workspace.hover(self.path, self.place(text, after))
        return ("", "") if hover is None else (hover.code, hover.text)

    def declared(self, text: str, after: str = "") -> str:
        """Returns the rest of the line where the name at a place is declared."""
        target = self.workspace.definition(self.path, self.place(text, after))
        if target is None:
            return ""
        lines = (self.text if target.path == self.path else Path(target.path).read_text()).split(
            "\n"
        )
        return lines[target.span.start.line][target.span.start.character :]

    def offered(self, text: str, after: str = "") -> dict[str, str]:
        """Returns the completions at a place: label -> detail."""
        place = self.place(text, after or text)
        return {c.label: c.detail for c in self.workspace.complete(self.path, place)}

    def messages(self, path: str = "") -> list[str]:
        shown = self.workspace.messages().get(path or self.path, [])
        return [f"{m.span.start.line + 1}: {m.diagnostic.message}" for m in shown]
