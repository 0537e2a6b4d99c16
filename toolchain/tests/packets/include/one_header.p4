// A test whose packets are one header: include this after `header data_t`, then write `Work`.
struct headers_t { data_t d; }
struct meta_t { }
parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.d); transition accept; }
}
#include "rest.p4"
