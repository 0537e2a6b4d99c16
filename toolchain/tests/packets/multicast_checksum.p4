// Copies of one packet, some of them changed in egress, each with the checksum of what it carries.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<16> change; bit<2048> a; bit<2048> b; bit<16> sum; }
struct headers_t { data_t d; }
struct meta_t { }
parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.d); transition accept; }
}
control NoVerify(inout headers_t h, inout meta_t m) { apply { } }
control Sum(inout headers_t h, inout meta_t m) {
    apply { update_checksum(true, { h.d.a, h.d.b }, h.d.sum, HashAlgorithm.csum16); }
}
control Emit(packet_out p, in headers_t h) { apply { p.emit(h); } }

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.mcast_grp = 1;
        if (h.d.change == 1) {
            h.d.a = h.d.a ^ 7;
            h.d.b = h.d.b ^ 7;
        }
    }
}
control Out(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        if (s.egress_rid == 2) {
            h.d.a = h.d.a ^ 2;
            h.d.b = h.d.b ^ 0x20;
        } else if (s.egress_rid == 3) {
            h.d.a = h.d.a ^ 0x400;
            h.d.b = h.d.b ^ 0x40;
        }
    }
}
V1Switch(Parse(), NoVerify(), Work(), Out(), Sum(), Emit()) main;
