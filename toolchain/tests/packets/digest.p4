// A digest takes its values at the call, and the packet goes on as if there were none.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<16> b; }
#include "include/one_header.p4"
struct seen_t { bit<8> a; bit<16> sum; bit<9> port; }

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        digest<seen_t>(1, { h.d.a, h.d.b + 1, s.ingress_port });
        h.d.a = h.d.a + 1;
        if (h.d.b == 2) {
            digest<seen_t>(2, { h.d.a, 0, 5 });
            mark_to_drop(s);
        }
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
