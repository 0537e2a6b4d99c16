// Lane-wise addition inside one wide word: ((a & L) + (b & L)) ^ ((a ^ b) & H).
#include <core.p4>
#include <v1model.p4>

typedef bit<512> word_t;
const word_t LOW = 512w0x7fffffff_7fffffff_7fffffff_7fffffff_7fffffff_7fffffff_7fffffff_7fffffff_7fffffff_7fffffff_7fffffff_7fffffff_7fffffff_7fffffff_7fffffff_7fffffff;
header data_t { word_t a; word_t b; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.a = ((h.d.a & LOW) + (h.d.b & LOW)) ^ ((h.d.a ^ h.d.b) & ~LOW);
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
