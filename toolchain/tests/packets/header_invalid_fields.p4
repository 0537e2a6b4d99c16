// A table may match on isValid(); a header made valid again starts from what is written to it.
#include <core.p4>
#include <v1model.p4>

header tag_t { bit<8> kind; bit<8> value; }
struct headers_t { tag_t first; tag_t second; }
struct meta_t { }

parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.first);
        transition select(h.first.kind) { 2: second; default: accept; }
    }
    state second { p.extract(h.second); transition accept; }
}
#include "include/rest.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action send(bit<9> port) { s.egress_spec = port; }
    table where {
        key = { h.second.isValid(): exact @name("second"); h.first.kind: exact; }
        actions = { send; NoAction; }
        const entries = {
            (true, 2): send(2);
            (false, 1): send(1);
        }
        const default_action = NoAction;
    }
    apply { where.apply(); }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
