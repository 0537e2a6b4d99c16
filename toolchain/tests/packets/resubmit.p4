// resubmit_preserving_field_list: the original bytes again, with the listed metadata kept.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> passes; bit<8> lost; bit<8> kind; }
struct headers_t { data_t d; }
struct meta_t { @field_list(1) bit<8> passes; bit<8> lost; }
parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.d); transition accept; }
}
#include "include/rest.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.lost = m.lost;
        m.passes = m.passes + 1;
        m.lost = 9;
        h.d.a = h.d.a + 1;
        h.d.passes = m.passes;
        h.d.kind = (bit<8>)s.instance_type;
        s.egress_spec = 1;
        if (m.passes < 3) { resubmit_preserving_field_list(1); }
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
