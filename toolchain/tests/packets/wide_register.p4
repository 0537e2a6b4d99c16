// A register of bit<1024> words, read, summed into and written in one action.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> index; bit<1024> word; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    register<bit<1024>>(2) sums;
    action accumulate() {
        bit<1024> sum;
        sums.read(sum, (bit<32>)h.d.index);
        sum = sum + h.d.word;
        sums.write((bit<32>)h.d.index, sum);
        h.d.word = sum;
    }
    apply { accumulate(); s.egress_spec = 1; }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
