// A table of each kind; a packet's first byte says which it is looked up in.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> table_number; bit<48> key; }
struct headers_t { data_t d; }
struct meta_t { }
parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.d); transition accept; }
}
control NoChecksum(inout headers_t h, inout meta_t m) { apply { } }
control NoEgress(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }
control Emit(packet_out p, in headers_t h) { apply { p.emit(h); } }

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action forward(bit<9> port) { s.egress_spec = port; }
    action discard() { mark_to_drop(s); }
#define TABLE(name, kind) table name { \
        key = { h.d.key: kind; } \
        actions = { forward; discard; } \
        default_action = discard(); \
        size = 1048576; \
    }
    TABLE(exact_, exact)
    TABLE(lpm_, lpm)
    TABLE(ternary_, ternary)
    TABLE(range_, range)
    apply {
        if (h.d.table_number == 0) { exact_.apply(); }
        else if (h.d.table_number == 1) { lpm_.apply(); }
        else if (h.d.table_number == 2) { ternary_.apply(); }
        else { range_.apply(); }
    }
}
V1Switch(Parse(), NoChecksum(), Work(), NoEgress(), NoChecksum(), Emit()) main;
