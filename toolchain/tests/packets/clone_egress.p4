// clone(E2E): the copy carries egress's headers and the preserved metadata through egress again.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> kind; bit<8> kept; bit<8> lost; }
struct headers_t { data_t d; }
struct meta_t { @field_list(1) bit<8> kept; bit<8> lost; }
parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.d); transition accept; }
}
control NoVerify(inout headers_t h, inout meta_t m) { apply { } }
control NoCompute(inout headers_t h, inout meta_t m) { apply { } }
control Emit(packet_out p, in headers_t h) { apply { p.emit(h); } }

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { m.kept = 7; m.lost = 8; s.egress_spec = 1; }
}
control Out(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.kind = (bit<8>)s.instance_type;
        h.d.kept = m.kept;
        h.d.lost = m.lost;
        if (s.instance_type == 0) {
            h.d.a = h.d.a + 1;
            clone_preserving_field_list(CloneType.E2E, 5, 1);
        }
    }
}
V1Switch(Parse(), NoVerify(), Work(), Out(), NoCompute(), Emit()) main;
