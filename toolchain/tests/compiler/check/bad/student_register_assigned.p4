#include "student.inc"
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    register<bit<16>>(16) r;
    apply {
        r = 5;
    }
}
