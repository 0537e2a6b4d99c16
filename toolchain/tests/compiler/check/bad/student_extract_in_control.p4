#include "student.inc"
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        packet.extract(hdr.h);
    }
}
