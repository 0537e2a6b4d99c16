// clone(I2E): the copy is the packet as it arrived; egress tells it by instance_type 1.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> kind; }
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
        if (h.d.a == 1) { clone(CloneType.I2E, 5); }
        if (h.d.a == 2) { clone(CloneType.I2E, 6); }
        h.d.a = 0xff;
        s.egress_spec = 1;
    }
}
control Out(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { h.d.kind = (bit<8>)s.instance_type; }
}
V1Switch(Parse(), NoVerify(), Work(), Out(), NoCompute(), Emit()) main;
