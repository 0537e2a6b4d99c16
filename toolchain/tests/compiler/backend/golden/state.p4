// Registers, hash, header stack, lookahead, a loop, an enum, clone and digest.
#include <core.p4>
#include <v1model.p4>

enum bit<8> Kind { Data = 1, End = 2 }
enum Verdict { Pass, Hold }
header item_t { Kind kind; bit<24> value; }
header flow_t { bit<32> key; bit<32> count; }
struct headers_t { flow_t flow; item_t[3] items; }
struct metadata_t { @field_list(1) bit<32> index; Verdict verdict; bool seen; }
struct report_t { bit<32> key; bit<32> count; }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.flow);
        transition select(packet.lookahead<bit<8>>()) { 1: item; default: accept; }
    }
    state item {
        packet.extract(hdr.items.next);
        transition select(hdr.items.last.kind) { Kind.Data: item; Kind.End: accept; }
    }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<bit<32>>(1024) counts;
    action count() {
        bit<32> before;
        hash(meta.index, HashAlgorithm.crc32, 32w0, { hdr.flow.key, 8w1 }, 32w1024);
        counts.read(before, meta.index);
        meta.seen = before != 0;
        hdr.flow.count = before |+| 1;
        counts.write(meta.index, hdr.flow.count);
        for (bit<32> i = 0; i < 4; i = i + 1) { hdr.flow.key = hdr.flow.key ^ (before << 3); }
    }
    apply {
        count();
        meta.verdict = hdr.flow.count > 100 ? Verdict.Hold : Verdict.Pass;
        if (meta.verdict == Verdict.Hold) {
            digest<report_t>(1, { hdr.flow.key, hdr.flow.count });
            clone_preserving_field_list(CloneType.I2E, 9, 1);
            exit;
        }
        std.egress_spec = std.ingress_port;
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply { if (hdr.items[0].isValid()) { hdr.items.pop_front(1); } }
}
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
