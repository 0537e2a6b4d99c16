// Counters count packets and bytes per index; the bytes are those of the packet as it came.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> index; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    counter(4, CounterType.packets_and_bytes) seen;
    apply {
        seen.count((bit<32>)h.d.index);
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
