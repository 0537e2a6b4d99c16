// A clone session may copy to a multicast group.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> kind; bit<16> rid; }
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
        clone(CloneType.I2E, 7);
        h.d.a = 0;
        s.egress_spec = 1;
    }
}
control Out(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.kind = (bit<8>)s.instance_type;
        h.d.rid = s.egress_rid;
    }
}
V1Switch(Parse(), NoVerify(), Work(), Out(), NoCompute(), Emit()) main;
