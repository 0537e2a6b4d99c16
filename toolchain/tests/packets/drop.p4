// mark_to_drop in ingress or egress; a later egress_spec takes the ingress one back.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> how; bit<8> mark; }
struct headers_t { data_t d; }
struct meta_t { }
parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.d); transition accept; }
}
control NoVerify(inout headers_t h, inout meta_t m) { apply { } }
control NoCompute(inout headers_t h, inout meta_t m) { apply { } }
control Emit(packet_out p, in headers_t h) { apply { p.emit(h); } }

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        if (h.d.how == 1) {
            mark_to_drop(s);
            h.d.mark = 1;
        } else if (h.d.how == 2) {
            mark_to_drop(s);
            s.egress_spec = 2;
        } else if (h.d.how == 4) {
            s.egress_spec = 511;
        }
    }
}
control Out(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { if (h.d.how == 3) { mark_to_drop(s); } }
}
V1Switch(Parse(), NoVerify(), Work(), Out(), NoCompute(), Emit()) main;
