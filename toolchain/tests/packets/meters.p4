// A packet meter: green within the committed burst, yellow within the peak burst, red beyond.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> index; bit<8> colour; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t meta, inout standard_metadata_t s) {
    meter(3, MeterType.packets) m;
    apply {
        bit<8> colour = 9;
        m.execute_meter((bit<32>)h.d.index, colour);
        h.d.colour = colour;
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
