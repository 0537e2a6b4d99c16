// recirculate_preserving_field_list: the deparsed packet comes in again.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> passes; bit<8> kind; }
header tag_t { bit<8> t; }
struct headers_t { tag_t tag; data_t d; }
struct meta_t { @field_list(1) bit<8> passes; }
parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        transition select(p.lookahead<bit<8>>()) { 0xee: tagged; default: plain; }
    }
    state tagged { p.extract(h.tag); transition plain; }
    state plain { p.extract(h.d); transition accept; }
}
control NoVerify(inout headers_t h, inout meta_t m) { apply { } }
control NoCompute(inout headers_t h, inout meta_t m) { apply { } }
control Emit(packet_out p, in headers_t h) { apply { p.emit(h); } }

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.a = h.d.a + 1;
        h.d.passes = m.passes;
        h.d.kind = (bit<8>)s.instance_type;
        s.egress_spec = 1;
    }
}
control Out(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        if (m.passes < 2) {
            m.passes = m.passes + 1;
            h.tag.setValid();
            h.tag.t = 0xee;
            recirculate_preserving_field_list(1);
        } else {
            h.tag.setInvalid();
        }
    }
}
V1Switch(Parse(), NoVerify(), Work(), Out(), NoCompute(), Emit()) main;
