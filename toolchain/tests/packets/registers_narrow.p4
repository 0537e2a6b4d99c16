// Registers of 1, 9 and 128 bits hold exactly their width.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<16> v; bit<16> one; bit<16> nine; bit<128> wide; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    register<bit<1>>(8) ones;
    register<bit<9>>(8) nines;
    register<bit<128>>(2) wides;
    apply {
        bit<1> one;
        bit<9> nine;
        bit<128> wide;
        ones.read(one, 2);
        nines.read(nine, 2);
        wides.read(wide, 1);
        h.d.one = (bit<16>)one;
        h.d.nine = (bit<16>)nine;
        ones.write(2, (bit<1>)h.d.v);
        nines.write(2, nine + (bit<9>)h.d.v);
        wides.write(1, wide ^ h.d.wide);
        h.d.wide = wide;
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
