// exit ends the control and the ones around it, from an action too; egress still runs.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> ingress_mark; bit<8> egress_mark; }
struct headers_t { data_t d; }
struct meta_t { }
parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.d); transition accept; }
}
control NoVerify(inout headers_t h, inout meta_t m) { apply { } }
control NoCompute(inout headers_t h, inout meta_t m) { apply { } }
control Emit(packet_out p, in headers_t h) { apply { p.emit(h); } }

control Inner(inout headers_t h) {
    apply {
        h.d.ingress_mark = 1;
        if (h.d.a == 1) { exit; }
        h.d.ingress_mark = 2;
    }
}

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    Inner() inner;
    action leave() { h.d.ingress_mark = 0x33; exit; }
    apply {
        s.egress_spec = 1;
        inner.apply(h);
        if (h.d.a == 2) { leave(); }
        h.d.ingress_mark = 4;
    }
}
control Out(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { h.d.egress_mark = 0xee; }
}
V1Switch(Parse(), NoVerify(), Work(), Out(), NoCompute(), Emit()) main;
