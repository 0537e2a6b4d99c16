#include "student.inc"
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        hash(meta.tag, HashAlgorithm.md5, 16w0, { hdr.h.a }, 16w16);
    }
}
