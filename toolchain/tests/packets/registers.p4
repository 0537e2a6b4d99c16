// Registers keep values over packets; each index is a cell of its own.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> index; bit<32> add; bit<32> total; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    register<bit<32>>(4) totals;
    action accumulate() {
        bit<32> value;
        totals.read(value, (bit<32>)h.d.index);
        value = value + h.d.add;
        totals.write((bit<32>)h.d.index, value);
        h.d.total = value;
    }
    apply { accumulate(); s.egress_spec = 1; }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
