#include "student.inc"
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        hash(meta.tag, HashAlgorithm.crc16, 0, { hdr.h.a }, 16);
    }
}
