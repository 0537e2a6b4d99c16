// mcast_grp replicates to the group's ports; egress sees rid, port and instance type of each copy.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<16> group; bit<16> rid; bit<8> port; bit<8> replica; }
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
        if (h.d.replica == 9) { mark_to_drop(s); }
        s.mcast_grp = h.d.group;
    }
}
control Out(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.rid = s.egress_rid;
        h.d.port = (bit<8>)s.egress_port;
        h.d.replica = s.instance_type == 5 ? 8w1 : 0;
        if (s.egress_port == s.ingress_port) { mark_to_drop(s); }
    }
}
V1Switch(Parse(), NoVerify(), Work(), Out(), NoCompute(), Emit()) main;
