#include "student.inc"
Control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action drop() { mark_to_drop(std); }
    apply {
        drop();
    }
}
