#include "student.inc"
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        p.extract(hdr.h);
        transition select(hdr.h.a) { 1: accept; default: reject; };
    }
}
