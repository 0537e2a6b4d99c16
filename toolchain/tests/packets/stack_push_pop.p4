// push_front makes room at the front (invalid headers), pop_front removes.
#include <core.p4>
#include <v1model.p4>

header op_t { bit<8> op; }
header tag_t { bit<8> v; }
struct headers_t { op_t o; tag_t[3] tags; }
struct meta_t { }

parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.o); p.extract(h.tags.next); p.extract(h.tags.next); transition accept; }
}
#include "include/rest.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        if (h.o.op == 1) {
            h.tags.push_front(1);
            h.tags[0].setValid();
            h.tags[0].v = 0x77;
        } else if (h.o.op == 2) {
            h.tags.pop_front(1);
        } else if (h.o.op == 3) {
            h.tags.push_front(2);
        }
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
