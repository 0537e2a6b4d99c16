#include "student.inc"
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    bit<8> twice(in bit<8> x) {
        return x + x;
    }
    apply {
        hdr.h.a = twice(1);
    }
}
