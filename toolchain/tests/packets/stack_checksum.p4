// A checksum over elements of a stack, in order and in the opposite order; elements that are invalid add nothing and
// are not sent.
#include <core.p4>
#include <v1model.p4>

header count_t { bit<1> hole; bit<7> tags; bit<16> sum; }
header tag_t { bit<8> v; }
struct headers_t { count_t c; tag_t[4] tags; }
struct meta_t { bit<7> parsed; }

parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.c); transition tag; }
    state tag {
        p.extract(h.tags.next);
        m.parsed = m.parsed + 1;
        transition select(h.c.tags - m.parsed) { 0: accept; default: tag; }
    }
}
control Sum(inout headers_t h, inout meta_t m) {
    apply {
        update_checksum(true, { h.tags[0].v, h.tags[1].v, h.tags[2].v, h.tags[3].v, h.tags[3].v, h.tags[2].v, h.tags[1].v },
                        h.c.sum, HashAlgorithm.csum16);
    }
}
#include "include/rest.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        if (h.c.hole == 1) {
            h.tags[1].setInvalid();
        }
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), Sum(), Emit()) main;
