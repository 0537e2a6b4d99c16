// Egress changes headers, sees egress_port, and cannot send elsewhere.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> port; bit<8> a; }
header tail_t { bit<8> t; }
struct headers_t { data_t d; tail_t t; }
struct meta_t { bit<8> carried; }
parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.d); transition accept; }
}
control NoVerify(inout headers_t h, inout meta_t m) { apply { } }
control NoCompute(inout headers_t h, inout meta_t m) { apply { } }
control Emit(packet_out p, in headers_t h) { apply { p.emit(h.t); p.emit(h.d); } }

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { m.carried = h.d.a + 1; s.egress_spec = (bit<9>)h.d.port; }
}
control Out(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.a = m.carried;
        s.egress_spec = 7;
        if (s.egress_port == 2) {
            h.t.setValid();
            h.t.t = 0x22;
        }
    }
}
V1Switch(Parse(), NoVerify(), Work(), Out(), NoCompute(), Emit()) main;
