// hash() over three bytes: the last one is the upper half of a word of 16 bits.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<16> a; bit<8> b; bit<32> c32; bit<16> c16; bit<16> sum; bit<16> x; bit<32> id; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        hash(h.d.c32, HashAlgorithm.crc32, 32w0, { h.d.a, h.d.b }, 33w0x100000000);
        hash(h.d.c16, HashAlgorithm.crc16, 16w0, { h.d.a, h.d.b }, 32w0x10000);
        hash(h.d.sum, HashAlgorithm.csum16, 16w0, { h.d.a, h.d.b }, 32w0x10000);
        hash(h.d.x, HashAlgorithm.xor16, 16w0, { h.d.a, h.d.b }, 32w0x10000);
        hash(h.d.id, HashAlgorithm.identity, 32w0, { h.d.a, h.d.b }, 33w0x100000000);
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
