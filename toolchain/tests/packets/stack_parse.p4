// Header stacks: .next while parsing, .last, .lastIndex, an index, and StackOutOfBounds.
#include <core.p4>
#include <v1model.p4>

header tag_t { bit<1> more; bit<7> v; }
header result_t { bit<8> last; bit<8> second; bit<8> error_seen; }
struct headers_t { result_t r; tag_t[3] tags; }
struct meta_t { bit<8> last; }

parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.r); transition tag; }
    state tag {
        p.extract(h.tags.next);
        m.last = (bit<8>)h.tags.lastIndex;
        transition select(h.tags.last.more) { 1: tag; default: accept; }
    }
}
#include "include/rest.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.r.last = m.last;
        h.r.second = h.tags[1].isValid() ? 1w0 ++ h.tags[1].v : 0xff;
        h.r.error_seen = s.parser_error == error.StackOutOfBounds ? 8w1 : 0;
        h.tags[0].v = 0x55;
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
